/** The parts that handlers use. `relay.ts` builds them once; they are passed as parameters. */
import type { FinalRoute, Network } from '@posthouse/protocol';
import type { KeyToSeal, Random, SealedKey, SignatureCheck } from '@posthouse/protocol/crypto';
import type {
  RelayMethodName,
  RelayNotificationName,
  RelayResponse,
} from '@posthouse/protocol/federation';
import type { JsonObject } from '@posthouse/protocol/json';
import type { Logger } from 'pino';
import type { ResultValue } from './dispatch/json-text.ts';
import type { Notice } from './dispatch/notice.ts';
import type { JobBackoff } from './jobs/retry-backoff.ts';
import type { KnownAccounts } from './known-accounts.ts';
import type { RelayLimits } from './limits.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Session } from './sessions/session.ts';
import type { Reader, Storage } from './storage/types.ts';

export interface RelayContext {
  readonly network: Network;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly random: Random;
  readonly verifier: Verifier;
  readonly keySealer: KeySealer;
  readonly limits: RelayLimits;
  readonly identity: RelayIdentity;
  readonly routeDirectory: RouteDirectory;
  readonly routeLookups: RouteLookups;
  readonly relayClient: RelayClient;
  readonly relayQueries: RelayQueries;
  readonly registryStatus: RegistryStatus;
  readonly bus: Bus;
  readonly sessions: Sessions;
  readonly challenges: ChallengeRoom;
  readonly registration: Registration;
  readonly blocks: Blocks;
  readonly dailyBytes: DailyBytes;
  readonly policy: Policy;
  readonly restoreLosses: RestoreLosses;
  readonly knownAccounts: KnownAccounts;
  readonly availability: Availability;
  readonly disk: DiskRoom;
  readonly jobs: Jobs;
  readonly backoff: JobBackoff;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** What clients know and this relay lost, because it was put back to an earlier state. */
interface RestoreLosses {
  note(kind: 'group' | 'channel', id: string): void;
  /** Those that were noted today. */
  counts(): { readonly groups: number; readonly channels: number };
}

/** Which accounts may come to be at home here. */
export type RegistrationMode = 'open' | 'invite' | 'approval' | 'list' | 'closed';

/** Who may come to be at home at this relay, as the operator configured it (03 §4.3). */
interface Registration {
  readonly mode: RegistrationMode;
}

/** What of the operator's blocks began. */
export interface BlockChange {
  /** IDs of accounts that are blocked and were not until now. */
  readonly accounts: readonly string[];
}

/** Accounts and addresses that the operator refuses, in the memory of this process (02 §18). */
export interface Blocks {
  hasAccount(account: string): boolean;
  /** Whether a channel of this relay is treated as if it was not hosted here (06 §8). */
  hasChannel(channelId: string): boolean;
  /** Whether any address is blocked: if not, none has to be looked up. */
  readonly hasAddresses: boolean;
  /** @param address as limits count it (`addressKey`) */
  hasAddress(address: string): boolean;
  /** Reads from storage what changed. */
  refresh(): Promise<void>;
  /** Calls a listener after each change, until disposed of. */
  onChange(listener: (change: BlockChange) => void): Disposable;
}

/** What a call or a delivery may store, and for whom it counts. */
export interface StoredBytes {
  /** The account that causes it: the caller, or the sender of what is delivered. */
  readonly account: string;
  /** The relay at which that account is at home; absent for this relay. */
  readonly relay?: string | undefined;
  /** The account at home here that receives what is delivered. */
  readonly recipient?: string | undefined;
  /** ID of the group, for a message to one. */
  readonly group: string | undefined;
  /** ID of the channel, for a post or an edit in one. */
  readonly channel: string | undefined;
  /** Bytes of the request. */
  readonly bytes: number;
  /** False for what removes or ends something: it may go over the limits by a part of them. */
  readonly isLimited: boolean;
}

/**
 * Limits what accounts store in a day and in all, what is stored in a day in a group, in a channel and
 * for an account, and what other relays and their accounts store in a day (02 §18).
 */
export interface DailyBytes {
  /** @throws ProtocolError `rate_limited` with the seconds until the next day (UTC) */
  require(stored: StoredBytes): void;
  /**
   * Counts what a call stored.
   *
   * @param isNew false for a repeat, which stored nothing: it counts for its account only
   * @returns a promise if a count has to be saved; it never rejects, since the call was made
   */
  add(stored: StoredBytes, isNew: boolean): Promise<void> | undefined;
  /** Reads how many bytes an account may still store, attachments included; 0 or less if none. */
  readRoom(tx: Reader, account: string): Promise<number>;
}

/** What the operator's program is asked about, before it is stored. */
export type PolicyQuestion = {
  /** Who causes it. */
  readonly account: string;
  /** The client's address. */
  readonly address: string;
} & (
  | { readonly ask: 'account' | 'group' }
  /** A new post, or an edit of one, as the caller signed it: it is public. */
  | { readonly ask: 'post'; readonly channel: string; readonly post: JsonObject }
);

/** Asks the program that the operator configured, if there is one. */
export interface Policy {
  /** Whether there is a program to ask. */
  readonly isOn: boolean;
  /**
   * Asks after all checks of a call, and before anything of it is stored.
   *
   * @param homeRelay of an account at home elsewhere
   * @throws ProtocolError `forbidden` if the program refuses; `temporarily_unavailable` if it gives no
   *   answer, unless the operator chose to go on then, and if too many questions wait;
   *   `rate_limited` if the account causes too many at once
   */
  ask(question: PolicyQuestion, homeRelay?: string): Promise<void>;
}

/** Finds the session of a token, and says whether sessions ended meanwhile (02 §10). */
export interface Sessions {
  /**
   * Counts notices of sessions that end or end earlier, and gaps in which such notices may have
   * been lost. A caller that read a session before the count changed must read it again.
   */
  readonly changes: number;
  /**
   * Whether sessions in memory may be served: it is known which ended. False in one of several processes while notices of
   * the others do not arrive, or if it has not read for `limits.sessionTrust` which sessions ended;
   * then each session must be read from storage.
   */
  readonly isCurrent: boolean;
  /**
   * When it was last read from storage which sessions ended, in milliseconds of the clock's
   * `monotonic`. Always now in a relay of one process.
   */
  readonly asOf: number;
  /** Whether the token was good for a session when it was last looked up, as far as memory has it. */
  isKnown(token: string): boolean;
  /** Returns the valid session of a token at an origin; every other case is `undefined` (02 §2.6). */
  find(token: string, origin: string): Promise<Session | undefined>;
  /** Reads the session from storage, past any cache; `undefined` once it is over. */
  confirm(session: Session): Promise<Session | undefined>;
}

/** The relay's clock and timers. Tests pass a clock that they advance. */
export interface Clock {
  /** Unix seconds. */
  now(): number;
  /** Milliseconds that never go back, for intervals; unrelated to `now`. */
  monotonic(): number;
  /** Runs `work` once after so many milliseconds, until the signal says otherwise. */
  after(milliseconds: number, work: () => void): Disposable;
}

/** Verifies signatures off the main thread, with a bounded cache of imported keys. */
export interface Verifier {
  /**
   * @param payer who pays for the call; its verifications wait in turn with those of others
   * @throws ProtocolError `invalid_signature` when any check fails; `temporarily_unavailable` if too
   *   many of the payer's wait
   */
  verify(checks: readonly SignatureCheck[], what: string, payer?: string): Promise<void>;
  /**
   * Verifies an object unless the same text verified before. `text` contains everything that the
   * signatures cover. The cache is bounded.
   */
  verifyOnce(
    text: string,
    checks: () => readonly SignatureCheck[],
    what: string,
    payer?: string,
  ): Promise<void>;
  /** Returns whether the same text verified before: then {@link verifyOnce} need not be asked. */
  hasVerified(text: string, what: string): boolean;
}

/** Seals keys to devices, off the event loop. */
export interface KeySealer {
  /**
   * Seals keys, in their order; `undefined` where a receiver is no key to seal to (01 E2).
   *
   * @param keys with receivers of 32 bytes; taken a few at once, when it is their turn
   * @param payer who pays for the call; its keys wait in turn with those of others
   */
  seal(keys: Iterable<KeyToSeal>, payer: string): Promise<(SealedKey | undefined)[]>;
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

/** An account's home relay, as far as this relay can establish it (01 section 15). */
export type Home =
  | { readonly kind: 'local' }
  | { readonly kind: 'elsewhere'; readonly relayId: string }
  | { readonly kind: 'conflict' }
  /** Here by a route of a restored database: the account may have moved, and was not looked up yet. */
  | { readonly kind: 'unconfirmed' }
  | { readonly kind: 'unknown' };

/**
 * Finds routes of accounts at home on other relays. `accounts/` stores what it returns and selects
 * by revision and conflict (03 section 3.4).
 */
export interface RouteDirectory {
  /** Whether another relay is known that can be asked. */
  readonly hasRelays: boolean;
  /** Whether the registry was read since the start, and lists no other relay as active. */
  readonly isAlone: boolean;
  /**
   * Whether the registry was read since the start, and every other relay was out of reach for so long
   * that nothing waits for it (07 §B12).
   */
  readonly areAllAway: boolean;
  /**
   * Finds the account's verified, unexpired final routes: none, one, or several that differ.
   *
   * @param only asks this relay alone
   * @param known the home relay by the last known route: it is always asked
   */
  resolveRemote(account: string, only?: string, known?: string): Promise<FoundRoutes>;
  /**
   * Sends a route that this relay committed to the relays nearest to its key, and waits until enough
   * of them stored it, or the time is over (07 §B12).
   *
   * @param leaving the relay that the account leaves; it is always sent the route
   * @param nearest the nearest relays if a lookup has just found them
   */
  replicate(
    route: FinalRoute,
    leaving: string | undefined,
    nearest?: readonly string[],
  ): Promise<Replication>;
}

/** What a search of the route directory found. */
export interface FoundRoutes {
  readonly routes: readonly FinalRoute[];
  /**
   * Routes that could not be confirmed now: the registry or the named relay's descriptor cannot be
   * read, the relay is not active, or the route is not valid by this relay's clock. No signature was
   * verified.
   */
  readonly unverified: readonly FinalRoute[];
  /** IDs of the relays that were to be asked and gave no valid answer: they may know others. */
  readonly missed: readonly string[];
  /** IDs of the relays that answered with a route which names themselves. */
  readonly claimed: readonly string[];
  /** IDs of the nearest relays that answered: those that are to hold a copy. */
  readonly nearest: readonly string[];
}

/** Which relays stored a route. */
export interface Replication {
  /** Whether they are enough for the replica policy. */
  readonly isEnough: boolean;
  /** Whether the relay that the account leaves stored it; true if it leaves none. */
  readonly reachedLeaving: boolean;
}

/** What a lookup in the route directory ended with, and whether it found a valid route. */
export interface RouteLookup extends Pick<FoundRoutes, 'missed' | 'claimed' | 'nearest'> {
  readonly home: Home;
  readonly hasFound: boolean;
}

/** A challenge that was issued (02 §9.2). */
export interface IssuedChallenge {
  /** SHA-256 of its nonce. */
  readonly hash: string;
  readonly account: string;
  /** The client's address, as limits count it. */
  readonly address: string;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** Room for the challenges that wait for their proof, in the memory of this process (02 §18). */
export interface ChallengeRoom {
  /**
   * Counts a challenge that is about to be issued.
   *
   * @returns hash of the challenge that has to end for it, if one has to
   * @throws ProtocolError `rate_limited` if there are too many and each network has few
   */
  take(challenge: IssuedChallenge): string | undefined;
  /** Counts a challenge that was used no more. */
  forget(hash: string): void;
}

/** Limits the questions to the route directory; in the memory of one process (07 §B12). */
export interface RouteLookups {
  /** When this process began; routes confirmed before are confirmed again. Unix seconds. */
  readonly startedAt: number;
  /** Tells whether a stored home serves without another lookup. */
  isFresh(account: string, stored: Home): boolean;
  /**
   * Runs a lookup, or joins the one of this account that is under way.
   *
   * @param options.asker key of who causes it, which is charged; nothing is charged without one
   * @throws ProtocolError `rate_limited`; what `lookUp` throws
   */
  run(
    account: string,
    options: {
      readonly asker: string | undefined;
      readonly lookUp: () => Promise<RouteLookup>;
    },
  ): Promise<RouteLookup>;
}

/** The status of this relay in the network's registry (01 section 12). */
export interface RegistryStatus {
  /** Whether the registry lists this relay as `active` now. */
  isActive(): Promise<boolean>;
}

/** Requests and notifications to other relays (07 §C). */
export interface RelayClient {
  /**
   * Sends one request to a relay and returns its answer. Settles within a minute; a failure of the
   * other relay or of the network is a {@link RelayAnswer}, not an exception.
   */
  call(relayId: string, method: RelayMethodName, params: ResultValue): Promise<RelayAnswer>;
  /** Sends one notification. Returns whether it was sent; never throws. */
  notify(relayId: string, name: RelayNotificationName, params: JsonObject): Promise<boolean>;
  /**
   * Returns until when no request is sent to a relay that failed, Unix seconds; `undefined` for any
   * other relay.
   */
  pausedUntil(relayId: string): number | undefined;
  /** Returns how many calls to a relay may be under way at once now; more wait for their turn. */
  callsAtOnce(relayId: string): number;
}

/** The answer to one request to another relay. */
export type RelayAnswer =
  | RelayResponse
  /** It is certain that no request was sent. */
  | { readonly kind: 'unreachable' }
  /** A request may have arrived; only the same relay knows (04 section 16.3). */
  | { readonly kind: 'unknown' };

/**
 * Limits the queries to other relays that calls here cause (07 §C9): by the account that causes
 * them, by the relay that is asked, and in all.
 */
export interface RelayQueries {
  /**
   * Takes one query of the account that causes it. The query is under way until the returned
   * value is disposed.
   *
   * @throws ProtocolError `rate_limited` with the seconds to wait
   */
  begin(account: string): Disposable;
  /**
   * Enters a request to a relay, which is under way until the returned value is disposed.
   * @throws ProtocolError `rate_limited` with the seconds to wait
   */
  beginRequest(relayId: string): Disposable;
  /**
   * Takes one new account of what an account may cause: a query whose answer adds a row for good.
   * @throws ProtocolError `rate_limited` with the seconds to wait
   */
  takeNewAccount(account: string): void;
}

/** Whether this process serves its clients. */
export interface Availability {
  /** Whether it alone, of several processes, cannot reach storage: clients find another one. */
  readonly isCutOff: boolean;
  /** Calls a listener each time this process is cut off. */
  onCutOff(listener: () => void): Disposable;
}

/** What is on a disk: the embedded database, or attachments. */
export type DiskPart = 'data' | 'blobs';

/** Whether the disks that this process writes to have room. */
export interface DiskRoom {
  /**
   * Whether the disk of a part has less room than `limits.diskFree`, or would have with so many bytes
   * more. False if the part is not on a disk that this process sees.
   */
  isLow(part: DiskPart, more?: number): boolean;
}

/** Carries notices to every process of this relay, this one included. */
export interface Bus {
  /** Whether this relay may have other processes. */
  readonly isShared: boolean;
  /**
   * Whether notices of other processes arrive now; always true for a relay of one process. Each
   * change is announced by a `gap` notice.
   */
  readonly isConnected: boolean;
  /** Publishes notices after the commit that caused them; never throws and never waits. */
  publish(notices: readonly Notice[]): void;
  subscribe(listener: (notice: Notice) => void): Disposable;
}

/** Work driven by stored deadlines: retention, retries, expiry. */
export interface Job {
  /** Dotted, for logs and {@link Jobs.wake}: `messages.delivery`. */
  readonly name: string;
  /** Whether it deletes what is due: it does not run while the clock may be wrong. */
  readonly deletes?: true;
  /** Seconds between two tries at the most, after failures; for a job that only reads. */
  readonly retryAtMost?: number;
  /**
   * Does, while deleting is paused, what does not delete; as `run`, but without being woken.
   * @param since when the last such run began, Unix seconds; `undefined` for the first of a pause
   */
  readonly runPaused?: (
    context: RelayContext,
    signal: AbortSignal,
    since: number | undefined,
  ) => Promise<number | undefined>;
  /**
   * Does what is due, in bounded batches. May be interrupted anywhere and run again; an exception is
   * logged and the job is retried later.
   *
   * @returns the next deadline, Unix seconds (now or earlier: run again at once), or `undefined` to
   *   wait for {@link Jobs.wake} or the runner's idle interval
   * @param onWake calls a listener at each {@link Jobs.wake} of this job during the run, until
   *   disposed of; for a job whose run waits for something slow
   */
  run(context: RelayContext, signal: AbortSignal, onWake: OnWake): Promise<number | undefined>;
}

export type OnWake = (listener: () => void) => Disposable;

export interface Jobs {
  /** Runs a job soon; called after the write that gave it work. Never waits. */
  wake(name: string): void;
}
