import { timelines } from './accounts/account-rows.ts';
import { resolveOwnState } from './accounts/device-states.ts';
import { homeRelay, isWrongHome, refreshHome } from './accounts/home-relay.ts';
import { checkMove, moveHome } from './accounts/move-home.ts';
import { knownProfile, publishProfile } from './accounts/profiles.ts';
import { Channels } from './api/channels.ts';
import { Contacts } from './api/contacts.ts';
import { Devices } from './api/devices.ts';
import { Groups } from './api/groups.ts';
import { Messages } from './api/messages.ts';
import { type Abortable, signalOf, type WithAccountKey } from './api/options.ts';
import { Profiles } from './api/profiles.ts';
import { channelOutbox } from './channels/outbox.ts';
import type { AccountCore } from './core.ts';
import { isClientError } from './errors.ts';
import type { AccountEvent } from './events.ts';
import { type FollowOptions, follow, mayRecover } from './follow/follow.ts';
import { groupOutbox } from './groups/outbox.ts';
import { outbox } from './messages/outbox.ts';
import { readTimeline, timelinePosition } from './messages/read-timeline.ts';
import { flushOutbox } from './messages/send-message.ts';
import type { StoreReader } from './store/index.ts';
import { noTimeLimit, type TimeLimit, withTimeLimit } from './sync/budget.ts';
import type { SyncScope } from './sync/catch-up-hosts.ts';
import { catchUpHosts } from './sync/catch-up-hosts.ts';
import { runTasks } from './sync/run-tasks.ts';
import { pendingTasks } from './sync/tasks.ts';

export interface AccountStatus {
  readonly account: string;
  readonly deviceId: string;
  readonly homeRelay: string;
  /** Processed position on the home relay's timeline; -1 at its beginning. */
  readonly position: number;
  /** Whether records were lost to retention before this device read them. */
  readonly gap: boolean;
  /** What was sent and whose fate is not known yet. */
  readonly outbox: number;
  /** Messages this device still has to send by itself. */
  readonly owed: number;
}

/**
 * An account, seen from one of its devices. Everything it reads from a relay is verified before it
 * is used; everything it must not forget is in the store before it leaves.
 *
 * @example
 * const account = await client.account();
 * await account.sync();
 * await account.messages.send(peer, { text: 'hello' });
 */
export class Account {
  readonly id: string;
  readonly deviceId: string;
  /** Compressed account key, base64url: what a new device of the account is told. */
  readonly publicKey: string;
  readonly devices: Devices;
  readonly profiles: Profiles;
  readonly contacts: Contacts;
  readonly messages: Messages;
  readonly groups: Groups;
  readonly channels: Channels;
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
    this.id = core.account;
    this.deviceId = core.device.deviceId;
    this.publicKey = core.publicKey;
    this.devices = new Devices(core);
    this.profiles = new Profiles(core);
    this.contacts = new Contacts(core);
    this.messages = new Messages(core);
    this.groups = new Groups(core);
    this.channels = new Channels(core);
  }

  /**
   * Catches up once: own device state, timeline, groups, channels, what waits to be sent, what is
   * owed. Hosts are read beside each other, and each for a limited time.
   *
   * @param options.formerRelays also reads the timelines of relays the account has left, as far as
   *   they still answer
   * @returns what happened
   * @throws ClientError; what was applied before stays
   */
  async sync(
    options: Abortable & { readonly formerRelays?: boolean } = {},
  ): Promise<AccountEvent[]> {
    const signal = signalOf(options);
    const events = this.#core.eventBuffer.take();
    const collect = async (found: AsyncIterable<readonly AccountEvent[]>) => {
      for await (const batch of found) events.push(...batch);
    };
    const everything = { home: true, isTimed: true };
    try {
      try {
        await collect(this.#catchUp(signal, everything));
      } catch (error) {
        if (!isWrongHome(error)) throw error;
        await refreshHome(this.#core, this.id, signal);
        await collect(this.#catchUp(signal, everything));
      }
      if (options.formerRelays) await collect(this.#readFormerRelays(signal));
    } catch (error) {
      // What was applied is in the store, and nobody would be told of it any more.
      this.#core.eventBuffer.add(events);
      throw error;
    }
    events.push(...this.#core.eventBuffer.take());
    return events;
  }

  /**
   * Gives what happens as it happens, catching up first, until the signal aborts. Connections that
   * break are rebuilt. What was given is in the store already; leaving the loop loses nothing.
   *
   * @throws ClientError that waiting does not heal
   * @example
   * for await (const event of account.follow({ signal })) {
   *   if (event.kind === 'message') show(event.message);
   * }
   */
  follow(options: FollowOptions): AsyncGenerator<AccountEvent> {
    const followed = {
      core: this.#core,
      catchUp: (signal: AbortSignal, scope: SyncScope) =>
        this.#catchUp(signal, { ...scope, isTimed: false }),
      refreshHome: async (signal: AbortSignal) => {
        await refreshHome(this.#core, this.id, signal);
      },
    };
    return follow(followed, options);
  }

  /**
   * Makes another relay the home; the old one is read once more first, where it still answers.
   * The profile is published anew there.
   */
  async move(relayId: string, options: WithAccountKey = {}): Promise<void> {
    const core = this.#core;
    const signal = signalOf(options);
    checkMove(await homeRelay(core, this.id), relayId);
    const signer = await core.accountKey(options.accountKey);
    await this.sync(options).catch((error: unknown) => {
      if (!isClientError(error) || signal.aborted) throw error;
    });
    const profile = await knownProfile(core, this.id);
    await moveHome(core, { relayId, signer, signal });
    if (profile !== undefined) await publishProfile(core, profile, signal);
  }

  async status(): Promise<AccountStatus> {
    const core = this.#core;
    const relayId = await homeRelay(core, this.id);
    return await core.store.read(async (tx) => ({
      account: this.id,
      deviceId: this.deviceId,
      homeRelay: relayId,
      position: await timelinePosition(tx, relayId),
      gap: (await timelines.get(tx, relayId))?.gap ?? false,
      outbox: await waiting(tx),
      owed: (await pendingTasks.list(tx)).length,
    }));
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
        const read = (visit: TimeLimit) => this.#readHome(visit);
        yield* scope.isTimed ? withTimeLimit(core, signal, read) : read(noTimeLimit(signal));
      } catch (cause) {
        signal.throwIfAborted();
        if (scope.host !== undefined || !mayRecover(cause)) throw cause;
        failure = { cause };
      }
    }
    // Other hosts are read all the same: what becomes of the home relay is no fault of theirs.
    const but = failure === undefined ? undefined : homeId;
    yield* catchUpHosts(core, signal, { ...scope, but });
    if (failure !== undefined) throw failure.cause;
    // These are messages over the home relay.
    if (scope.host === undefined || scope.host === homeId) await runTasks(core, signal);
  }

  /** The home relay's own part: device state, timeline, what waits to be sent. */
  async *#readHome(visit: TimeLimit): AsyncGenerator<readonly AccountEvent[]> {
    const core = this.#core;
    const home = await core.home();
    const { signal } = visit;
    await resolveOwnState(core, home, { account: this.id, signal });
    yield* readTimeline(core, home.relayId, visit);
    await flushOutbox(core, signal);
  }

  /** A dead relay keeps what it has; that is no reason to fail. */
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

/** How much waits to be sent, of whatever kind. */
async function waiting(tx: StoreReader): Promise<number> {
  const rows = [await outbox.list(tx), await groupOutbox.list(tx), await channelOutbox.list(tx)];
  return rows.flat().length;
}
