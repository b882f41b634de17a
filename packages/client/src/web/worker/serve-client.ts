/** The worker's end: opens the client and makes the page's calls. */
import { Network, type RegistryNodes, staticRegistry } from '@posthouse/protocol';
import { webPrimitives } from '@posthouse/protocol/web';
import { Account } from '../../account.ts';
import { Client } from '../../client.ts';
import { webTransport } from '../../connect/web-transport.ts';
import { ClientError, isClientError } from '../../errors.ts';
import { encryptedStore } from '../../store/encrypted.ts';
import { IndexedDbStore } from '../indexed-db-store.ts';
import type {
  AccountFacts,
  Call,
  OtherError,
  Reply,
  Request,
  WorkerClientOptions,
  WorkerPort,
} from './messages.ts';

/** Methods that a page calls by one name; those of the account's parts have two. */
const methods = {
  client: ['account', 'setUp', 'requestDevice', 'completeDevice', 'close'],
  account: ['sync', 'status', 'wake'],
} as const;

/** Serves the page at the other end of a port, until the worker ends. */
export function serveClient(port: WorkerPort): void {
  const served = new ServedClient((reply) => {
    try {
      port.postMessage(reply);
    } catch (cause) {
      port.postMessage({ id: reply.id, error: plain(cause) } satisfies Reply);
    }
  });
  port.addEventListener('message', ({ data }) => served.handle(data as Request));
  port.start?.();
}

class ServedClient {
  readonly #reply: (reply: Reply) => void;
  readonly #aborts = new Map<number, AbortController>();
  readonly #streams = new Map<number, AsyncGenerator>();
  #client: Client | undefined;
  #account: Account | undefined;

  constructor(reply: (reply: Reply) => void) {
    this.#reply = reply;
  }

  handle(request: Request): void {
    const { id } = request;
    if (request.kind === 'abort' || request.kind === 'leave') {
      this.#aborts.get(id)?.abort();
      if (request.kind === 'leave') this.#leave(id);
      return;
    }
    this.#answer(request).then(
      (reply) => this.#reply(reply),
      (error: unknown) => this.#reply({ id, error: plain(error) }),
    );
  }

  async #answer(request: Exclude<Request, { kind: 'abort' | 'leave' }>): Promise<Reply> {
    const { id } = request;
    if (request.kind === 'next') return await this.#next(id);
    if (request.kind === 'call') return await this.#call(request);
    if (this.#client !== undefined) {
      throw new ClientError('invalid_input', 'the worker has a client: start another worker');
    }
    this.#client = await openClient(request.options);
    return { id, value: undefined };
  }

  async #call({ id, path, args, abortable }: Call): Promise<Reply> {
    const stop = new AbortController();
    const values = args.map((value, index) =>
      index === abortable ? { ...(value as object), signal: stop.signal } : value,
    );
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
    }
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

async function openClient(options: WorkerClientOptions): Promise<Client> {
  const { context, word, registry, store: name, storeKey } = options;
  const primitives = webPrimitives;
  const network = new Network({ context, primitives, ...(word !== undefined && { word }) });
  const plainStore = await IndexedDbStore.open(name);
  return await Client.open({
    network,
    registry: Object.hasOwn(registry, 'nodes')
      ? (registry as RegistryNodes)
      : staticRegistry(network, registry),
    transport: webTransport,
    store:
      storeKey === undefined
        ? plainStore
        : await encryptedStore(plainStore, { key: storeKey, primitives }),
  });
}

/** Yields the account's snapshot each time it changes. */
async function* snapshots({ state }: Account, signal: AbortSignal): AsyncGenerator {
  let changed = Promise.withResolvers<void>();
  const end = state.subscribe(() => changed.resolve());
  const stop = () => changed.resolve();
  signal.addEventListener('abort', stop, { once: true });
  try {
    for (;;) {
      await changed.promise;
      if (signal.aborted) return;
      changed = Promise.withResolvers();
      yield state.getSnapshot();
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
