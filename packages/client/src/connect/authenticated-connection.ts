/** One authenticated way to a relay: a channel with its session, from opening to its end. */
import { type MethodName, methods, type Network, relayOrigin } from '@posthouse/protocol';
import type { Clock } from '../environment.ts';
import { ClientError, isRefusal, RelayUnreachable } from '../errors.ts';
import { untilAborted, withDeadline } from './deadline.ts';
import type { VerifiedRelay } from './discovery.ts';
import { HttpWire } from './http-wire.ts';
import {
  authenticate,
  confirmRelay,
  type Identity,
  type RelayClock,
  type Session,
} from './session.ts';
import type { Transport } from './transport.ts';
import { type Notification, WebSocketWire } from './websocket-wire.ts';
import type { Wire } from './wire.ts';

export interface AuthenticatedConnectionOptions {
  readonly network: Network;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly relayClock: RelayClock;
  readonly relay: VerifiedRelay;
  readonly identity: Identity;
  /** Whether a WebSocket is tried first. */
  readonly preferWebSocket: boolean;
  /** Milliseconds an exchange may take. */
  readonly timeout: number;
  readonly listener: (notification: Notification) => void;
}

/** How long before the next try a failed renewal waits, milliseconds. */
const renewalPause = 5_000;

export class AuthenticatedConnection {
  readonly wire: Wire;
  readonly #options: AuthenticatedConnectionOptions;
  readonly #origin: string;
  readonly #stop = new AbortController();
  #session: Session | undefined;
  #renewal: Promise<void> | undefined;

  private constructor(channel: Wire, options: AuthenticatedConnectionOptions) {
    this.wire = channel;
    this.#options = options;
    this.#origin = relayOrigin(channel.address);
  }

  /**
   * Tries the descriptor's addresses, WebSockets first where they are wanted. Only what cannot be
   * connected to leads to the next address; an answer is an answer (01 §13.4).
   *
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  static async open(
    options: AuthenticatedConnectionOptions,
    signal: AbortSignal,
  ): Promise<AuthenticatedConnection> {
    const { relay, transport, preferWebSocket } = options;
    const useWebSocket = preferWebSocket && transport.connect !== undefined;
    const addresses = [...(useWebSocket ? relay.wss : []), ...relay.https];
    let failure: unknown;
    for (const address of addresses) {
      let channel: Wire | undefined;
      try {
        channel = await openWire(address, options, signal);
        const link = new AuthenticatedConnection(channel, options);
        await link.#begin(signal);
        return link;
      } catch (error) {
        channel?.close();
        signal.throwIfAborted();
        if (!(error instanceof RelayUnreachable)) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  /** The WebSocket's end, where it is one. */
  get ended(): Promise<ClientError> | undefined {
    return this.wire instanceof WebSocketWire ? this.wire.ended : undefined;
  }

  /** The relay as its descriptor was verified for this link. */
  get relay(): VerifiedRelay {
    return this.#options.relay;
  }

  get isUsable(): boolean {
    if (this.wire instanceof WebSocketWire && !this.wire.isOpen) return false;
    return !this.#stop.signal.aborted && !this.#isOver();
  }

  /** One request under the session. @throws RelayRefused, RelayUnreachable, RelayMisbehaviour */
  async exchange(method: MethodName, params: object, signal: AbortSignal) {
    await this.#renewWhenDue(signal);
    const token = methods[method].session === 'none' ? undefined : this.#session?.token;
    return await withDeadline(signal, this.#options.timeout, (bounded) =>
      this.wire.exchange(method, params, { token, signal: bounded }),
    );
  }

  close(): void {
    this.#stop.abort(new ClientError('relay_unreachable', 'link was closed'));
    this.wire.close();
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { relay, relayClock, timeout } = this.#options;
    const info = await withDeadline(signal, timeout, (bounded) =>
      confirmRelay(this.wire, relay, bounded),
    );
    relayClock.observe(info.server_time);
    await this.#authenticate(signal);
    if (this.wire instanceof WebSocketWire) {
      this.wire.ended.then(() => this.#stop.abort());
      this.#keepRenewed().catch(() => this.close());
    }
  }

  async #authenticate(signal: AbortSignal): Promise<void> {
    const { relay, identity, clock, relayClock, timeout } = this.#options;
    const target = { relay, origin: this.#origin, identity, clock, relayClock };
    this.#session = await withDeadline(signal, timeout, (bounded) =>
      authenticate(this.wire, target, bounded),
    );
  }

  #isOver(): boolean {
    const { clock } = this.#options;
    return this.#session === undefined || clock.milliseconds() >= this.#session.endsAt;
  }

  /**
   * Renews where it is time. A failed renewal leaves the session as it is (02 §10.6), unless the
   * relay says that the device is no longer valid.
   */
  async #renewWhenDue(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    if (this.#session === undefined || clock.milliseconds() < this.#session.renewAt) return;
    this.#renewal ??= this.#authenticate(this.#stop.signal).finally(() => {
      this.#renewal = undefined;
    });
    try {
      // Shared by all who wait for it, so it does not end with the signal of one.
      await untilAborted(this.#renewal, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (this.#isOver() || isRefusal(error, 'device_unknown', 'forbidden')) throw error;
    }
  }

  /** Keeps a WebSocket's session alive while nobody calls: notifications depend on it. */
  async #keepRenewed(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const wait = (this.#session?.renewAt ?? 0) - clock.milliseconds();
      await clock.sleep(wait > 0 ? wait : renewalPause, signal);
      await this.#renewWhenDue(signal);
    }
  }
}

async function openWire(
  address: string,
  { network, transport, timeout, listener }: AuthenticatedConnectionOptions,
  signal: AbortSignal,
): Promise<Wire> {
  if (!address.startsWith('wss:')) return new HttpWire(address, network, transport);
  return await withDeadline(signal, timeout, (bounded) =>
    WebSocketWire.open(address, transport, { listener, signal: bounded }),
  );
}
