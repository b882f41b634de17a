/** What is remembered of accounts; `accounts/facts.ts` does it. */

/** A device of an account's stored state, valid or not. */
export interface KnownDevice {
  readonly deviceId: string;
  readonly notBefore: number;
  readonly expiresAt: number;
  /** Digest of the certificate's text. */
  readonly certificateId: string;
  /** Canonical JSON. */
  readonly certificate: string;
  /** Its Ed25519 key, base64url. */
  readonly signing_public_key: string;
}

/**
 * What is stored about an account, as of one snapshot. Nothing in it depends on the time: who is at
 * home, or valid, follows from it and the time of a call.
 */
export interface AccountFacts {
  readonly account: string;
  /** Its known route, as far as that determines the home. */
  readonly home: {
    readonly relayId: string;
    readonly heldUntil: number;
    readonly conflict: boolean;
  };
  /** Of the known route, and of the authoritative device state, -1 without one. */
  readonly routeRevision: number;
  readonly stateRevision: number;
  /** By device ID, in the order of the IDs. */
  readonly devices: ReadonlyMap<string, KnownDevice>;
  /** Whether public discovery is on. */
  readonly isPublic: boolean;
}

/** Facts of accounts, in bounded memory of this process. */
export interface KnownAccounts {
  /**
   * Finds the facts of an account, in memory or by one read; `undefined` if there are none, or if
   * they may be changing now.
   */
  find(account: string): AccountFacts | Promise<AccountFacts | undefined>;
  /**
   * Tells whether facts still hold for this process. If an append asks this where it is applied, no
   * write of this process has changed them before it.
   */
  isCurrent(facts: AccountFacts): boolean;
}
