/** Removals of devices under a fault: for how long a removed device is still served anywhere. */
import { setTimeout } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import type { Log } from './log.ts';
import { type Ground, Line, type Member } from './member.ts';
import type { Person, Phone } from './people.ts';
import type { Reply } from './relay-connection.ts';

/** Any channel: whether there is one is answered to a device that may read only. */
const anyChannel = { channel_id: `chan_${'A'.repeat(22)}` };
/** Milliseconds between two questions, and without an answer to any of them that served. */
const interval = 20;
/** Milliseconds before another attempt to connect. */
const retryAfter = 200;
const quiet = 7_000;

/** A device with a connection and a token at each process, and how it was served after its removal. */
export class RemovedDevice implements Disposable {
  readonly #lines: Line[] = [];
  readonly #person: Person;

  private constructor(person: Person) {
    this.#person = person;
  }

  /** Connects the second device of a person to each process. */
  static async connect(person: Person, cluster: Cluster, ground: Ground): Promise<RemovedDevice> {
    const device = new RemovedDevice(person);
    const phone = person.phones[1] as Phone;
    for (const port of cluster.ports) {
      await device.#connect(() => Line.socket(phone, ground, { port }));
      await device.#connect(async () => Line.https(phone, ground, { port }));
    }
    return device;
  }

  /** Tries until the process, which may just recover from a fault, lets the device in. */
  async #connect(open: () => Promise<Line>): Promise<void> {
    for (;;) {
      const line = await open().catch(() => undefined);
      if ((await line?.enter()) === 'ok') {
        this.#lines.push(line as Line);
        return;
      }
      line?.[Symbol.dispose]();
      await setTimeout(retryAfter);
    }
  }

  /** Publishes a state without the device, until that is confirmed; repeated at any process. */
  async remove(owner: Member, log: Log): Promise<void> {
    const [kept, removed] = this.#person.phones as [Phone, Phone];
    const state = await this.#person.account.state([kept.device]);
    const facts = {
      account: this.#person.account.id,
      device: removed.name,
      revision: state.revision,
    };
    this.#person.phones = [kept];
    log.add({ kind: 'removing', ...facts });
    const reply = await owner.request('device.state.publish', state);
    if (reply?.outcome !== 'ok') throw new Error(`the removal was answered ${reply?.outcome}`);
    log.add({ kind: 'removed', ...facts });
  }

  /**
   * Reads a channel on every line again and again.
   *
   * @returns milliseconds after now at which the last answer came that served the device; 0 for none
   */
  async servedFor(): Promise<number> {
    const began = performance.now();
    const last = await Promise.all(this.#lines.map((line) => this.#lastServed(line, began)));
    return Math.round(Math.max(...last));
  }

  async #lastServed(line: Line, began: number): Promise<number> {
    let last = 0;
    while (performance.now() - began < quiet) {
      // A process that is stopped answers when it goes on.
      const reply = await line.link.call('channel.read', anyChannel);
      if (isServed(reply)) last = performance.now() - began;
      if (reply.outcome === 'unauthorized' || reply.outcome === 'lost') return last;
      await setTimeout(interval);
    }
    return last;
  }

  [Symbol.dispose](): void {
    for (const line of this.#lines) line[Symbol.dispose]();
  }
}

function isServed({ outcome }: Reply): boolean {
  return outcome === 'ok' || outcome === 'not_found';
}
