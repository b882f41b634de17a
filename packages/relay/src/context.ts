/** The parts every handler may use; built once, in `relay.ts`, and passed by hand. */
import type { AccountRoute, Network, Random, SignatureCheck } from '@posthouse/protocol';
import type { Logger } from 'pino';
import type { Notice } from './call.ts';
import type { RelayLimits } from './limits.ts';
import type { Storage } from './storage/types.ts';

export interface RelayContext {
  readonly network: Network;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly random: Random;
  readonly verifier: Verifier;
  readonly limits: RelayLimits;
  readonly identity: RelayIdentity;
  readonly routes: RouteDirectory;
  readonly bus: Bus;
  readonly log: Logger;
}

/** Time comes in as a parameter; tests drive it. */
export interface Clock {
  /** Unix seconds. */
  now(): number;
  /** Runs `work` once after so many milliseconds, until the signal says otherwise. */
  after(milliseconds: number, work: () => void): Disposable;
}

/** Verifies signatures off the main thread, with imported keys and certificates remembered. */
export interface Verifier {
  /** @throws ProtocolError `invalid_signature` when any check fails */
  verify(checks: readonly SignatureCheck[], what: string): Promise<void>;
  /**
   * As `verify`, for an object identified by the text of everything it covers: a text that
   * verified before is not verified again. Bounded.
   */
  verifyOnce(text: string, checks: () => readonly SignatureCheck[], what: string): Promise<void>;
}

/** The relay's own keys. */
export interface RelayIdentity {
  readonly relayId: string;
  /** Compressed P-256 key, base64url. */
  readonly publicKey: string;
  /** libp2p Peer ID text. */
  readonly peerId: string;
  /** Account-style signature (01 section 5.1), base64url. */
  sign(message: Uint8Array): string;
}

/** Where an account is at home, as far as this relay can establish (01 section 15). */
export type Home =
  | { readonly kind: 'local'; readonly route: AccountRoute }
  | { readonly kind: 'elsewhere'; readonly relayId: string }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'unknown' };

/**
 * Answers where accounts are at home. Accounts of this relay are answered from its storage; other
 * relays come in behind the same interface.
 */
export interface RouteDirectory {
  /** The verified current route of an account that is not at home here, or why there is none. */
  resolveRemote(
    account: string,
  ): Promise<
    | { readonly kind: 'route'; readonly route: AccountRoute }
    | { readonly kind: 'conflict' }
    | { readonly kind: 'not-found' }
  >;
}

/** Carries notices to every process of this relay, this one included. */
export interface Bus {
  publish(notices: readonly Notice[]): void;
  subscribe(listener: (notice: Notice) => void): Disposable;
}
