import type { SignatureCheck } from '@posthouse/protocol/crypto';

/** Verifies single signatures off the event loop. It does not limit how many are under way. */
export interface SignatureEngine {
  /**
   * Returns whether a signature verifies; `undefined` if the engine stopped before it knew.
   *
   * @param check passes `isAcceptableCheck`
   */
  verify(check: SignatureCheck): Promise<boolean | undefined>;
}
