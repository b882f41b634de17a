import type { AccountEvent } from '@posthouse/client';
import { signal } from '@preact/signals';
import type { MakeSource } from './conversation-source.ts';
import type { Host, RoomWatch } from './host.ts';

/** What the app itself uses of groups and channels. */
export interface RoomParts {
  readonly Rooms: new (host: Host) => RoomWatch;
  readonly groupSource: MakeSource;
  readonly channelSource: MakeSource;
}

/** Groups and channels: a part that is loaded when it is needed first. */
export class LaterRooms {
  readonly watch = signal<RoomWatch | undefined>(undefined);
  readonly #load: () => Promise<RoomParts>;
  #rooms: Promise<RoomWatch> | undefined;

  constructor(load: () => Promise<RoomParts>) {
    this.#load = load;
  }

  /** Returns how to open a group or channel; `undefined` offline, if the part was never loaded. */
  async source(kind: 'group' | 'channel'): Promise<MakeSource | undefined> {
    try {
      const { groupSource, channelSource } = await this.#load();
      return kind === 'group' ? groupSource : channelSource;
    } catch {
      return undefined;
    }
  }

  /** In the order of the events; offline, a part that was never loaded is left out. */
  apply(host: Host, event: AccountEvent): void {
    this.#rooms ??= this.#load().then(({ Rooms }) => new Rooms(host));
    this.#rooms.then(
      (rooms) => {
        this.watch.value = rooms;
        rooms.apply(event);
      },
      () => undefined,
    );
  }
}
