import './dispose-symbols.ts';
import { timelines } from './accounts/account-rows.ts';
import { syncOwnState } from './accounts/device-states.ts';
import { atCurrentHome, homeRelay, refreshHome } from './accounts/home-relay.ts';
import { keepCertificate } from './accounts/keep-certificate.ts';
import { Attachments } from './api/attachments.ts';
import { Channels } from './api/channels.ts';
import { Contacts } from './api/contacts.ts';
import { Conversations } from './api/conversations.ts';
import { Devices } from './api/devices.ts';
import { Groups } from './api/groups.ts';
import { Home } from './api/home.ts';
import { Messages } from './api/messages.ts';
import { type Abortable, signalOf } from './api/options.ts';
import { Profiles } from './api/profiles.ts';
import { channelOutbox } from './channels/outbox.ts';
import { mayRecover } from './connect/backoff.ts';
import type { WakeSource } from './connect/waker.ts';
import type { AccountCore } from './core.ts';
import { isClientError } from './errors.ts';
import { AccountState } from './events/account-state.ts';
import { Engine } from './events/engine.ts';
import { finishedCapacity, forgetReader } from './events/event-log.ts';
import type { AccountEvent } from './events.ts';
import { followAccount } from './follow/follow.ts';
import { groupOutbox } from './groups/outbox.ts';
import { loadMarkdown, unlessMissing } from './load-part.ts';
import { flushOutbox } from './messages/flush-outbox.ts';
import { countUnsettled } from './messages/message-queue.ts';
import { noticeRestore, readTimeline, timelinePosition } from './messages/read-timeline.ts';
import { sendAllWaiting, startAllWaiting } from './messages/send-queue.ts';
import { adoptShared, syncOwnDevices } from './own-devices/sync-own-devices.ts';
import type { StoreReader } from './store/index.ts';
import { noTimeLimit, type TimeLimit, withTimeLimit } from './sync/budget.ts';
import type { SyncScope } from './sync/catch-up-hosts.ts';
import { catchUpHosts } from './sync/catch-up-hosts.ts';
import { runTasks, startTasks } from './sync/run-tasks.ts';
import { runToEnd } from './sync/run-to-end.ts';
import { pendingTasks } from './sync/tasks.ts';

/** Options of `Account.follow`. */
export interface FollowOptions extends Abortable {
  /** Milliseconds between reads if a relay sends no notifications; 30,000 by default. */
  readonly pollInterval?: number;
  /**
   * Says when the network may be back: then the client tries to connect at once, and checks open
   * connections. `Account.wake` does the same.
   */
  readonly wake?: WakeSource;
  /**
   * A name of up to 64 characters, under which the store keeps which events this reader has finished
   * with. Then it misses nothing over restarts, whatever other readers and `sync` do meanwhile: of the
   * events that it has not finished with, the newest 10,000 stay. Of a bot, for example.
   */
  readonly reader?: string | undefined;
}

/** What this device stores about its account, without asking a relay. */
export interface AccountStatus {
  readonly account: string;
  readonly deviceId: string;
  readonly homeRelay: string;
  /** Processed position on the home relay's timeline; -1 at its beginning. */
  readonly position: number;
  /**
   * Whether the home relay dropped records before this device read them (04 §17.4), or lost records
   * that it had given (04 §18.3).
   */
  readonly hasGap: boolean;
  /** Number of messages and writes that are sent and not confirmed yet. */
  readonly outbox: number;
  /** Number of messages this device still has to send to contacts and to the own devices. */
  readonly pendingTasks: number;
}

/**
 * An account, as one of its devices sees it. Everything read from a relay is verified before it is
 * used; everything that must not be lost is stored before it is sent.
 *
 * @example
 * const account = await client.account();
 * await account.sync();
 * await account.messages.send(account.id, { text: 'a note to myself' });
 */
export class Account {
  readonly id: string;
  readonly deviceId: string;
  /** Compressed account public key, base64url; a new device of the account needs it. */
  readonly publicKey: string;
  readonly home: Home;
  readonly devices: Devices;
  readonly profiles: Profiles;
  readonly contacts: Contacts;
  readonly conversations: Conversations;
  readonly messages: Messages;
  readonly groups: Groups;
  readonly channels: Channels;
  readonly attachments: Attachments;
  readonly #core: AccountCore;
  readonly #engine: Engine;
  /** Connection and numbers, for views. */
  readonly state: AccountState<AccountStatus>;

  /** What an entry of its own works with, such as `hand-back`. @internal */
  static coreOf(account: Account): AccountCore {
    return account.#core;
  }

  constructor(core: AccountCore) {
    this.#core = core;
    this.state = new AccountState(core.store, () => this.status());
    this.#engine = new Engine(core, (options, signal) => {
      const followed = {
        core,
        catchUp: (signal: AbortSignal, scope: SyncScope) =>
          this.#catchUp(signal, { ...scope, isTimed: false }),
        refreshHome: async (signal: AbortSignal) => {
          await refreshHome(core, this.id, signal);
        },
      };
      return followAccount(followed, options, signal);
    });
    this.id = core.account;
    this.deviceId = core.device.deviceId;
    this.publicKey = core.publicKey;
    this.home = new Home(core, (signal) => this.#syncHome(signal));
    this.devices = new Devices(core);
    this.profiles = new Profiles(core);
    this.contacts = new Contacts(core);
    this.conversations = new Conversations(core);
    this.messages = new Messages(core);
    this.groups = new Groups(core);
    this.channels = new Channels(core);
    this.attachments = new Attachments(core);
  }

  /**
   * Catches up once: reads the own device state, the timeline, groups and channels, and sends what
   * waits. Hosts are read concurrently, each for a limited time.
   *
   * @param options.formerRelays also reads the timelines of the account's former relays, if they
   *   still answer
   * @returns the events since the last call
   * @throws ClientError; what was applied before stays applied
   * @example
   * for (const event of await account.sync()) {
   *   if (event.kind === 'message') console.log(event.message.from, event.message.body?.text);
   * }
   */
  async sync(
    options: Abortable & { readonly formerRelays?: boolean } = {},
  ): Promise<AccountEvent[]> {
    const signal = signalOf(options);
    const core = this.#core;
    // Its reader begins before the first event of this call.
    await core.events.drain();
    await atCurrentHome(core, signal, async () => {
      await this.#collect(this.#catchUp(signal, { home: true, isTimed: true }));
    });
    if (options.formerRelays) await this.#collect(this.#readFormerRelays(signal));
    return await core.events.take();
  }

  /**
   * Yields events as they happen, until the signal aborts or the client is closed: catches up first, then waits for
   * notifications, and reconnects lost connections with backoff. Any number of readers may follow, in
   * any process, tab or worker with this store: each gets every event once, and one of them is
   * connected for all.
   *
   * A new reader begins after the last event that some reader has finished with; one that was given a
   * name, after the last event that it has finished with itself. An event is finished
   * when the next one is asked for: after an error or `break` in the loop, the next reader gets it
   * again.
   *
   * @throws ClientError that a retry cannot solve, for example after the device was removed;
   *   `invalid_input` for a name that cannot be one, or the 17th
   * @example
   * for await (const event of account.follow()) {
   *   if (event.kind === 'message') console.log(event.message.body?.text);
   *   if (event.kind === 'connection' && event.state === 'disconnected') break;
   * }
   */
  async *follow(options: FollowOptions = {}): AsyncGenerator<AccountEvent> {
    const { pollInterval = 30_000, wake, reader } = options;
    const signal = signalOf(options);
    const wakes = wake?.(() => this.wake());
    const share = this.#engine.join({ pollInterval });
    try {
      for await (const event of this.#core.events.read(signal, share.ended, reader)) {
        if (event.kind === 'connection' && event.state === 'connected') this.#preload();
        yield event;
      }
    } finally {
      wakes?.[Symbol.dispose]();
      await share.leave();
    }
  }

  /**
   * Forgets a named reader of `follow`, so that the store keeps no events for it any more.
   *
   * @example
   * await account.forgetReader('bot');
   */
  async forgetReader(name: string): Promise<void> {
    await this.#core.store.write((tx) => forgetReader(tx, name));
  }

  /**
   * Follows the account and calls `listener` with each event, in order, until it is disposed or the
   * signal aborts. An event is finished when the listener returns; what it throws goes to `onError`,
   * and ends this.
   *
   * @param options.onError called with the error with which following ended; without it, the error
   *   is an unhandled rejection
   * @example
   * const subscription = account.subscribe((event) => console.log(event.kind));
   * subscription[Symbol.dispose]();
   */
  subscribe(
    listener: (event: AccountEvent) => void,
    options: FollowOptions & { readonly onError?: (error: unknown) => void } = {},
  ): Disposable {
    const { onError, ...following } = options;
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, signalOf(options)]);
    const run = async () => {
      for await (const event of this.follow({ ...following, signal })) {
        if (signal.aborted) return;
        listener(event);
      }
    };
    void run().catch(onError);
    return { [Symbol.dispose]: () => stop.abort() };
  }

  /**
   * Tries to connect at once instead of after the current wait, and checks open connections: call it
   * when the network may be back, or pass a source of such moments as `wake` to {@link follow}.
   * Calls within a second are one.
   *
   * @example
   * process.on('SIGCONT', () => account.wake());
   */
  wake(): void {
    this.#core.waker.wake();
  }

  /**
   * Returns what this device stores about the account, without asking a relay.
   *
   * @example
   * const { homeRelay, outbox } = await account.status();
   * console.log(homeRelay, outbox);
   */
  async status(): Promise<AccountStatus> {
    const core = this.#core;
    const relayId = await homeRelay(core, this.id);
    return await core.store.read(async (tx) => ({
      account: this.id,
      deviceId: this.deviceId,
      homeRelay: relayId,
      position: await timelinePosition(tx, relayId),
      hasGap: (await timelines.get(tx, relayId))?.gap ?? false,
      outbox: await outboxLength(tx),
      pendingTasks: (await pendingTasks.list(tx)).length,
    }));
  }

  /** Loads every part of the client: a page that goes offline must be able to go on. */
  #preload(): void {
    for (const load of [this.#core.later, loadMarkdown]) load().catch(() => undefined);
  }

  /** Catches up what the home relay has; the events are those of the next `sync` or `follow`. */
  async #syncHome(signal: AbortSignal): Promise<void> {
    const core = this.#core;
    await atCurrentHome(core, signal, async () => {
      const host = await homeRelay(core, this.id);
      await runToEnd(core, this.#catchUp(signal, { home: true, host, isTimed: true }));
    });
  }

  /** Runs a generator, and takes its events from the log before the log is full. */
  async #collect(found: AsyncIterable<readonly AccountEvent[]>): Promise<void> {
    let count = 0;
    for await (const { length } of found) {
      count += length;
      if (count < finishedCapacity) continue;
      await this.#core.events.drain();
      count = 0;
    }
  }

  async *#catchUp(
    signal: AbortSignal,
    { home: withHome, ...scope }: SyncScope & { readonly isTimed: boolean },
  ): AsyncGenerator<readonly AccountEvent[]> {
    const core = this.#core;
    const { relayId: homeId } = await core.home();
    let failure: { readonly cause: unknown } | undefined;
    if (withHome) {
      try {
        yield* scope.isTimed
          ? withTimeLimit(core, signal, (visit) => this.#readHome(visit, { inBackground: false }))
          : this.#readHome(noTimeLimit(signal), { inBackground: true });
      } catch (cause) {
        signal.throwIfAborted();
        if (scope.host !== undefined || !mayRecover(cause)) throw cause;
        failure = { cause };
      }
    }
    // A failing home relay does not stop the other hosts from being read.
    const except = failure === undefined ? undefined : homeId;
    yield* catchUpHosts(core, signal, { ...scope, except });
    if (failure !== undefined) throw failure.cause;
    // Tasks send messages over the home relay.
    if (scope.host !== undefined && scope.host !== homeId) return;
    // In the background while following: a contact whose relay stalls delays nothing that arrives.
    if (!scope.isTimed) return startTasks(core);
    await runTasks(core, signal);
    // Last: hosts that other own devices chose delay nothing else.
    if (scope.host === undefined) await adoptShared(core, signal);
  }

  /** Reads device state and timeline from the home relay, sends what waits, shares what changed. */
  async *#readHome(
    visit: TimeLimit,
    { inBackground }: { readonly inBackground: boolean },
  ): AsyncGenerator<readonly AccountEvent[]> {
    const core = this.#core;
    const home = await core.home();
    const { signal } = visit;
    // First: a device whose certificate has ended can do nothing else.
    yield await keepCertificate(core, signal);
    await syncOwnState(core, home, signal);
    const { restoredAt } = await home.authenticated(signal);
    yield await noticeRestore(core, home.relayId, restoredAt);
    yield* readTimeline(core, home.relayId, visit);
    await (inBackground ? startAllWaiting(core) : sendAllWaiting(core, signal));
    await flushOutbox(core, home.relayId, signal);
    const sharing = syncOwnDevices(core, signal, { inBackground });
    // Tried again with the next reading.
    await (inBackground ? sharing.catch(unlessMissing) : sharing);
  }

  /** Reads former relays; one that does not answer is skipped. */
  async *#readFormerRelays(signal: AbortSignal): AsyncGenerator<readonly AccountEvent[]> {
    const core = this.#core;
    const home = await homeRelay(core, this.id);
    const known = await core.store.read((tx) => timelines.list(tx));
    for (const { key: relayId } of known) {
      if (relayId === home) continue;
      try {
        yield* withTimeLimit(core, signal, (visit) => readTimeline(core, relayId, visit));
      } catch (error) {
        if (!isClientError(error) || isClientError(error, 'relay_misbehaviour')) throw error;
        signal.throwIfAborted();
      }
    }
  }
}

/** Counts everything that waits to be sent or confirmed. */
async function outboxLength(tx: StoreReader): Promise<number> {
  const rows = [...(await groupOutbox.list(tx)), ...(await channelOutbox.list(tx))];
  return rows.length + (await countUnsettled(tx));
}
