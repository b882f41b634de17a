import type { AccountSigner } from '@posthouse/protocol';

/** Ends an operation early. Every operation accepts a signal; without one it runs to its end. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined;
}

/** Options of operations that the account key signs; without a key the stored one is used. */
export interface WithAccountKey extends Abortable {
  readonly accountKey?: AccountSigner | undefined;
}

const never = new AbortController().signal;
/** Returns the signal of an operation; one that never aborts if none was given. */
export const signalOf = ({ signal = never }: Abortable) => signal;
