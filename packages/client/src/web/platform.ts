/**
 * The parts of IndexedDB and of the storage manager that this folder uses. The types of pages
 * (`lib: dom`) would be there for all folders, so that others could use pages by accident.
 */

export interface IdbRequest<T> {
  readonly result: T;
  readonly error: Error | null;
  onsuccess: (() => void) | null;
  onerror: (() => void) | null;
}

/** A request to open a database. */
interface IdbOpenRequest extends IdbRequest<IdbDatabase> {
  onupgradeneeded: (() => void) | null;
}

export interface IdbDatabase {
  readonly objectStoreNames: { contains(name: string): boolean };
  onversionchange: (() => void) | null;
  /** The browser has closed it; what was pending may never settle. */
  onclose: (() => void) | null;
  createObjectStore(name: string): unknown;
  transaction(
    names: readonly string[],
    mode: 'readonly' | 'readwrite',
    options: { readonly durability: 'strict' },
  ): IdbTransaction;
  close(): void;
}

export interface IdbTransaction {
  readonly error: Error | null;
  oncomplete: (() => void) | null;
  onabort: (() => void) | null;
  objectStore(name: string): IdbObjectStore;
  commit(): void;
  abort(): void;
}

/** A range of keys; made by the platform. */
export interface IdbKeyRange {
  readonly upper: string;
  readonly upperOpen: boolean;
}

/** A cursor without values. */
interface IdbCursor {
  readonly key: string;
  advance(count: number): void;
}

export interface IdbObjectStore {
  get(key: string): IdbRequest<string | undefined>;
  getAll(range: IdbKeyRange, count?: number): IdbRequest<string[]>;
  getAllKeys(range: IdbKeyRange, count?: number): IdbRequest<string[]>;
  openKeyCursor(range: IdbKeyRange, direction: 'prev'): IdbRequest<IdbCursor | null>;
  put(value: string, key: string): IdbRequest<unknown>;
  delete(key: string): IdbRequest<unknown>;
}

interface StorageManager {
  persisted(): Promise<boolean>;
  /** Absent in workers. */
  persist?(): Promise<boolean>;
  estimate(): Promise<{ readonly usage?: number; readonly quota?: number }>;
}

/** An exchange that tells how much of its body was sent, which `fetch` does not. */
export interface UploadRequest {
  readonly status: number;
  /** Where redirects led. */
  readonly responseURL: string;
  readonly response: ArrayBuffer | null;
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null };
  responseType: 'arraybuffer';
  onprogress: ((event: { readonly loaded: number }) => void) | null;
  onloadend: (() => void) | null;
  open(verb: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body: string | Uint8Array<ArrayBuffer> | undefined): void;
  abort(): void;
}

/** What the folder uses of the global object of a page or worker; members may be missing elsewhere. */
interface WebPlatform {
  /** Absent in service workers. */
  readonly XMLHttpRequest?: new () => UploadRequest;
  readonly origin?: string;
  readonly indexedDB?: { open(name: string, version: number): IdbOpenRequest };
  readonly IDBKeyRange: {
    bound(lower: string, upper: string, lowerOpen: boolean, upperOpen: boolean): IdbKeyRange;
  };
  readonly navigator: { readonly storage?: StorageManager };
}

export const platform = globalThis as unknown as WebPlatform;
