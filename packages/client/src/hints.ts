import type { Notification } from './connect/websocket-channel.ts';

/** What notifications said until somebody looked. */
export interface Drained {
  readonly head: number;
  readonly revision: number;
  /** Highest head by group. */
  readonly groups: ReadonlyMap<string, number>;
  /** Highest head by channel. */
  readonly channels: ReadonlyMap<string, number>;
  readonly 'group-applications': ReadonlySet<string>;
  readonly 'group-recoveries': ReadonlySet<string>;
}

/** Notifications merged to the highest of each kind, until somebody looks. */
export class Hints {
  #head = -1;
  #revision = -1;
  #groups = new Map<string, number>();
  #channels = new Map<string, number>();
  #applications = new Set<string>();
  #recoveries = new Set<string>();
  #waiting = Promise.withResolvers<void>();

  take({ method, params }: Notification): void {
    const { group_id: groupId } = params as { group_id: string };
    switch (method) {
      case 'message.timeline.changed':
        this.#head = Math.max(this.#head, params.head as number);
        break;
      case 'device.state.changed':
        this.#revision = Math.max(this.#revision, params.revision as number);
        break;
      case 'group.timeline.changed':
        raise(this.#groups, groupId, params.head as number);
        break;
      case 'channel.timeline.changed':
        raise(this.#channels, params.channel_id as string, params.head as number);
        break;
      case 'group.application.changed':
        this.#applications.add(groupId);
        break;
      case 'group.member.recovery.changed':
        this.#recoveries.add(groupId);
        break;
      default:
        return;
    }
    this.#waiting.resolve();
  }

  next(): Promise<void> {
    return this.#waiting.promise;
  }

  drain(): Drained {
    const drained = {
      head: this.#head,
      revision: this.#revision,
      groups: this.#groups,
      channels: this.#channels,
      'group-applications': this.#applications,
      'group-recoveries': this.#recoveries,
    };
    this.#head = -1;
    this.#revision = -1;
    this.#groups = new Map();
    this.#channels = new Map();
    this.#applications = new Set();
    this.#recoveries = new Set();
    this.#waiting = Promise.withResolvers();
    return drained;
  }
}

function raise(heads: Map<string, number>, id: string, head: number): void {
  heads.set(id, Math.max(heads.get(id) ?? -1, head));
}
