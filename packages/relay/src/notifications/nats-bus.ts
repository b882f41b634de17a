import { nextTick } from 'node:process';
import { connect, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node';
import type { Bus } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { MemoryBus } from './memory-bus.ts';
import { decodeNotices, encodeNotices } from './notice-codec.ts';
import { ProcessPresence } from './process-presence.ts';

/** Milliseconds, in real time, whatever clock the relay uses. */
const timeouts = {
  connect: 5_000,
  /** How long a starting relay waits for the server. */
  start: 3_000,
  /** Between checks that the server answers. */
  heartbeat: 1_000,
  answer: 5_000,
  /** Without a word of another process, which then counts as dead. */
  silence: 5_000,
  firstRetry: 100,
  longestRetry: 3_000,
  /** A connection that lasted this long resets the backoff of reconnects. */
  steady: 10_000,
  drain: 2_000,
} as const;

/** Limit of published bytes that the server has not acknowledged; above it, the connection is dropped. */
const maxUnacknowledged = 16 * 1_048_576;

/** Notices that wait for the end of a turn, at the most. */
const mostGathered = 200;

/** Payload limit of a server that has not announced one, in bytes. */
const minimumPayload = 1_024;

/** Events of the bus that operators must see. */
interface BusObserver {
  /** A listener threw. */
  failed(error: unknown): void;
  /** The connection was lost: no notices arrive from or at other processes. */
  lost(error: unknown): void;
  restored(): void;
  /** `count` notices were not published. */
  dropped(count: number): void;
  /** `count` invalid notices arrived. */
  invalid(count: number): void;
}

interface NatsBusOptions {
  /** `nats://` or `tls://`, with `user:password@` or `token@`. */
  readonly url: string;
  /** Shared by all processes of one relay, and by no other relay. */
  readonly subject: string;
  readonly observer: BusObserver;
  /** Milliseconds without a word of another process, which then counts as dead. */
  readonly silence?: number;
  /** Milliseconds that {@link NatsBus.start} waits for the server. */
  readonly startWait?: number;
}

/**
 * The bus of a relay with several processes. Listeners of this process receive notices at once and in
 * order; those of other processes receive them through NATS, in the order of each process. Nothing is
 * stored while the server is unreachable: a `gap` notice after the reconnect makes all resync. So does
 * one when another process falls silent: it may have died between a commit and its notices.
 */
export class NatsBus implements Bus, AsyncDisposable {
  readonly isShared = true;
  readonly #options: NatsBusOptions;
  readonly #local: MemoryBus;
  readonly #stopping = new AbortController();
  readonly #presence: ProcessPresence;
  readonly #running: Promise<void>;
  /** Present while notices of other processes arrive. */
  #connection: NatsConnection | undefined;
  /** Notices of this turn that other processes have not been sent. */
  readonly #gathered: Notice[] = [];
  #isDisconnected = false;
  #unacknowledged = 0;
  readonly #started = Promise.withResolvers<void>();

  private constructor(options: NatsBusOptions) {
    this.#options = options;
    this.#local = new MemoryBus((error) => options.observer.failed(error));
    this.#presence = new ProcessPresence(options.silence ?? timeouts.silence);
    this.#running = this.#run();
  }

  /** Resolves when the server is reached, or after a timeout; connecting is then retried for ever. */
  static async start(options: NatsBusOptions): Promise<NatsBus> {
    const bus = new NatsBus(options);
    await within(options.startWait ?? timeouts.start, bus.#started.promise);
    return bus;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  /** Published bytes that the server has not acknowledged; they occupy memory. */
  get unacknowledgedBytes(): number {
    return this.#unacknowledged;
  }

  publish(notices: readonly Notice[]): void {
    this.#local.publish(notices);
    // Those of all calls whose batch was just committed leave in one message: after their promises.
    if (this.#gathered.length === 0) nextTick(() => this.#sendGathered());
    for (const notice of notices) this.#gathered.push(notice);
    if (this.#connection === undefined || this.#gathered.length >= mostGathered) {
      this.#sendGathered();
    }
  }

  subscribe(listener: (notice: Notice) => void): Disposable {
    return this.#local.subscribe(listener);
  }

  /** Flushes what was published, within a bounded time. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#sendGathered();
    this.#stopping.abort();
    const connection = this.#connection;
    if (connection !== undefined) {
      this.#send([this.#presence.announcement(true)]);
      await within(timeouts.drain, connection.drain());
      await connection.close();
    }
    await this.#running;
  }

  #sendGathered(): void {
    if (this.#gathered.length > 0) this.#send(this.#gathered.splice(0));
  }

  #send(notices: readonly Notice[]): void {
    const connection = this.#connection;
    const { observer, subject } = this.#options;
    if (connection === undefined) {
      observer.dropped(notices.length);
      return;
    }
    try {
      const limit = connection.info?.max_payload ?? minimumPayload;
      for (const message of encodeNotices(notices, limit)) {
        this.#unacknowledged += message.length;
        if (this.#unacknowledged > maxUnacknowledged)
          throw new Error('NATS accepts notices too slowly');
        connection.publish(subject, message);
      }
    } catch (error) {
      // Other processes miss these notices; they resync after the reconnect.
      observer.dropped(notices.length);
      this.#drop(connection, error);
    }
  }

  #receive(data: Uint8Array): void {
    const { notices, invalid } = decodeNotices(Buffer.from(data).toString());
    if (invalid > 0) this.#options.observer.invalid(invalid);
    for (const notice of notices) {
      if (notice.kind === 'process') this.#presence.hear(notice);
      else this.#local.publish([notice]);
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted) {
      const started = performance.now();
      const cause = await this.#runConnection();
      if (signal.aborted) break;
      this.#onLost(cause);
      failures = performance.now() - started > timeouts.steady ? 0 : failures + 1;
      const longest = Math.min(timeouts.firstRetry * 2 ** failures, timeouts.longestRetry);
      await pause(longest * (0.5 + Math.random() / 2), signal);
    }
  }

  /** Runs one connection until it ends; returns the reason. */
  async #runConnection(): Promise<unknown> {
    let connection: NatsConnection;
    try {
      connection = await connect(connectionOptions(this.#options.url));
    } catch (error) {
      return error;
    }
    try {
      const closed = connection
        .closed()
        .then((error) => error ?? new Error('NATS closed the connection'));
      let refusal: Error | undefined;
      void this.#listenForRefusals(connection, (error) => {
        refusal = error;
      });
      connection.subscribe(this.#options.subject, {
        callback: (error, message) => {
          if (error === null) this.#receive(message.data);
        },
      });
      // Otherwise a missing permission to publish would show only with the first notice.
      connection.publish(this.#options.subject, '[]');
      // Answered after the subscription: from here on no notice of other processes is missed.
      await acknowledged(connection);
      if (refusal !== undefined) return refusal;
      if (this.#stopping.signal.aborted) return undefined;
      this.#onConnected(connection);
      const watched = this.#watch(connection, closed);
      return (await Promise.race([closed, watched])) ?? (await closed);
    } catch (error) {
      return error;
    } finally {
      if (this.#connection === connection) this.#connection = undefined;
      await connection.close();
    }
  }

  /** Watches for permission errors: the server otherwise drops what it does not permit. */
  async #listenForRefusals(
    connection: NatsConnection,
    refused: (error: Error) => void,
  ): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type !== 'error') continue;
      refused(status.error);
      this.#drop(connection, status.error);
    }
  }

  #onConnected(connection: NatsConnection): void {
    this.#connection = connection;
    this.#unacknowledged = 0;
    if (this.#isDisconnected) {
      this.#isDisconnected = false;
      this.#options.observer.restored();
      this.#local.publish([{ kind: 'gap' }]);
    }
    // Also at the start: an earlier process may have died between a commit and its notices.
    this.#send([{ kind: 'gap' }, this.#presence.announcement(false)]);
    this.#started.resolve();
  }

  #onLost(cause: unknown): void {
    if (this.#isDisconnected) return;
    this.#isDisconnected = true;
    this.#presence.clear();
    this.#options.observer.lost(cause);
    this.#local.publish([{ kind: 'gap' }]);
  }

  #drop(connection: NatsConnection, cause: unknown): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#onLost(cause);
    void connection.close();
  }

  /** Checks regularly that the server answers; throws if it does not. */
  async #watch(connection: NatsConnection, closed: Promise<unknown>): Promise<undefined> {
    const over = new AbortController();
    void closed.then(() => over.abort());
    while (!over.signal.aborted) {
      await pause(timeouts.heartbeat, over.signal);
      const pending = this.#unacknowledged;
      if (!over.signal.aborted) await acknowledged(connection);
      this.#unacknowledged -= pending;
      if (over.signal.aborted) return;
      this.#send([this.#presence.announcement(false)]);
      // What arrived before that answer was heard, also after a stop of this process.
      if (this.#presence.forgetSilent()) this.#local.publish([{ kind: 'gap' }]);
    }
  }
}

/** Turns off the library's own reconnects and its buffer for publishing meanwhile. */
/** Returns the library's options of a connection with the server of an address. */
export function connectionOptions(text: string): NodeConnectionOptions {
  const url = new URL(text);
  const user = decodeURIComponent(url.username);
  const pass = decodeURIComponent(url.password);
  return {
    servers: `${url.hostname}:${url.port || '4222'}`,
    reconnect: false,
    noEcho: true,
    name: 'posthouse',
    timeout: timeouts.connect,
    // The heartbeat above replaces the library's pings, which would delay a close.
    pingInterval: 2_147_483_647,
    ignoreClusterUpdates: true,
    ...(url.protocol === 'tls:' ? { tls: {} } : {}),
    ...(pass === '' ? (user === '' ? {} : { token: user }) : { user, pass }),
  };
}

/** Waits until the server has acknowledged all sent messages; throws if it takes too long. */
async function acknowledged(connection: NatsConnection): Promise<void> {
  const gone = connection
    .closed()
    .then(() => Promise.reject(new Error('NATS closed the connection')));
  gone.catch(() => {});
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('NATS does not answer')), timeouts.answer);
  try {
    await Promise.race([connection.flush(), gone, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until `work` settles, at most `milliseconds`. */
async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const over = new AbortController();
  await Promise.race([work.catch(() => {}), pause(milliseconds, over.signal)]);
  over.abort();
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, milliseconds);
  signal.addEventListener('abort', () => resolve(), { once: true });
  await promise;
  clearTimeout(timer);
}
