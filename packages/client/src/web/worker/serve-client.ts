/** The worker's end: opens the client and makes the page's calls. */
import '../../dispose-symbols.ts';
import { Network, type RegistryNodes, staticRegistry } from '@posthouse/protocol';
import { webPrimitives } from '@posthouse/protocol/web';
import { Account } from '../../account.ts';
import { Client } from '../../client.ts';
import { ClientError, isClientError } from '../../errors.ts';
import { encryptedStore } from '../../store/encrypted.ts';
import { IndexedDbStore } from '../indexed-db-store.ts';
import { uploadTransport } from '../upload-transport.ts';
import type {
  AccountFacts,
  Call,
  OtherError,
  Reply,
  Request,
  WorkerClientOptions,
  WorkerPort,
} from './messages.ts';
import { accountKeyOf } from './port-calls.ts';

/** Methods that a page calls by one name; those of the account's parts have two. */
const methods = {
  client: ['account', 'accountKey', 'setUp', 'discardSetUp', 'requestDevice', 'completeDevice'],
  account: ['sync', 'status', 'wake', 'forgetReader'],
} as const;

/** A client, and the store that is closed with it. */
interface OpenClient {
  readonly client: Client;
  readonly store: IndexedDbStore;
}

/** Serves the page at the other end of a port, until the worker ends. */
export function serveClient(port: WorkerPort): void {
  const served = new ServedClient((reply) => {
    try {
      port.postMessage(reply);
    } catch (cause) {
      port.postMessage({ id: reply.id, error: plain(cause) } satisfies Reply);
    }
  });
  port.addEventListener('message', ({ data }) => served.handle(data as Request | null));
  port.start?.();
}

class ServedClient {
  readonly #reply: (reply: Reply) => void;
  readonly #aborts = new Map<number, AbortController>();
  readonly #streams = new Map<number, AsyncGenerator>();
  #opened: Promise<OpenClient> | undefined;
  #client: Client | undefined;
  #account: Account | undefined;

  constructor(reply: (reply: Reply) => void) {
    this.#reply = reply;
  }

  /** Does what a page asks for; any other message is the app's. */
  handle(request: Request | null): void {
    if (request?.kind === 'abort' || request?.kind === 'leave') {
      this.#aborts.get(request.id)?.abort();
      if (request.kind === 'leave') this.#leave(request.id);
    } else if (request?.kind === 'open') this.#answer(request.id, this.#open(request));
    else if (request?.kind === 'call') this.#answer(request.id, this.#call(request));
    else if (request?.kind === 'next') this.#answer(request.id, this.#next(request.id));
  }

  #answer(id: number, answer: Promise<Reply>): void {
    answer.then(
      (reply) => this.#reply(reply),
      (error: unknown) => this.#reply({ id, error: plain(error) }),
    );
  }

  async #open({ id, options }: Extract<Request, { kind: 'open' }>): Promise<Reply> {
    if (this.#opened !== undefined) {
      throw new ClientError('invalid_input', 'the worker has a client: start another worker');
    }
    // Kept before it is open: the store is opened once, however many pages ask at a time.
    this.#opened = openClient(options);
    try {
      this.#client = (await this.#opened).client;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
    return { id, value: undefined };
  }

  /** Closes client and store; then another client can be opened. */
  async #close(): Promise<void> {
    const opened = this.#opened;
    for (const id of this.#streams.keys()) this.#aborts.get(id)?.abort();
    const { client, store } = (await opened?.catch(() => undefined)) ?? {};
    this.#account = undefined;
    this.#client = undefined;
    try {
      await client?.close().finally(() => store?.[Symbol.asyncDispose]());
    } finally {
      // Also if closing fails: the worker can open another client then.
      if (this.#opened === opened) this.#opened = undefined;
    }
  }

  async #call({ id, path, args, abortable }: Call): Promise<Reply> {
    const stop = new AbortController();
    const values = args.map((value, index) =>
      index === abortable ? this.#called(id, value as object, stop.signal) : value,
    );
    if (path.length === 1 && path[0] === 'close') return { id, value: await this.#close() };
    this.#aborts.set(id, stop);
    const stream = this.#streamOf(path, values, stop.signal);
    if (stream !== undefined) {
      this.#streams.set(id, stream);
      return await this.#next(id);
    }
    try {
      return { id, value: this.#posted(await this.#method(path)(...values)) };
    } finally {
      this.#aborts.delete(id);
      // The page handed it over for this call only.
      for (const value of args) accountKeyOf(value)?.fill(0);
    }
  }

  /** The options of a call, with what stayed in the page. */
  #called(id: number, options: { readonly progress?: unknown }, signal: AbortSignal): object {
    const progress = (of: unknown) => this.#reply({ id, progress: of });
    return { ...options, signal, ...(options.progress === true && { progress }) };
  }

  #streamOf(
    path: readonly string[],
    [options]: readonly unknown[],
    signal: AbortSignal,
  ): AsyncGenerator | undefined {
    const account = this.#account;
    if (account === undefined || path.length !== 1) return undefined;
    if (path[0] === 'follow') return account.follow({ ...(options as object), signal });
    return path[0] === 'snapshots' ? snapshots(account, signal) : undefined;
  }

  async #next(id: number): Promise<Reply> {
    const stream = this.#streams.get(id);
    try {
      const { done = true, value } = (await stream?.next()) ?? {};
      if (!done) return { id, value };
    } catch (error) {
      this.#leave(id);
      throw error;
    }
    this.#leave(id);
    return { id, done: true };
  }

  #leave(id: number): void {
    const stream = this.#streams.get(id);
    this.#streams.delete(id);
    this.#aborts.delete(id);
    // What it fails with now, it was not asked for.
    stream?.return(undefined).catch(() => undefined);
  }

  /** @throws ClientError `invalid_input` for what is no method */
  #method([first = '', second]: readonly string[]): (...values: unknown[]) => unknown {
    const named = (names: readonly string[]) => second === undefined && names.includes(first);
    let owner: unknown;
    if (named(methods.client)) owner = this.#client;
    else if (named(methods.account)) owner = this.#account;
    else if (second !== undefined) owner = memberOf(this.#account, first);
    const name = second ?? first;
    const method = hasMethod(owner, name) ? memberOf(owner, name) : undefined;
    if (typeof method === 'function') return method.bind(owner);
    throw new ClientError('invalid_input', `${name} is no method of an open account`);
  }

  /** The result as it is posted; an account stays here, for the calls that come. */
  #posted(value: unknown): unknown {
    if (!(value instanceof Account)) return value;
    this.#account = value;
    const { id, deviceId, publicKey } = value;
    return { accountInWorker: true, id, deviceId, publicKey } satisfies AccountFacts;
  }
}

function memberOf(owner: object | undefined, name: string): unknown {
  return (owner as Record<string, unknown> | undefined)?.[name];
}

/** Whether a class of the owner declares the method: nothing that every object inherits. */
function hasMethod(owner: unknown, name: string): owner is object {
  if (typeof owner !== 'object' || owner === null || name === 'constructor') return false;
  let type = Object.getPrototypeOf(owner);
  while (type !== null && type !== Object.prototype) {
    if (Object.hasOwn(type, name)) return true;
    type = Object.getPrototypeOf(type);
  }
  return false;
}

async function openClient(options: WorkerClientOptions): Promise<OpenClient> {
  const { context, word, registry, store: name, storeKey } = options;
  const primitives = webPrimitives;
  const network = new Network({ context, primitives, ...(word !== undefined && { word }) });
  const store = await IndexedDbStore.open(name);
  try {
    const client = await Client.open({
      network,
      registry: Object.hasOwn(registry, 'nodes')
        ? (registry as RegistryNodes)
        : staticRegistry(network, registry),
      transport: uploadTransport,
      store:
        storeKey === undefined ? store : await encryptedStore(store, { key: storeKey, primitives }),
    });
    return { client, store };
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

/** Yields the account's snapshot, and again each time it changes. */
async function* snapshots({ state }: Account, signal: AbortSignal): AsyncGenerator {
  let changed = Promise.withResolvers<void>();
  const end = state.subscribe(() => changed.resolve());
  const stop = () => changed.resolve();
  signal.addEventListener('abort', stop, { once: true });
  let last: unknown;
  try {
    while (!signal.aborted) {
      const snapshot = state.getSnapshot();
      if (snapshot === last) {
        await changed.promise;
        changed = Promise.withResolvers();
      } else {
        last = snapshot;
        yield snapshot;
      }
    }
  } finally {
    signal.removeEventListener('abort', stop);
    end();
  }
}

/** An error without its stack, which names files of the worker. */
function plain(error: unknown): Extract<Reply, { error: unknown }>['error'] {
  if (isClientError(error)) return error instanceof ClientError ? error.toJSON() : error;
  const { name = 'Error', message = String(error), code } = (error ?? {}) as Partial<OtherError>;
  return { name, message, ...(typeof code === 'string' && { code }) };
}
