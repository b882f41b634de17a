/** The parts every handler may use; built once, in `relay.ts`, and passed by hand. */
import type { FinalRoute, Network } from '@posthouse/protocol';
import type { Random, SignatureCheck } from '@posthouse/protocol/crypto';
import type { JsonObject } from '@posthouse/protocol/json';
import type { Logger } from 'pino';
import type { Notice } from './dispatch/notice.ts';
import type { JobBackoff } from './jobs/retry-backoff.ts';
import type { RelayLimits } from './limits.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Session } from './sessions/session.ts';
import type { Storage } from './storage/types.ts';

export interface RelayContext {
  readonly network: Network;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly random: Random;
  readonly verifier: Verifier;
  readonly limits: RelayLimits;
  readonly identity: RelayIdentity;
  readonly routeDirectory: RouteDirectory;
  readonly relayClient: RelayClient;
  readonly registryStatus: RegistryStatus;
  readonly bus: Bus;
  readonly sessions: Sessions;
  readonly jobs: Jobs;
  readonly backoff: JobBackoff;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Finds the session of a token, and says whether sessions ended meanwhile (02 §10). */
export interface Sessions {
  /**
   * Counts notices of sessions that end or end earlier, and gaps in which such notices may have
   * been lost. A caller that read a session before the count changed must read it again.
   */
  readonly changes: number;
  /** Whether {@link find} would answer from memory. */
  isCached(token: string): boolean;
  /** Returns the valid session of a token at an origin; every other case is `undefined` (02 §2.6). */
  find(token: string, origin: string): Promise<Session | undefined>;
  /** Reads the session from storage, past any cache; `undefined` once it is over. */
  confirm(session: Session): Promise<Session | undefined>;
}

/** Time comes in as a parameter; tests drive it. */
export interface Clock {
  /** Unix seconds. */
  now(): number;
  /** Milliseconds that never go back, for intervals; unrelated to `now`. */
  monotonic(): number;
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
  | { readonly kind: 'local' }
  | { readonly kind: 'elsewhere'; readonly relayId: string }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'unknown' };

/**
 * Answers where accounts are at home that this relay does not know about itself. `accounts/` keeps
 * what it answers and selects by revision and conflict (03 section 3.4).
 */
export interface RouteDirectory {
  /** Verified, unexpired final routes of the account as found now; none, or several that differ. */
  resolveRemote(account: string): Promise<readonly FinalRoute[]>;
}

/** What the network's registry says of this relay (01 section 12). */
export interface RegistryStatus {
  /** Whether it names this relay as `active` now. */
  isActive(): Promise<boolean>;
}

/** Requests to other relays (07). */
export interface RelayClient {
  /**
   * One `message.deliver`; settles within a minute, and never throws for what the other side or
   * the way to it does.
   */
  deliver(relayId: string, params: JsonObject): Promise<DeliveryAnswer>;
}

/** What became of one `message.deliver` (04 section 16). */
export type DeliveryAnswer =
  /** The target accepted it. */
  | { readonly kind: 'accepted' }
  /** The target refused it. A code the catalogue does not have stays as it came. */
  | {
      readonly kind: 'refused';
      readonly code: string;
      readonly message: string;
      /** Valid `retry_after` of `rate_limited`, seconds. */
      readonly retryAfter?: number;
    }
  /** No request left here for certain. */
  | { readonly kind: 'unreachable' }
  /** A request may have arrived; only the same target can tell (16.3). */
  | { readonly kind: 'unknown' };

/** Carries notices to every process of this relay, this one included. */
export interface Bus {
  /** Whether other processes of this relay may be behind it. */
  readonly isShared: boolean;
  /**
   * Whether notices of other processes arrive now; always where there are none. While they do not,
   * memory says nothing about sessions: only storage does. Each change comes with a `gap` notice.
   */
  readonly isConnected: boolean;
  /** Called after the commit that the notices tell of; never throws, and waits for nobody. */
  publish(notices: readonly Notice[]): void;
  subscribe(listener: (notice: Notice) => void): Disposable;
}

/** Work that stored deadlines drive: retention, retries, expiry. */
export interface Job {
  /** Dotted, for logs and {@link Jobs.wake}: `messages.delivery`. */
  readonly name: string;
  /**
   * Does what is due, in bounded portions, and says when there is more: the Unix second of the next
   * deadline (now or earlier: at once), or `undefined` to wait for a wake or the next look of the
   * runner. May be cut off anywhere and run again; what it throws is logged, and it is tried again
   * later.
   */
  run(context: RelayContext, signal: AbortSignal): Promise<number | undefined>;
}

export interface Jobs {
  /** Lets a job look again soon; called after the write that gave it work. Never waits. */
  wake(name: string): void;
}
