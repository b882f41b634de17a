/** The shared parts of a client; built once, in `client.ts`, and passed as parameters. */
import type {
  AccountSigner,
  DeviceCertificate,
  DeviceSigner,
  Network,
  Registry,
  SigningDevice,
} from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import type { RetryPolicy } from './connect/backoff.ts';
import type { Discovery } from './connect/discovery.ts';
import type { RelayConnection } from './connect/relay-connection.ts';
import type { Identity } from './connect/session.ts';
import type { Transport } from './connect/transport.ts';
import type { Waker } from './connect/waker.ts';
import type { Clock } from './environment.ts';
import type { EventHub } from './events/event-hub.ts';
import type { WakeSignal } from './follow/wake-signal.ts';
import type { Store } from './store/index.ts';
import type { ReadingLimits } from './sync/budget.ts';
import type { Sender } from './sync/sender.ts';

export interface Core {
  readonly network: Network;
  readonly registry: Registry;
  readonly discovery: Discovery;
  readonly transport: Transport;
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly reading: ReadingLimits;
  /** The readers of the store's event log. */
  readonly events: EventHub;
  /** Aborts when the client is closed. */
  readonly closed: AbortSignal;
  readonly retry: RetryPolicy;
  /** Loads what is needed seldom. No transaction awaits it. @throws ClientError `part_unavailable` */
  readonly later: () => Promise<typeof import('./later.ts')>;
  /** Wakes connections and waits before a retry. */
  readonly waker: Waker;
  /** Makes a separate connection; the caller closes it. */
  connect(relayId: string, identity: Identity, prefer?: 'websocket' | 'http'): RelayConnection;
}

/** The account of this store and this device of it. */
export interface AccountCore extends Core {
  readonly account: string;
  /** Compressed account key, base64url. */
  readonly publicKey: string;
  readonly device: SigningDevice & DeviceSigner;
  /** X25519 private key of the device. */
  readonly encryptionKey: Uint8Array;
  /** The device's latest certificate. */
  certificate(): Promise<DeviceCertificate>;
  /** Device connection to a relay, reused by later calls. */
  relay(relayId: string): RelayConnection;
  /** The same over HTTPS only, for what does not fit a WebSocket message. */
  relayOverHttp(relayId: string): RelayConnection;
  /** Wakes a running follower. */
  readonly wakeSignal: WakeSignal;
  /** Sends messages and channel writes, in the order of each conversation. */
  readonly sender: Sender;
  /** Unix milliseconds of the last read of a contact's device state before sending, by account. */
  readonly stateReads: Map<string, number>;
  /** Device connection to the current home relay. */
  home(): Promise<RelayConnection>;
  /** The stored account key, unless one is given. @throws ClientError `account_key_required` */
  accountKey(given: AccountSigner | Uint8Array | undefined): Promise<AccountSigner>;
}
