import type { AccountSigner } from '@posthouse/protocol';

/** Ends an operation early. Every operation accepts a signal; without one it runs to its end. */
export interface Abortable {
  readonly signal?: AbortSignal | undefined;
}

/** Options of operations that the account key signs; without a key the stored one is used. */
export interface WithAccountKey extends Abortable {
  /** 32 bytes, which are only used for this call, or a signer such as a wallet. */
  readonly accountKey?: AccountSigner | Uint8Array | undefined;
}

const never = new AbortController().signal;
/** Returns the signal of an operation; one that never aborts if none was given. */
export const signalOf = ({ signal = never }: Abortable) => signal;
