/** What a page and the worker with its client post to each other. */
import type { PlainError } from '../../errors.ts';

/** What the worker opens, as plain data. */
export interface WorkerClientOptions {
  /** The network's context, `neo:<magic>:<registry>` (01 §1). */
  readonly context: string;
  /** The service word; that of the protocol by default. */
  readonly word?: string;
  /** The content of a registry's file, or nodes of the chain that has the registry. */
  readonly registry: object;
  /** Name of the store, which all tabs share; `posthouse` by default. */
  readonly store?: string;
  /** 32 bytes that open an encrypted store. */
  readonly storeKey?: Uint8Array;
}

/** From the page. */
export type Request =
  | { readonly kind: 'open'; readonly id: number; readonly options: WorkerClientOptions }
  | Call
  /** Asks for the next value of a stream. */
  | { readonly kind: 'next'; readonly id: number }
  /** Aborts the signal of a call or stream. */
  | { readonly kind: 'abort'; readonly id: number }
  /** Leaves a stream: its last value was not finished with. No reply. */
  | { readonly kind: 'leave'; readonly id: number };

/** A call of a method of the client or of its account. */
export interface Call {
  readonly kind: 'call';
  readonly id: number;
  /** Names of members from the client or account to the method. */
  readonly path: readonly string[];
  readonly args: readonly unknown[];
  /**
   * The argument whose members `signal` and `progress` stayed in the page, if there is one; `progress` is `true` if
   * the page wants to be told.
   */
  readonly abortable?: number;
}

/** From the worker: the result of a request, by its ID. */
export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: PlainError | OtherError }
  /** What a call that goes on passed to `progress`. */
  | { readonly id: number; readonly progress: unknown }
  /** The stream has ended. */
  | { readonly id: number; readonly done: true };

/** An error that is not the client's: of the protocol's checks, or a fault. */
export interface OtherError {
  readonly name: string;
  readonly message: string;
  readonly code?: unknown;
}

/** What stands for the account in a result: its methods stay in the worker. */
export interface AccountFacts {
  readonly accountInWorker: true;
  readonly id: string;
  readonly deviceId: string;
  readonly publicKey: string;
}

/** A worker, or a port of a channel to one. */
export interface WorkerPort {
  postMessage(message: unknown): void;
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  addEventListener(
    type: 'message',
    listener: (event: { readonly data: unknown }) => void,
    options?: { readonly signal?: AbortSignal },
  ): void;
  addEventListener(
    type: 'error' | 'messageerror',
    listener: (event: { readonly message?: string }) => void,
    options?: { readonly signal?: AbortSignal },
  ): void;
  /** Of ports only. */
  start?(): void;
}
