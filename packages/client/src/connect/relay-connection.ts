import {
  type MethodName,
  methods,
  type Network,
  type ParamsOf,
  type ResultOf,
} from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import type { Clock } from '../environment.ts';
import { ClientError, isRefusal, RelayMisbehaviour, RelayUnreachable } from '../errors.ts';
import { AuthenticatedConnection, type SessionRequest } from './authenticated-connection.ts';
import {
  defaultRetry,
  isTemporary,
  mayHaveTakenEffect,
  type RetryPolicy,
  retryHintOf,
  waitBeforeRetry,
} from './backoff.ts';
import { checkResult } from './check-response.ts';
import { untilAborted } from './deadline.ts';
import type { Discovery, VerifiedRelay } from './discovery.ts';
import { type Identity, RelayClock } from './session.ts';
import type { HttpResponse, Transport } from './transport.ts';
import type { Notification } from './websocket-wire.ts';

export interface ConnectionParts {
  readonly network: Network;
  readonly discovery: Discovery;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
}

export interface ConnectionOptions {
  readonly relayId: string;
  readonly identity: Identity;
  /** `websocket` falls back to HTTPS if no WebSocket can be opened. */
  readonly prefer: 'websocket' | 'http';
  readonly retry?: RetryPolicy;
  /** Timeout of one exchange, in milliseconds. */
  readonly timeout?: number;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /**
   * `unchanged` (default) retries the same request after temporary errors and lost answers; only
   * for methods that allow it (02 §7). `unsent` retries only a request that had no effect.
   */
  readonly repeat?: 'unchanged' | 'unsent';
}

/**
 * Calls one relay with one identity, and reconnects when necessary. Every new connection starts
 * from the relay's current descriptor (01 §13.4) and opens its own session; a token is never sent
 * to another origin.
 */
export class RelayConnection implements AsyncDisposable {
  readonly relayId: string;
  /** The relay's clock, for times in requests to the relay. */
  readonly relayClock: RelayClock;
  /** Called with the notifications of every connection. */
  onNotification: (notification: Notification) => void = () => {};
  readonly #parts: ConnectionParts;
  readonly #options: ConnectionOptions;
  readonly #retry: RetryPolicy;
  readonly #stop = new AbortController();
  #current: AuthenticatedConnection | undefined;
  #opening: Promise<AuthenticatedConnection> | undefined;

  constructor(parts: ConnectionParts, options: ConnectionOptions) {
    this.relayId = options.relayId;
    this.#parts = parts;
    this.#options = options;
    this.#retry = options.retry ?? defaultRetry;
    this.relayClock = new RelayClock(parts.clock);
  }

  /**
   * Calls a method and checks the shape of the result; callers verify its content.
   * @throws ClientError `no_relay` if the relay does not offer the method's module
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  async call<M extends MethodName>(
    method: M,
    params: ParamsOf<M>,
    { signal, repeat = 'unchanged' }: CallOptions,
  ): Promise<ResultOf<M>> {
    let authenticatedAgain = false;
    for (let attempt = 1; ; attempt += 1) {
      let connection: AuthenticatedConnection | undefined;
      try {
        connection = await this.authenticated(signal);
        checkCapability(method, connection.relay);
        return checkResult(method, await connection.exchange(method, params as object, signal));
      } catch (error) {
        signal.throwIfAborted();
        const lost = error instanceof RelayUnreachable || error instanceof RelayMisbehaviour;
        const ended = isRefusal(error, 'unauthorized');
        if (connection !== undefined && (lost || ended)) this.#drop(connection);
        if (ended && !authenticatedAgain) {
          authenticatedAgain = true;
          continue;
        }
        const wait = this.#waitBefore(attempt, error);
        const isBarred = repeat === 'unsent' && mayHaveTakenEffect(error);
        if (isBarred || wait === undefined) throw error;
        await this.#parts.clock.sleep(wait, signal);
      }
    }
  }

  /**
   * Makes a request that is none of the protocol's methods, with the session, at the address of an
   * HTTPS connection. A session that ended is opened again, once.
   *
   * @param request.path after the relay's base address, with a slash first
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour from opening the connection
   */
  async request(request: SessionRequest, signal: AbortSignal): Promise<HttpResponse> {
    const connection = await this.authenticated(signal);
    const response = await connection.request(request, signal);
    if (response.status !== 401) return response;
    this.#drop(connection);
    return await (await this.authenticated(signal)).request(request, signal);
  }

  /** Returns the current connection, or opens one. @throws RelayRefused, RelayUnreachable, RelayMisbehaviour */
  async authenticated(signal: AbortSignal): Promise<AuthenticatedConnection> {
    if (this.#current?.isUsable) return this.#current;
    if (this.#current !== undefined) this.#drop(this.#current);
    // All callers share the opening, so one caller's signal does not abort it.
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return await untilAborted(this.#opening, signal);
  }

  /** The open WebSocket; `undefined` over HTTPS. */
  get webSocket(): AuthenticatedConnection | undefined {
    const current = this.#current;
    return current?.isUsable && current.ended !== undefined ? current : undefined;
  }

  /** Drops an HTTPS connection if a WebSocket is preferred, so that the next call tries one. */
  retryWebSocket(): void {
    if (this.#options.prefer === 'websocket' && this.#current?.ended === undefined) {
      if (this.#current !== undefined) this.#drop(this.#current);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(
      new RelayUnreachable('the client was closed: open it again', { outcomeUnknown: false }),
    );
    await this.#opening?.catch(() => undefined);
    this.#current?.close();
  }

  async #open(): Promise<AuthenticatedConnection> {
    const { network, discovery, transport, clock } = this.#parts;
    const { identity, prefer, timeout = 30_000 } = this.#options;
    const { signal } = this.#stop;
    signal.throwIfAborted();
    const relay = await discovery.find(this.relayId, signal);
    this.#current = await AuthenticatedConnection.open(
      {
        network,
        transport,
        clock,
        relayClock: this.relayClock,
        relay,
        identity,
        preferWebSocket: prefer === 'websocket',
        timeout,
        listener: (notification) => this.onNotification(notification),
      },
      signal,
    );
    return this.#current;
  }

  #drop(connection: AuthenticatedConnection): void {
    connection.close();
    if (this.#current === connection) this.#current = undefined;
  }

  /** Returns the milliseconds before the next attempt, or `undefined` if there is none. */
  #waitBefore(attempt: number, error: unknown): number | undefined {
    if (!isTemporary(error)) return undefined;
    const { random } = this.#parts;
    return waitBeforeRetry(attempt, this.#retry, { random, hintSeconds: retryHintOf(error) });
  }
}

/** Checks that the verified descriptor declares the method's module (05 §1.1, 06 §1). */
function checkCapability(method: MethodName, { relayId, descriptor }: VerifiedRelay): void {
  const definition = methods[method];
  const capability = 'capability' in definition ? definition.capability : undefined;
  if (capability === undefined || descriptor.capabilities?.includes(capability)) return;
  throw new ClientError(
    'no_relay',
    `${relayId} does not offer ${capability}: choose another relay`,
  );
}
