import '../dispose-symbols.ts';
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
import type { Waker } from './waker.ts';
import type { Notification } from './websocket-wire.ts';

export interface ConnectionParts {
  readonly network: Network;
  readonly discovery: Discovery;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly waker: Waker;
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
  /** Called when the outcome of a request is not known, before it is retried or fails. */
  readonly onDoubt?: () => void;
}

/** Milliseconds after a wake in which an open connection must answer. */
export const silenceLimit = 500;
/** Milliseconds that a wake leaves an attempt to open a connection; doubled with each it gave up. */
const openingGrace = 500;
const longestGrace = 30_000;

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
  readonly #wakes: Disposable;
  #current: AuthenticatedConnection | undefined;
  #opening: Promise<AuthenticatedConnection> | undefined;
  /** The current attempt to open a connection. */
  #attempt: { readonly stop: AbortController; readonly since: number } | undefined;
  /** Attempts in a row that a wake gave up. */
  #givenUp = 0;
  /** Milliseconds that opening the current connection took. */
  #openedIn = 0;
  #isChecking = false;

  constructor(parts: ConnectionParts, options: ConnectionOptions) {
    this.relayId = options.relayId;
    this.#parts = parts;
    this.#options = options;
    this.#retry = options.retry ?? defaultRetry;
    this.relayClock = new RelayClock(parts.clock);
    this.#wakes = parts.waker.add(() => void this.#check());
  }

  /**
   * Calls a method and checks the shape of the result; callers verify its content.
   * @throws ClientError `no_relay` if the relay does not offer the method's module
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  async call<M extends MethodName>(
    method: M,
    params: ParamsOf<M>,
    { signal, repeat = 'unchanged', onDoubt }: CallOptions,
  ): Promise<ResultOf<M>> {
    let authenticatedAgain = false;
    for (let attempt = 1; ; attempt += 1) {
      const since = this.#parts.waker.count;
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
        const isInDoubt = mayHaveTakenEffect(error);
        if (isInDoubt) onDoubt?.();
        const isBarred = repeat === 'unsent' && isInDoubt;
        if (isBarred || wait === undefined) throw error;
        await this.#parts.waker.sleep(wait, { since, signal, hint: retryHintOf(error) });
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
    return await this.#openShared(signal);
  }

  /** Opens a connection. All callers share the opening, so one caller's signal does not abort it. */
  async #openShared(signal: AbortSignal): Promise<AuthenticatedConnection> {
    this.#opening ??= this.#openInTime().finally(() => {
      this.#opening = undefined;
    });
    return await untilAborted(this.#opening, signal);
  }

  /** The open WebSocket; `undefined` over HTTPS. */
  get webSocket(): AuthenticatedConnection | undefined {
    const current = this.#current;
    return current?.isUsable && current.ended !== undefined ? current : undefined;
  }

  /** Tries a WebSocket again if one is preferred; calls go on over HTTPS meanwhile. */
  async retryWebSocket(signal: AbortSignal): Promise<void> {
    if (this.#options.prefer === 'http' || this.webSocket !== undefined) return;
    // The connection there is goes on, and finds out by itself.
    await this.#openShared(signal).catch(() => undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#wakes[Symbol.dispose]();
    this.#stop.abort(
      new RelayUnreachable('the client was closed: open it again', { outcomeUnknown: false }),
    );
    await this.#opening?.catch(() => undefined);
    this.#current?.close();
  }

  /** Opens a connection; an attempt that a wake gave up is followed by the next one at once. */
  async #openInTime(): Promise<AuthenticatedConnection> {
    const { clock } = this.#parts;
    for (;;) {
      const attempt = { stop: new AbortController(), since: clock.milliseconds() };
      this.#attempt = attempt;
      try {
        const opened = await this.#open(AbortSignal.any([this.#stop.signal, attempt.stop.signal]));
        this.#openedIn = clock.milliseconds() - attempt.since;
        this.#givenUp = 0;
        return opened;
      } catch (error) {
        if (!attempt.stop.signal.aborted || this.#stop.signal.aborted) throw error;
      } finally {
        this.#attempt = undefined;
      }
    }
  }

  async #open(signal: AbortSignal): Promise<AuthenticatedConnection> {
    const { network, discovery, transport, clock } = this.#parts;
    const { identity, prefer, timeout = 30_000 } = this.#options;
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

  /** Finds out after a wake whether the connection works, and has the next one opened soon. */
  async #check(): Promise<void> {
    if (this.#isChecking) return;
    this.#isChecking = true;
    const { clock } = this.#parts;
    const { signal } = this.#stop;
    try {
      const current = this.#current;
      if (current?.isUsable && !(await this.#answers(current))) {
        current.abandon();
        this.#drop(current);
      }
      // A pooled connection that died unnoticed may cost the first attempt too.
      for (let watched = 0; watched < 3 && !this.#current?.isUsable; watched += 1) {
        const attempt = this.#attempt;
        // Longer each time: on a slow network some attempt must have the time that it needs.
        const grace = Math.min(openingGrace * 2 ** this.#givenUp, longestGrace);
        const age = attempt === undefined ? 0 : clock.milliseconds() - attempt.since;
        await clock.sleep(Math.max(0, grace - age), signal);
        if (attempt === undefined || this.#attempt !== attempt) continue;
        this.#givenUp += 1;
        attempt.stop.abort();
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.#isChecking = false;
    }
  }

  /** Whether a connection answers in about the time that opening it took. */
  async #answers(connection: AuthenticatedConnection): Promise<boolean> {
    const over = new AbortController();
    const signal = AbortSignal.any([this.#stop.signal, over.signal]);
    const limit = Math.min(Math.max(silenceLimit, this.#openedIn), longestGrace);
    const silence = this.#parts.clock.sleep(limit, signal).then(() => false);
    const answer = connection.exchange('relay.info', {}, signal).then(
      () => true,
      (error: unknown) => isRefusal(error),
    );
    return await Promise.race([silence, answer]).finally(() => {
      over.abort();
      silence.catch(() => undefined);
    });
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
