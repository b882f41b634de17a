import '../dispose-symbols.ts';
import { ClientError } from '../errors.ts';
import type { Store, StoreReader, StoreWriter } from '../store/index.ts';
import { IndexedDbTransaction, settled } from './indexed-db-transaction.ts';
import { type IdbDatabase, type IdbTransaction, platform } from './platform.ts';

/** Version of the database's layout. */
const layout = 1;

/** The one table. */
const table = 'entries';

/**
 * A store in IndexedDB, which pages and workers of one origin may open at the same time. A page
 * that is closed during a write has written all of it or nothing. The origin's storage holds private
 * keys: a script that runs in the origin can read them.
 *
 * @example
 * import { IndexedDbStore } from '@posthouse/client/web';
 * await using store = await IndexedDbStore.open('my-app');
 */
export class IndexedDbStore implements Store {
  readonly #name: string;
  readonly #database: IdbDatabase;
  /** Between all handles of the store, of any page or worker: something was committed. */
  readonly #commits: BroadcastChannel;
  readonly #watchers = new Set<() => void>();
  /** Reject the reads and writes that have not ended. */
  readonly #pending = new Set<(reason: ClientError) => void>();
  #closed: ClientError | undefined;

  private constructor(name: string, database: IdbDatabase) {
    this.#name = name;
    this.#database = database;
    this.#commits = new BroadcastChannel(`posthouse/${name}`);
    this.#commits.onmessage = () => this.#notify();
    database.onversionchange = () =>
      this.#close('another page deletes or upgrades it: reload this page');
    database.onclose = () => {
      this.#close('the data of this site was deleted: reload this page');
      // Chromium ends transactions then without an event, and settles none of their requests.
      for (const reject of this.#pending) reject(this.#closed as ClientError);
    };
  }

  /**
   * Opens the database of this name, or creates it.
   *
   * @throws ClientError `store_mismatch` for a database of a newer version or of another program;
   *   `store_unavailable` if the browser keeps nothing for this page, or the page has no HTTPS
   * @example
   * import { IndexedDbStore } from '@posthouse/client/web';
   * const store = await IndexedDbStore.open();
   */
  static async open(name = 'posthouse'): Promise<IndexedDbStore> {
    const { indexedDB } = platform;
    if (indexedDB === undefined || globalThis.navigator.locks === undefined) {
      throw unavailable('this page has no storage with locks: serve the app over HTTPS');
    }
    try {
      const request = indexedDB.open(name, layout);
      request.onupgradeneeded = () => request.result.createObjectStore(table);
      const database = await settled(request);
      if (database.objectStoreNames.contains(table)) return new IndexedDbStore(name, database);
      database.close();
    } catch (cause) {
      if ((cause as Error | null)?.name !== 'VersionError') throw asStoreError(cause);
    }
    throw new ClientError(
      'store_mismatch',
      `the database ${name} is of another program or of a newer version: reload this page`,
    );
  }

  /** @throws ClientError `store_unavailable` */
  async read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T> {
    return await this.#untilClosed(this.#read(work));
  }

  /** @throws ClientError `store_full`, `store_unavailable`: nothing of the write is stored */
  async write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    return await this.#untilClosed(this.#write(work));
  }

  async #read<T>(work: (tx: StoreReader) => Promise<T>): Promise<T> {
    const transaction = this.#begin('readonly');
    try {
      return await work(new IndexedDbTransaction(transaction.objectStore(table)));
    } catch (error) {
      throw asStoreError(error);
    }
  }

  async #write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    const transaction = this.#begin('readwrite');
    const ended = endOf(transaction);
    const entries = new IndexedDbTransaction(transaction.objectStore(table));
    let result: T;
    try {
      result = await work(entries);
      transaction.commit();
    } catch (error) {
      abort(transaction);
      await ended;
      // A request that failed has aborted the transaction: it is the cause of all other errors.
      throw this.#failed(transaction.error ?? error);
    }
    const fault = await ended;
    if (fault !== undefined) throw this.#failed(fault);
    if (entries.hasChanges) {
      if (this.#closed === undefined) this.#commits.postMessage(null);
      this.#notify();
    }
    return result;
  }

  /**
   * Waits until this handle alone has the lock of this name, among all pages and workers that have
   * the store open. The end of the page frees it.
   */
  lock(name: string, { signal }: { readonly signal: AbortSignal }): Promise<Disposable> {
    return new Promise((resolve, reject) => {
      const hold = () =>
        new Promise<void>((release) => resolve({ [Symbol.dispose]: () => release() }));
      const { locks } = globalThis.navigator;
      locks.request(`posthouse/${this.#name}/${name}`, { signal }, hold).catch(reject);
    });
  }

  /**
   * Calls `changed` soon after each commit, of this handle and of all others. A page that ends
   * between its commit and the call notifies no other.
   */
  watch(changed: () => void): Disposable {
    const watcher = () => changed();
    this.#watchers.add(watcher);
    return { [Symbol.dispose]: () => this.#watchers.delete(watcher) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#close('it was closed');
  }

  /** Settles as the transaction does, or with an error once the browser has closed the database. */
  async #untilClosed<T>(transaction: Promise<T>): Promise<T> {
    const closed = Promise.withResolvers<never>();
    this.#pending.add(closed.reject);
    try {
      return await Promise.race([transaction, closed.promise]);
    } finally {
      this.#pending.delete(closed.reject);
    }
  }

  /**
   * Returns the error of a write. After one without space, Firefox lets the next transaction of the
   * database delete and nothing else: it gets an empty one, so that the next write is a usual one.
   */
  #failed(error: unknown): unknown {
    if ((error as Error | null)?.name === 'QuotaExceededError' && this.#closed === undefined) {
      this.#begin('readwrite').commit();
    }
    return asStoreError(error);
  }

  #begin(mode: 'readonly' | 'readwrite'): IdbTransaction {
    if (this.#closed !== undefined) throw this.#closed;
    try {
      return this.#database.transaction([table], mode, { durability: 'strict' });
    } catch (cause) {
      throw unavailable('the browser has closed it: reload this page', cause);
    }
  }

  /** Transactions that have begun come to their end. */
  #close(reason: string): void {
    if (this.#closed !== undefined) return;
    this.#closed = unavailable(reason);
    this.#database.close();
    this.#commits.close();
    this.#notify();
  }

  #notify(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

/** Settles when a transaction has ended: with an error if it was aborted, also if none is told. */
function endOf(transaction: IdbTransaction): Promise<Error | undefined> {
  return new Promise((resolve) => {
    transaction.oncomplete = () => resolve(undefined);
    transaction.onabort = () => resolve(transaction.error ?? new DOMException('', 'AbortError'));
  });
}

function abort(transaction: IdbTransaction): void {
  try {
    transaction.abort();
  } catch {
    // It has ended.
  }
}

function unavailable(reason: string, cause?: unknown): ClientError {
  return new ClientError('store_unavailable', `the store cannot be used: ${reason}`, { cause });
}

/** What the engine throws, as an error that names the cure; errors of `work` as they are. */
function asStoreError(error: unknown): unknown {
  if (!(error instanceof DOMException)) return error;
  switch (error.name) {
    case 'QuotaExceededError':
      return new ClientError(
        'store_full',
        'the browser has no more space for this site: free space on the device',
        { cause: error },
      );
    case 'InvalidStateError':
    case 'TransactionInactiveError':
      return new TypeError('a transaction awaited something other than its own calls', {
        cause: error,
      });
    default:
      return unavailable(`${error.name}: reload this page, or permit it to store data`, error);
  }
}
