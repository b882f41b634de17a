/** Connections of a world without sockets: what a relay sends is written down. */

import { encodeBase64url } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import type { Bus } from '../../src/context.ts';
import type { ConnectionBinding } from '../../src/dispatch/call.ts';
import { ChannelListeners } from '../../src/notifications/channel-listeners.ts';
import { GroupListeners } from '../../src/notifications/group-listeners.ts';
import { Hub } from '../../src/notifications/hub.ts';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { insertSession } from '../../src/sessions/session-store.ts';
import type { Reader, Storage } from '../../src/storage/types.ts';
import { BoundSession } from '../../src/transport/bound-session.ts';
import type { Person } from './people.ts';
import type { RpcNotification } from './websocket.ts';
import type { World } from './world.ts';

interface Group {
  readonly groupId: string;
}

interface Channel {
  readonly channelId: string;
}

/** A notification, shortly: what it is about, and the head where it has one. */
export type Heard = readonly ['timeline', number] | readonly ['applications' | 'recoveries'];

const shortNames: Readonly<Record<string, Heard[0]>> = {
  'group.timeline.changed': 'timeline',
  'group.application.changed': 'applications',
  'group.member.recovery.changed': 'recoveries',
  'channel.timeline.changed': 'timeline',
};

export function shortly({ method, params }: RpcNotification): Heard {
  const name = shortNames[method] ?? method;
  return (params.head === undefined ? [name] : [name, params.head]) as Heard;
}

/** Where the connections of one process end. */
export class Switchboard {
  readonly world: World;
  readonly hub: Hub;
  /** What happens before and after it is looked up who may hear. */
  beforeLook: () => void | Promise<void> = () => {};
  afterLook: () => void | Promise<void> = () => {};

  constructor(world: World, bus: Bus = world.context.bus) {
    this.world = world;
    const { storage } = world.context;
    const watched = {
      read: async (work: (tx: Reader) => Promise<unknown>) => {
        await this.beforeLook();
        const found = await storage.read(work);
        await this.afterLook();
        return found;
      },
    } as Storage;
    const context = { ...world.context, bus, storage: watched };
    this.hub = new Hub(bus, {
      group: new GroupListeners(context),
      channel: new ChannelListeners(context),
    });
  }

  /** A connection that a device authenticated. */
  async connect(person: Person, device = 'phone'): Promise<Connection> {
    const { storage } = this.world.context;
    const id = encodeBase64url(nodeRandom(9));
    const session: DeviceSession = { ...person.session(device), id };
    await storage.write('test', (tx) => insertSession(tx, { session, origin: 'https://here' }));
    return new Connection(this, session);
  }

  /** A connection of somebody that hears of these groups. */
  async subscribed(person: Person, ...groups: readonly Group[]): Promise<Connection> {
    const connection = await this.connect(person);
    await connection.subscribe(...groups);
    return connection;
  }

  /** A connection of somebody that hears of these channels. */
  async following(person: Person, ...channels: readonly Channel[]): Promise<Connection> {
    const connection = await this.connect(person);
    await connection.follow(...channels);
    return connection;
  }
}

/** One connection; a slow one takes nothing off the network until it is let. */
export class Connection implements ConnectionBinding {
  readonly bound: BoundSession;
  readonly #world: World;
  readonly #texts: string[] = [];
  readonly #unsent: (() => void)[] = [];
  isSlow = false;

  constructor({ hub, world }: Switchboard, session: DeviceSession) {
    this.#world = world;
    this.bound = new BoundSession(session, {
      hub,
      clock: world.clock,
      send: (text, sent) => {
        this.#texts.push(text);
        if (this.isSlow) this.#unsent.push(sent);
        else sent();
      },
    });
    this.bound.enable();
  }

  bind(): void {
    throw new Error('nothing authenticates here');
  }

  end(): void {
    this.bound.revoke();
  }

  setSubscriptions(...request: Parameters<ConnectionBinding['setSubscriptions']>): Promise<void> {
    return this.bound.setSubscriptions(...request);
  }

  /** @throws ProtocolError what the relay refuses with */
  async subscribe(...groups: readonly Group[]): Promise<void> {
    const group_ids = groups.map(({ groupId }) => groupId);
    await this.#world.call('group.subscribe', { group_ids }, { connection: this });
  }

  /** @throws ProtocolError what the relay refuses with */
  async follow(...channels: readonly Channel[]): Promise<void> {
    const channel_ids = channels.map(({ channelId }) => channelId);
    await this.#world.call('channel.subscribe', { channel_ids }, { connection: this });
  }

  /** Takes everything off the network that waits there. */
  drain(): void {
    for (const sent of this.#unsent.splice(0)) sent();
  }

  /** What arrived since the last look, of one group or channel where several are subscribed. */
  heard(of?: Group | Channel): Heard[] {
    const wanted = of && ('groupId' in of ? of.groupId : of.channelId);
    const all: RpcNotification[] = this.#texts.splice(0).map((text) => JSON.parse(text));
    return all
      .filter(
        ({ params }) => wanted === undefined || wanted === (params.group_id ?? params.channel_id),
      )
      .map(shortly);
  }

  /** As they came. */
  texts(): string[] {
    return this.#texts.splice(0);
  }
}
