/** The page's end: an object with the methods of a client whose work a worker does. */
import '../../dispose-symbols.ts';
import type { Account, AccountStatus, FollowOptions } from '../../account.ts';
import type { Client, NewAccountOptions } from '../../client.ts';
import type { AccountSnapshot } from '../../events/account-state.ts';
import type { AccountEvent } from '../../events.ts';
import type { AccountFacts, WorkerClientOptions, WorkerPort } from './messages.ts';
import { PortCalls } from './port-calls.ts';

/** The methods of an object, each of which resolves with the result. */
export type InWorker<T> = {
  readonly [Name in keyof T as T[Name] extends (...args: never) => unknown
    ? Name
    : never]: T[Name] extends (...args: infer Args) => infer Result
    ? (...args: Args) => Promise<Awaited<Result>>
    : never;
};

/** Parts of an account with methods of their own. */
const parts = [
  ...(['attachments', 'channels', 'contacts', 'conversations', 'devices'] as const),
  ...(['groups', 'home', 'messages', 'profiles'] as const),
];
type Part = (typeof parts)[number];

/**
 * An account in a worker. It has the methods of `Account` and of its parts; each resolves, also those
 * that return a value there. Functions stay in the page: an uploader or a signer cannot be passed; an `AbortSignal`
 * and a `progress` callback can.
 */
export interface WorkerAccount
  extends Pick<Account, 'id' | 'deviceId' | 'publicKey' | 'follow' | 'subscribe' | 'wake'>,
    InWorker<Pick<Account, 'sync' | 'status' | 'forgetReader'>>,
    Readonly<{ [Name in Part]: InWorker<Account[Name]> }> {
  /** As `Account.state`. */
  readonly state: Pick<Account['state'], 'subscribe' | 'getSnapshot'>;
}

/**
 * A client in a worker. Closing it ends what runs: calls that wait are rejected with
 * `store_unavailable`. Then the worker can open another one; it is the app's to terminate.
 */
export interface WorkerClient extends AsyncDisposable {
  /** As `Client.account`. */
  account(): Promise<WorkerAccount>;
  /** As `Client.setUp`; the account key as bytes, because a signer stays in the page. */
  setUp(
    options?: Omit<NewAccountOptions, 'accountKey'> & { readonly accountKey?: Uint8Array },
  ): Promise<WorkerAccount>;
  readonly accountKey: InWorker<Client>['accountKey'];
  readonly discardSetUp: InWorker<Client>['discardSetUp'];
  readonly requestDevice: InWorker<Client>['requestDevice'];
  /** As `Client.completeDevice`. */
  completeDevice(...args: Parameters<Client['completeDevice']>): Promise<WorkerAccount>;
  close(): Promise<void>;
}

/**
 * Opens a client in a worker, with the store in IndexedDB, Web Crypto and the browser's transport.
 * The page only posts and receives messages, so that receiving much does not make it stop. Tabs that
 * have a worker each share the store: one of them is connected, and every one gets every event.
 *
 * The worker is a dedicated one: a module of the app with one line, `import '@posthouse/client/web/worker'`. So
 * bundlers find it, and a page with Trusted Types makes its URL by a policy of its own.
 *
 * @throws ClientError `invalid_input` if the worker has a client, which was not closed; as `IndexedDbStore.open` and `Client.open`; ProtocolError `bad_request` for a
 *   registry that cannot be used
 * @example
 * import { isClientError } from '@posthouse/client';
 * import { clientInWorker } from '@posthouse/client/web';
 * declare const worker: import('@posthouse/client/web').WorkerPort;
 * // const worker = new Worker(new URL('./account-worker.js', import.meta.url), { type: 'module' });
 * const relays = { context: network.context, relays: [] };
 * const client = await clientInWorker(worker, { context: network.context, registry: relays });
 * const account = await client.account().catch((error: unknown) => {
 *   if (!isClientError(error, 'not_set_up')) throw error;
 *   return client.setUp();
 * });
 * await account.messages.post(peer, { text: 'hello' });
 */
export async function clientInWorker(
  worker: WorkerPort,
  options: WorkerClientOptions,
): Promise<WorkerClient> {
  const calls = new PortCalls(worker);
  await calls.open(options);
  const method =
    (name: string) =>
    async (...args: unknown[]) =>
      await calls.call([name], args);
  const accountBy =
    (name: string) =>
    async (...args: unknown[]) =>
      accountInWorker(calls, (await calls.call([name], args)) as AccountFacts);
  const close = () => calls.close();
  return {
    account: accountBy('account'),
    setUp: accountBy('setUp'),
    completeDevice: accountBy('completeDevice'),
    accountKey: method('accountKey') as WorkerClient['accountKey'],
    discardSetUp: method('discardSetUp') as WorkerClient['discardSetUp'],
    requestDevice: method('requestDevice') as WorkerClient['requestDevice'],
    close,
    [Symbol.asyncDispose]: close,
  };
}

function accountInWorker(calls: PortCalls, facts: AccountFacts): WorkerAccount {
  const { id, deviceId, publicKey } = facts;
  const wake = () => void calls.call(['wake'], []).catch(() => undefined);
  async function* follow({ signal, wake: source, ...rest }: FollowOptions = {}) {
    const wakes = source?.(wake);
    try {
      yield* calls.stream<AccountEvent>(['follow'], [rest], signal);
    } finally {
      wakes?.[Symbol.dispose]();
    }
  }
  const account = {
    ...{ id, deviceId, publicKey, wake, follow },
    sync: (...args: unknown[]) => calls.call(['sync'], args),
    status: () => calls.call(['status'], []),
    forgetReader: (...args: unknown[]) => calls.call(['forgetReader'], args),
    subscribe(listener: (event: AccountEvent) => void, options: SubscribeOptions = {}) {
      const { onError, ...following } = options;
      const stop = new AbortController();
      const signal = AbortSignal.any([stop.signal, options.signal ?? stop.signal]);
      const run = async () => {
        for await (const event of follow({ ...following, signal })) {
          if (signal.aborted) return;
          listener(event);
        }
      };
      void run().catch(onError);
      return { [Symbol.dispose]: () => stop.abort() };
    },
    state: stateInWorker(calls),
    ...Object.fromEntries(parts.map((part) => [part, partInWorker(calls, part)])),
  };
  return account as unknown as WorkerAccount;
}

type SubscribeOptions = NonNullable<Parameters<Account['subscribe']>[1]>;

/** All methods of a part, by whatever name they are called. */
function partInWorker(calls: PortCalls, part: Part): object {
  return new Proxy(Object.create(null), {
    get: (_target, name) =>
      // A promise would look for `then`.
      typeof name === 'symbol' || name === 'then'
        ? undefined
        : (...args: unknown[]) => calls.call([part, name], args),
  });
}

function stateInWorker(calls: PortCalls): WorkerAccount['state'] {
  const listeners = new Set<{ readonly changed: () => void }>();
  let snapshot: AccountSnapshot<AccountStatus> | undefined;
  let stop: AbortController | undefined;
  const watch = async (signal: AbortSignal) => {
    const found = calls.stream<AccountSnapshot<AccountStatus>>(['snapshots'], [], signal);
    for await (const next of found) {
      snapshot = next;
      for (const { changed } of listeners) changed();
    }
  };
  return {
    subscribe(changed) {
      const listener = { changed };
      listeners.add(listener);
      if (stop === undefined) {
        const own = new AbortController();
        stop = own;
        // A worker that fails is reported by the call that needs it. The next listener tries again.
        const over = () => {
          if (stop === own) stop = undefined;
        };
        watch(own.signal).then(over, over);
      }
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0) return;
        stop?.abort();
        stop = undefined;
      };
    },
    getSnapshot: () => snapshot,
  };
}
