/** Reads the registry contract through one Neo N3 node (07 §A6). */
import type { Network } from '../identity/network.ts';
import type { RelayEntry } from '../identity/registry.ts';
import { decodeUtf8, parseJsonInSteps } from '../json/parse.ts';
import type { JsonObject, JsonValue } from '../json/types.ts';
import { executionOf, type IteratorPlace, iteratorOf, resultOf, versionOf } from './answer.ts';
import { isRegistryError, RegistryError } from './errors.ts';
import { hostOf, originOf } from './nodes.ts';
import { isNullItem, readIntegerItem, readRelayItem } from './stack-item.ts';

/** One JSON-RPC request, to be sent by HTTP POST. */
export interface NodeRequest {
  readonly url: string;
  /** JSON. */
  readonly body: string;
  /** A longer answer must be refused while it is received. */
  readonly maxBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** The answer to a {@link NodeRequest}. */
export interface NodeAnswer {
  readonly status: number;
  readonly body: Uint8Array;
  /** Whether no earlier answer came over this connection; absent if the platform does not tell. */
  readonly isNewConnection?: boolean | undefined;
}

/**
 * Sends a request to a node: without redirects and credentials, with TLS verified, and with a time
 * limit. Rejects if there is no complete answer.
 */
export type NodePost = (request: NodeRequest) => Promise<NodeAnswer>;

/** Work that pauses itself now and then, so that a large answer does not hold an event loop. */
export type ReadingSteps<T> = Generator<undefined, T, undefined>;

/** Bounds of one read. */
export interface ReaderLimits {
  /** Bytes of an answer with one record, or the version. */
  readonly recordBytes: number;
  /** Bytes of an answer with records of a list. */
  readonly listBytes: number;
  /** Items that a list is read to, malformed and repeated ones too. */
  readonly listItems: number;
  /** Requests of one list. */
  readonly listRequests: number;
}

export const defaultReaderLimits: ReaderLimits = {
  recordBytes: 65_536,
  listBytes: 4_194_304,
  listItems: 10_000,
  listRequests: 1_000,
};

export interface NodeReaderOptions {
  readonly network: Network;
  readonly post: NodePost;
  readonly limits: ReaderLimits;
  readonly run: <T>(steps: ReadingSteps<T>) => Promise<T>;
}

/** The records of a list; malformed ones are only counted. */
export interface RelayList {
  readonly entries: readonly RelayEntry[];
  readonly malformed: number;
}

/** Items asked for at once; nodes permit 100 by default. */
const batchItems = 100;

/** Items read in one step: an item is checked in some ten microseconds. */
const itemsInStep = 8;

/** Sends one call of a read, and returns its result. */
type Ask = (method: string, params: readonly JsonValue[], maxBytes?: number) => Promise<JsonValue>;

/**
 * One node. Its network magic is checked before its first answer is used, and again after each
 * failure and each new connection.
 */
export class NodeReader {
  readonly url: string;
  readonly #options: NodeReaderOptions;
  #lastId = 0;
  /** Whether the magic was checked on the connections that exist. */
  #isChecked = false;
  #batch = batchItems;

  constructor(url: string, options: NodeReaderOptions) {
    this.url = url;
    this.#options = options;
  }

  /** Scheme, host and port, for messages. */
  get origin(): string {
    return originOf(this.url);
  }

  /** Whose opinion it is: see `hostOf`. */
  get host(): string {
    return hostOf(this.url);
  }

  /**
   * Reads a record of any status; `undefined` if the relay was never registered.
   * @throws RegistryError; the signal's reason
   */
  async getRelay(relayId: string, signal?: AbortSignal): Promise<RelayEntry | undefined> {
    return await this.#read(signal, async (ask) => {
      const argument = { type: 'Hash160', value: relayId };
      const { item } = executionOf(await ask('invokefunction', this.#call('getRelay', argument)));
      if (isNullItem(item)) return undefined;
      const entry = readRelayItem(item);
      if (entry.relay_id === relayId) return entry;
      throw new RegistryError('invalid_answer', 'it answered with the record of another relay');
    });
  }

  /** Reads the fee of a registration in 10^-8 GAS. @throws RegistryError; the signal's reason */
  async registrationFee(signal?: AbortSignal): Promise<number> {
    return await this.#read(signal, async (ask) => {
      const result = await ask('invokefunction', this.#call('getRelayRegistrationFee'));
      return readIntegerItem(executionOf(result).item);
    });
  }

  /**
   * Reads all records, in the node's order, repeated ones too; stops at the limit of items.
   * @throws RegistryError; the signal's reason
   */
  async listRelays(signal?: AbortSignal): Promise<RelayList> {
    const { listBytes } = this.#options.limits;
    return await this.#read(signal, async (ask) => {
      const result = await ask('invokefunction', this.#call('listRelays'), listBytes);
      const execution = executionOf(result);
      const list = new ListReader(this.#options);
      try {
        await this.#items(iteratorOf(execution), list, ask);
      } finally {
        if (execution.session !== undefined) await this.#terminate(execution.session);
      }
      return list;
    });
  }

  async #items(place: IteratorPlace, list: ListReader, ask: Ask): Promise<void> {
    if ('items' in place) return await list.add(place.items);
    const { listBytes, listRequests } = this.#options.limits;
    const { session, iterator } = place;
    for (let requests = 0; !list.isFull; requests += 1) {
      if (requests >= listRequests) {
        throw new RegistryError('incomplete_list', `its list has over ${requests} parts`);
      }
      const count = this.#batch;
      const items = await ask('traverseiterator', [session, iterator, count], listBytes);
      if (!Array.isArray(items) || items.length > count) {
        throw new RegistryError('invalid_answer', 'a part of the list is no list of that length');
      }
      // A node may return fewer items than were asked for: only an empty part is the end.
      if (items.length === 0) return;
      await list.add(items);
    }
  }

  /** Ends a session, also after a failed read; one that stays open ends at the node by itself. */
  async #terminate(session: string): Promise<void> {
    try {
      await this.#post('terminatesession', [session], { signal: undefined });
    } catch {
      // The read has its result or its error already.
    }
  }

  #call(method: string, ...args: readonly JsonObject[]): JsonValue[] {
    return [this.#options.network.registry, method, args];
  }

  /** Runs a read of which nothing is used unless the node belongs to the network. */
  async #read<T>(signal: AbortSignal | undefined, work: (ask: Ask) => Promise<T>): Promise<T> {
    let isReconnected = false;
    let isKnown = true;
    const ask: Ask = async (method, params, maxBytes) => {
      const answer = await this.#post(method, params, { maxBytes, signal });
      isReconnected ||= answer.isNewConnection === true;
      isKnown &&= answer.isNewConnection !== undefined;
      return answer.result;
    };
    try {
      if (!this.#isChecked) await this.#checkNetwork(signal);
      const result = await work(ask);
      // Another machine may have answered at the other end of a new connection.
      if (isReconnected) await this.#checkNetwork(signal);
      this.#isChecked = isKnown;
      return result;
    } catch (error) {
      // A malformed record says nothing about the node.
      if (!isRegistryError(error, 'invalid_record')) this.#isChecked = false;
      throw error;
    }
  }

  async #checkNetwork(signal: AbortSignal | undefined): Promise<void> {
    const { magic, batch } = versionOf((await this.#post('getversion', [], { signal })).result);
    if (String(magic) !== this.#options.network.magic) {
      throw new RegistryError('wrong_network', `it belongs to the network with magic ${magic}`);
    }
    this.#batch = Math.min(batchItems, batch ?? batchItems);
    this.#isChecked = true;
  }

  async #post(
    method: string,
    params: readonly JsonValue[],
    options: { readonly maxBytes?: number | undefined; readonly signal: AbortSignal | undefined },
  ): Promise<{ readonly result: JsonValue; readonly isNewConnection: boolean | undefined }> {
    const { post, run, limits } = this.#options;
    const { maxBytes = limits.recordBytes, signal } = options;
    this.#lastId += 1;
    const id = this.#lastId;
    const body = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    let answer: NodeAnswer;
    try {
      answer = await post({ url: this.url, body, maxBytes, signal });
    } catch (cause) {
      signal?.throwIfAborted();
      throw new RegistryError('unreachable', reasonOf(cause), { cause });
    }
    const { status, body: bytes, isNewConnection } = answer;
    if (status !== 200) throw new RegistryError('unreachable', `it answered with status ${status}`);
    if (bytes.length > maxBytes) throw new RegistryError('unreachable', `over ${maxBytes} bytes`);
    const value = await run(parse(bytes));
    signal?.throwIfAborted();
    return { result: resultOf(value, id), isNewConnection };
  }
}

/** Collects the records of a list. */
class ListReader implements RelayList {
  readonly entries: RelayEntry[] = [];
  malformed = 0;
  readonly #options: NodeReaderOptions;
  #items = 0;

  constructor(options: NodeReaderOptions) {
    this.#options = options;
  }

  get isFull(): boolean {
    return this.#items >= this.#options.limits.listItems;
  }

  async add(items: readonly JsonValue[]): Promise<void> {
    await this.#options.run(this.#add(items));
  }

  *#add(items: readonly JsonValue[]): ReadingSteps<void> {
    for (const item of items) {
      if (this.isFull) return;
      this.#items += 1;
      if (this.#items % itemsInStep === 0) yield;
      try {
        this.entries.push(readRelayItem(item));
      } catch (error) {
        if (!isRegistryError(error)) throw error;
        this.malformed += 1;
      }
    }
  }
}

function* parse(bytes: Uint8Array): ReadingSteps<JsonValue> {
  try {
    return yield* parseJsonInSteps(decodeUtf8(bytes));
  } catch (cause) {
    throw new RegistryError('invalid_answer', 'it is not JSON', { cause });
  }
}

/** The cause of a failed request, without the URL that some platforms put into it. */
function reasonOf(cause: unknown): string {
  const { code, name } = (cause ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  // What the caller aborts is no failure of the node.
  const isLate = name === 'TimeoutError' || name === 'AbortError' || code === 'ETIMEDOUT';
  if (isLate) return 'no answer in time';
  return typeof code === 'string' ? `no answer (${code})` : 'no complete answer';
}
