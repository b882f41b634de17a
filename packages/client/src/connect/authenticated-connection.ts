/** One authenticated connection to a relay: a wire with its session, from opening to its end. */
import { type MethodName, type Network, relayOrigin } from '@posthouse/protocol';
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
import type { HttpRequest, HttpResponse, Transport } from './transport.ts';
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
  /** Timeout of one exchange, in milliseconds. */
  readonly timeout: number;
  readonly listener: (notification: Notification) => void;
}

/** A request to a relay outside of the protocol's methods; it is made over HTTPS. */
export interface SessionRequest extends Omit<HttpRequest, 'url' | 'signal'> {
  readonly path: string;
}

/**
 * Milliseconds until a WebSocket must be open and answer, shared by all addresses: some proxies pass no
 * upgrade and say nothing.
 */
const webSocketTimeout = 4_000;
/** Milliseconds to wait after a failed renewal. */
const renewalPause = 5_000;

export class AuthenticatedConnection {
  readonly wire: Wire;
  readonly #options: AuthenticatedConnectionOptions;
  readonly #origin: string;
  readonly #stop = new AbortController();
  readonly #abandoned = new AbortController();
  #restoredAt: number | undefined;
  #groupMessageRetention: number | undefined;
  #session: Session | undefined;
  #renewal: Promise<void> | undefined;

  private constructor(wire: Wire, options: AuthenticatedConnectionOptions) {
    this.wire = wire;
    this.#options = options;
    this.#origin = relayOrigin(wire.address);
  }

  /**
   * Tries the descriptor's addresses, WebSockets first if they are preferred. Only an address that
   * cannot be reached leads to the next one; an error answer does not (01 §13.4).
   *
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  static async open(
    options: AuthenticatedConnectionOptions,
    signal: AbortSignal,
  ): Promise<AuthenticatedConnection> {
    const { network, relay, transport, timeout, listener } = options;
    const useWebSocket = options.preferWebSocket && transport.connect !== undefined;
    const addresses = [...(useWebSocket ? relay.wss : []), ...relay.https];
    let failure: unknown;
    for (const address of addresses) {
      let wire: Wire | undefined;
      const begin = async (signal: AbortSignal) => {
        wire ??= await WebSocketWire.open(address, transport, { listener, signal });
        const connection = new AuthenticatedConnection(wire, options);
        await connection.#begin(signal);
        return connection;
      };
      try {
        if (!relay.wss.includes(address)) {
          wire = new HttpWire(address, network, transport);
          return await begin(signal);
        }
        const limit = Math.min(timeout, webSocketTimeout / relay.wss.length);
        return await withDeadline(signal, limit, begin);
      } catch (error) {
        wire?.close();
        signal.throwIfAborted();
        if (!(error instanceof RelayUnreachable)) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  /** Settles when the WebSocket ends; `undefined` over HTTPS. */
  get ended(): Promise<ClientError> | undefined {
    return this.wire instanceof WebSocketWire ? this.wire.ended : undefined;
  }

  /** The relay, with the descriptor verified for this connection. */
  get relay(): VerifiedRelay {
    return this.#options.relay;
  }

  get isUsable(): boolean {
    if (this.wire instanceof WebSocketWire && !this.wire.isOpen) return false;
    return !this.#stop.signal.aborted && !this.#isOver();
  }

  /** Sends one request with the session. @throws RelayRefused, RelayUnreachable, RelayMisbehaviour */
  async exchange(method: MethodName, params: object, signal: AbortSignal) {
    await this.#renewWhenDue(signal);
    // Also if the method needs no session: the relay counts the call on the account then.
    const token = this.#session?.token;
    // Closing a WebSocket ends its requests; those over HTTPS stay open without this.
    const either =
      this.wire.kind === 'http' ? AbortSignal.any([signal, this.#abandoned.signal]) : signal;
    return await withDeadline(either, this.#options.timeout, (bounded) =>
      this.wire.exchange(method, params, { token, signal: bounded }),
    );
  }

  /** Makes a request that is none of the protocol's methods, with the session. */
  async request(
    { path, headers, ...request }: SessionRequest,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    await this.#renewWhenDue(signal);
    const { network, transport } = this.#options;
    const token = this.#session?.token;
    return await transport.request({
      ...request,
      url: `${this.wire.address.replace(/\/$/, '')}${path}`,
      headers: { ...headers, ...(token !== undefined && { [network.sessionHeader]: token }) },
      signal,
    });
  }

  /** When the relay says it was put back to an earlier state, Unix seconds (02 §11.2). */
  get restoredAt(): number | undefined {
    return this.#restoredAt;
  }

  /** Seconds for which the relay keeps messages of groups, if it hosts any (05 §11.2). */
  get groupMessageRetention(): number | undefined {
    return this.#groupMessageRetention;
  }

  /** Ends all requests that have no answer yet: the connection is dead. */
  abandon(): void {
    const options = { outcomeUnknown: true };
    this.#abandoned.abort(new RelayUnreachable('the connection does not answer', options));
  }

  close(): void {
    this.#stop.abort(new ClientError('relay_unreachable', 'connection was closed'));
    this.wire.close();
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { relay, relayClock, timeout } = this.#options;
    const info = await withDeadline(signal, timeout, (bounded) =>
      confirmRelay(this.wire, relay, bounded),
    );
    relayClock.observe(info.server_time);
    this.#restoredAt = info.restored_at;
    this.#groupMessageRetention = info.limits.group_message_retention;
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
   * Renews the session when it is due. A failed renewal leaves the session as it is (02 §10.6),
   * unless the relay answers that the device is no longer valid.
   */
  async #renewWhenDue(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    if (this.#session === undefined || clock.milliseconds() < this.#session.renewAt) return;
    this.#renewal ??= this.#authenticate(this.#stop.signal).finally(() => {
      this.#renewal = undefined;
    });
    try {
      // All callers share the renewal, so one caller's signal does not abort it.
      await untilAborted(this.#renewal, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (this.#isOver() || isRefusal(error, 'device_unknown', 'forbidden')) throw error;
    }
  }

  /** Renews a WebSocket's session while there are no calls: notifications depend on it. */
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
