import type { Notification } from '../connect/websocket-wire.ts';
import type { ClientError } from '../errors.ts';

/** What is subscribed at one relay; notifications of anything else are ignored (02 §12.3). */
export interface SubscribedSet {
  /** Whether it is the home relay: only that one sends hints of timeline and device state. */
  readonly isHome: boolean;
  readonly groups: ReadonlySet<string>;
  readonly channels: ReadonlySet<string>;
}

/** The hints since the last call of {@link Hints.drain}. */
export interface HintSnapshot {
  readonly head: number;
  readonly revision: number;
  /** Highest head by group. */
  readonly groups: ReadonlyMap<string, number>;
  /** Highest head by channel. */
  readonly channels: ReadonlyMap<string, number>;
  readonly 'group-applications': ReadonlySet<string>;
  readonly 'group-recoveries': ReadonlySet<string>;
  /** Whether {@link Hints.wake} was called. */
  readonly isWoken: boolean;
}

/**
 * Merges the notifications of one relay: the highest head of each timeline, until they are drained.
 * Only what is subscribed there is stored, so that a relay cannot fill the memory.
 */
export class Hints {
  /** Replaced when subscriptions change. */
  subscribed: SubscribedSet;
  #head = -1;
  #revision = -1;
  #groups = new Map<string, number>();
  #channels = new Map<string, number>();
  #applications = new Set<string>();
  #recoveries = new Set<string>();
  #isWoken = false;
  #end: ClientError | undefined;
  #waiting = Promise.withResolvers<void>();

  constructor(isHome: boolean) {
    this.subscribed = { isHome, groups: new Set(), channels: new Set() };
  }

  /** Merges one notification; one that was not subscribed is ignored. */
  add({ method, params }: Notification): void {
    const { isHome, groups, channels } = this.subscribed;
    const { group_id: groupId, channel_id: channelId } = params as Record<string, string>;
    const { head, revision } = params as Record<string, number>;
    if (groupId !== undefined && !groups.has(groupId)) return;
    if (channelId !== undefined && !channels.has(channelId)) return;
    switch (method) {
      case 'message.timeline.changed':
        if (!isHome) return;
        this.#head = Math.max(this.#head, head ?? -1);
        break;
      case 'device.state.changed':
        if (!isHome) return;
        this.#revision = Math.max(this.#revision, revision ?? -1);
        break;
      case 'group.timeline.changed':
        raise(this.#groups, groupId, head);
        break;
      case 'channel.timeline.changed':
        raise(this.#channels, channelId, head);
        break;
      case 'group.application.changed':
        this.#applications.add(groupId as string);
        break;
      case 'group.member.recovery.changed':
        this.#recoveries.add(groupId as string);
        break;
      default:
        return;
    }
    this.#waiting.resolve();
  }

  /** Wakes the waiting reader without a notification. */
  wake(): void {
    this.#isWoken = true;
    this.#waiting.resolve();
  }

  /** Ends waiting with an error: the connection was lost. */
  end(reason: ClientError): void {
    this.#end ??= reason;
    this.#waiting.resolve();
  }

  /** Resolves when there are hints. @throws ClientError with which the connection ended */
  async changed(): Promise<void> {
    await this.#waiting.promise;
    if (this.#end !== undefined) throw this.#end;
  }

  /** Returns the merged hints and forgets them. */
  drain(): HintSnapshot {
    const drained = {
      head: this.#head,
      revision: this.#revision,
      groups: this.#groups,
      channels: this.#channels,
      'group-applications': this.#applications,
      'group-recoveries': this.#recoveries,
      isWoken: this.#isWoken,
    };
    this.#head = -1;
    this.#revision = -1;
    this.#groups = new Map();
    this.#channels = new Map();
    this.#applications = new Set();
    this.#recoveries = new Set();
    this.#isWoken = false;
    if (this.#end === undefined) this.#waiting = Promise.withResolvers();
    return drained;
  }
}

function raise(heads: Map<string, number>, id: string | undefined, head: number | undefined): void {
  if (id !== undefined && head !== undefined) heads.set(id, Math.max(heads.get(id) ?? -1, head));
}
