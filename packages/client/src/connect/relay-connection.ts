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
import { AuthenticatedConnection } from './authenticated-connection.ts';
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
import type { Transport } from './transport.ts';
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
  /** `websocket` falls back to HTTPS where no WebSocket can be had. */
  readonly prefer: 'websocket' | 'http';
  readonly retry?: RetryPolicy;
  /** Milliseconds one exchange may take. */
  readonly timeout?: number;
}

export interface CallOptions {
  readonly signal: AbortSignal;
  /**
   * `unchanged` (default) sends the very same request again after temporary errors and lost
   * answers; only for methods that allow it (02 §7). `unsent` does so only where the request
   * certainly was not carried out.
   */
  readonly repeat?: 'unchanged' | 'unsent';
}

/**
 * One identity's calls to one relay, over as many links, one after another, as it takes. Every
 * link starts from the relay's current descriptor (01 §13.4); nothing of an old link is carried
 * over to a new one, and no token leaves the origin that gave it.
 */
export class RelayConnection implements AsyncDisposable {
  readonly relayId: string;
  /** The relay's clock, for times in requests to it. */
  readonly relayClock: RelayClock;
  /** Takes the notifications of every link. */
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
   * Calls a method and checks the shape of what comes back; what it means is for the caller.
   * @throws ClientError `no_relay` where the relay does not offer the method's module
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

  /** The link in use, or a new one. @throws RelayRefused, RelayUnreachable, RelayMisbehaviour */
  async authenticated(signal: AbortSignal): Promise<AuthenticatedConnection> {
    if (this.#current?.isUsable) return this.#current;
    if (this.#current !== undefined) this.#drop(this.#current);
    // Shared by all who wait for it, so it does not end with the signal of the first.
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return await untilAborted(this.#opening, signal);
  }

  /** Gives up an HTTPS link where a WebSocket is wanted, so that the next one tries again. */
  retryWebSocket(): void {
    if (this.#options.prefer === 'websocket' && this.#current?.ended === undefined) {
      if (this.#current !== undefined) this.#drop(this.#current);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new RelayUnreachable('client was closed', { outcomeUnknown: false }));
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

  #drop(link: AuthenticatedConnection): void {
    link.close();
    if (this.#current === link) this.#current = undefined;
  }

  /** Milliseconds, or `undefined` where trying again is over. */
  #waitBefore(attempt: number, error: unknown): number | undefined {
    if (!isTemporary(error)) return undefined;
    const { random } = this.#parts;
    return waitBeforeRetry(attempt, this.#retry, { random, hintSeconds: retryHintOf(error) });
  }
}

/** A module is used only where the verified descriptor declares it (05 §1.1, 06 §1). */
function checkCapability(method: MethodName, { relayId, descriptor }: VerifiedRelay): void {
  const definition = methods[method];
  const capability = 'capability' in definition ? definition.capability : undefined;
  if (capability === undefined || descriptor.capabilities?.includes(capability)) return;
  throw new ClientError('no_relay', `${relayId} does not offer ${capability}`);
}
