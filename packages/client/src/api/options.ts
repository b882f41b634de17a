import type { AccountSigner } from '@posthouse/protocol';

/** Ends an operation early. Every operation takes one; without it, it runs to its own end. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined;
}

/** For operations the account key signs; the stored one is taken where none is given. */
export interface WithAccountKey extends Abortable {
  readonly accountKey?: AccountSigner | undefined;
}

const never = new AbortController().signal;
/** The signal of an operation; one that never aborts where none was given. */
export const signalOf = ({ signal = never }: Abortable) => signal;
