import { connect, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node';
import type { Bus } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { MemoryBus } from './memory-bus.ts';
import { decodeNotices, encodeNotices } from './notice-codec.ts';

/** Milliseconds; of the network's time, whatever clock the relay runs on. */
const times = {
  connect: 5_000,
  /** For which a starting relay waits for the server. */
  start: 3_000,
  /** Between questions whether the server is there. */
  heartbeat: 1_000,
  answer: 5_000,
  firstRetry: 100,
  longestRetry: 3_000,
  /** After which a connection counts as good, and the next is tried at once when it ends. */
  steady: 10_000,
  drain: 2_000,
} as const;

/** Bytes on their way that the server has not answered for; who has more is not listened to. */
const maxUnanswered = 16 * 1_048_576;

/** A server that has not said how much it takes. */
const minimumPayload = 1_024;

/** Who hears what becomes of the bus. */
interface BusObserver {
  /** A listener or a notice broke. */
  failed(error: unknown): void;
  /** Notices of others do not arrive any more, nor do this process's arrive there. */
  lost(error: unknown): void;
  restored(): void;
  /** So many notices left this process for nobody. */
  dropped(count: number): void;
  /** So many things arrived that are no notices. */
  invalid(count: number): void;
}

interface NatsBusOptions {
  /** `nats://` or `tls://`, with `user:password@` or `token@`. */
  readonly url: string;
  /** The same for all processes of one relay, and for no other. */
  readonly subject: string;
  readonly observer: BusObserver;
}

/**
 * The bus of a relay of several processes. Listeners here hear at once and in order, those of other
 * processes through NATS, in the order of each process. Nothing is kept for a server that is away:
 * a `gap` notice on its return has everybody look at storage instead.
 */
export class NatsBus implements Bus, AsyncDisposable {
  readonly isShared = true;
  readonly #options: NatsBusOptions;
  readonly #local: MemoryBus;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** There is one while notices of others arrive. */
  #connection: NatsConnection | undefined;
  #isAway = false;
  #unanswered = 0;
  readonly #begun = Promise.withResolvers<void>();

  private constructor(options: NatsBusOptions) {
    this.#options = options;
    this.#local = new MemoryBus((error) => options.observer.failed(error));
    this.#running = this.#run();
  }

  /** Resolves once the server is reached, or has had its time: it is tried for ever then. */
  static async start(options: NatsBusOptions): Promise<NatsBus> {
    const bus = new NatsBus(options);
    await within(times.start, bus.#begun.promise);
    return bus;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  /** Bytes handed to the network that the server has not answered for; what memory they take. */
  get unacknowledgedBytes(): number {
    return this.#unanswered;
  }

  publish(notices: readonly Notice[]): void {
    this.#local.publish(notices);
    this.#send(notices);
  }

  subscribe(listener: (notice: Notice) => void): Disposable {
    return this.#local.subscribe(listener);
  }

  /** Hands over what was published, for a bounded time. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    const connection = this.#connection;
    if (connection !== undefined) {
      await within(times.drain, connection.drain());
      await connection.close();
    }
    await this.#running;
  }

  #send(notices: readonly Notice[]): void {
    const connection = this.#connection;
    const { observer, subject } = this.#options;
    if (connection === undefined) {
      observer.dropped(notices.length);
      return;
    }
    try {
      const most = connection.info?.max_payload ?? minimumPayload;
      for (const message of encodeNotices(notices, most)) {
        this.#unanswered += message.length;
        if (this.#unanswered > maxUnanswered) throw new Error('NATS takes notices too slowly');
        connection.publish(subject, message);
      }
    } catch (error) {
      // Others miss something now, and hear of it when the connection is there again.
      observer.dropped(notices.length);
      this.#leave(connection, error);
    }
  }

  #receive(data: Uint8Array): void {
    const { notices, invalid } = decodeNotices(Buffer.from(data).toString());
    if (invalid > 0) this.#options.observer.invalid(invalid);
    this.#local.publish(notices);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted) {
      const started = performance.now();
      const cause = await this.#once();
      if (signal.aborted) break;
      this.#lost(cause);
      failures = performance.now() - started > times.steady ? 0 : failures + 1;
      const longest = Math.min(times.firstRetry * 2 ** failures, times.longestRetry);
      await pause(longest * (0.5 + Math.random() / 2), signal);
    }
  }

  /** One connection from its beginning to its end; says what ended it. */
  async #once(): Promise<unknown> {
    let connection: NatsConnection;
    try {
      connection = await connect(connectionOptions(this.#options.url));
    } catch (error) {
      return error;
    }
    try {
      const closed = connection.closed().then((error) => error ?? new Error('NATS hung up'));
      let refusal: Error | undefined;
      void this.#listenForRefusals(connection, (error) => {
        refusal = error;
      });
      connection.subscribe(this.#options.subject, {
        callback: (error, message) => {
          if (error === null) this.#receive(message.data);
        },
      });
      // Not to be permitted to publish would show with the first notice only.
      connection.publish(this.#options.subject, '[]');
      // Its answer comes behind the subscription: from here on nothing of others is missed.
      await answered(connection);
      if (refusal !== undefined) return refusal;
      if (this.#stopping.signal.aborted) return undefined;
      this.#found(connection);
      const watched = this.#watch(connection, closed);
      return (await Promise.race([closed, watched])) ?? (await closed);
    } catch (error) {
      return error;
    } finally {
      if (this.#connection === connection) this.#connection = undefined;
      await connection.close();
    }
  }

  /** The server says no to what it was asked before; what it does not permit, it just drops. */
  async #listenForRefusals(
    connection: NatsConnection,
    refused: (error: Error) => void,
  ): Promise<void> {
    for await (const status of connection.status()) {
      if (status.type !== 'error') continue;
      refused(status.error);
      this.#leave(connection, status.error);
    }
  }

  #found(connection: NatsConnection): void {
    this.#connection = connection;
    this.#unanswered = 0;
    if (this.#isAway) {
      this.#isAway = false;
      this.#options.observer.restored();
      this.#local.publish([{ kind: 'gap' }]);
    }
    // Also at the start: who had this place before may have died between a commit and its notices.
    this.#send([{ kind: 'gap' }]);
    this.#begun.resolve();
  }

  #lost(cause: unknown): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#options.observer.lost(cause);
    this.#local.publish([{ kind: 'gap' }]);
  }

  #leave(connection: NatsConnection, cause: unknown): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#lost(cause);
    void connection.close();
  }

  /** Asks the server again and again; throws when it does not answer. */
  async #watch(connection: NatsConnection, closed: Promise<unknown>): Promise<undefined> {
    const over = new AbortController();
    void closed.then(() => over.abort());
    while (!over.signal.aborted) {
      await pause(times.heartbeat, over.signal);
      const asked = this.#unanswered;
      if (!over.signal.aborted) await answered(connection);
      this.#unanswered -= asked;
    }
  }
}

/** The library's own ways to reconnect and to keep what is published meanwhile are not used. */
function connectionOptions(text: string): NodeConnectionOptions {
  const url = new URL(text);
  const user = decodeURIComponent(url.username);
  const pass = decodeURIComponent(url.password);
  return {
    servers: `${url.hostname}:${url.port || '4222'}`,
    reconnect: false,
    noEcho: true,
    name: 'posthouse',
    timeout: times.connect,
    // This side asks itself, and does not wait for a full network to take a goodbye.
    pingInterval: 2_147_483_647,
    ignoreClusterUpdates: true,
    ...(url.protocol === 'tls:' ? { tls: {} } : {}),
    ...(pass === '' ? (user === '' ? {} : { token: user }) : { user, pass }),
  };
}

/** @throws Error where the server does not answer in time for what it was sent so far */
async function answered(connection: NatsConnection): Promise<void> {
  const gone = connection.closed().then(() => Promise.reject(new Error('NATS hung up')));
  gone.catch(() => {});
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('NATS does not answer')), times.answer);
  try {
    await Promise.race([connection.flush(), gone, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for something to settle, but not for long. */
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
