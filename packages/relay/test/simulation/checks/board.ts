/** A channel as its people act in it, and the rules of its timeline. */
import type { ProtocolError } from '@posthouse/protocol';
import { TestChannel, text } from '../../fixtures/channel.ts';
import { readWhole } from '../../fixtures/channel-reader.ts';
import type { Home } from '../clients/home.ts';
import type { Resident } from '../clients/resident.ts';
import type { Journal } from '../journal.ts';
import type { Chance } from '../machine/chance.ts';
import { Changes, ofDevice } from './changes.ts';
import { Log } from './log.ts';

interface StoredPost {
  readonly sequence: number;
  readonly message_id: string;
}

export class Board {
  readonly host: Home;
  readonly channel: TestChannel;
  readonly owner: Resident;
  readonly posts: Log;
  /** The account that may post in addition to the owner, if there is one. */
  moderator: Resident | undefined;
  /** Whether the right of the moderator is being changed. */
  #isChanging = false;
  readonly #journal: Journal;
  readonly #own: number[] = [];
  readonly #deleted = new Set<number>();
  readonly #changes: Changes;

  private constructor(parts: {
    readonly owner: Resident;
    readonly host: Home;
    readonly channel: TestChannel;
    readonly journal: Journal;
  }) {
    this.owner = parts.owner;
    this.host = parts.host;
    this.channel = parts.channel;
    this.#journal = parts.journal;
    this.posts = new Log(`channel ${this.id}`, parts.journal);
    const isUncertain = () => this.owner.isUncertainAt(this.host.relay);
    this.#changes = new Changes(this.posts.name, parts.journal, isUncertain);
  }

  static async create(owner: Resident, journal: Journal): Promise<Board> {
    const host = owner.home;
    const channel = await TestChannel.create(host, owner.person);
    return new Board({ owner, host, channel, journal });
  }

  get id(): string {
    return this.channel.channelId;
  }

  /** Publishes a post. */
  async post(by: Resident, device: string): Promise<void> {
    const options = { by: by.person, device };
    const post = this.channel.newPost({ body: text('news') }, options);
    const mayPost = by === this.owner || (by === this.moderator && !this.#isChanging);
    const write = async () => {
      const { relay } = this.host;
      const answer = await by.agent(device).call(relay, 'channel.post', post as never);
      return (answer as { sequence: number }).sequence;
    };
    const sequence = await this.posts.submit(post.message_id, write, () => {
      const still = by === this.owner || (by === this.moderator && !this.#isChanging);
      return [
        ...(mayPost && still ? [] : ['forbidden']),
        ...(by.devices.has(device) && !by.isUncertainAt(this.host.relay) ? [] : ofDevice),
      ];
    });
    if (sequence !== undefined && by === this.owner) this.#own.push(sequence);
  }

  /** Edits or deletes a post of the owner. */
  async revise(chance: Chance): Promise<void> {
    await this.#changes.make(async () => {
      const open = this.#own.filter((sequence) => !this.#deleted.has(sequence));
      if (open.length === 0) return;
      const target = chance.pick(open);
      if (chance.is(0.7)) {
        await this.channel.edit(target, { body: text(`better ${chance.below(100)}`) });
        return;
      }
      await this.channel.delete(target);
      this.#deleted.add(target);
    });
  }

  /** Changes the descriptor: its name, or the right of a moderator. */
  async update(chance: Chance, candidates: readonly Resident[]): Promise<void> {
    await this.#changes.make(async () => {
      if (chance.is(0.4)) {
        await this.channel.update({ name: `notes ${chance.below(100)}` });
        return;
      }
      const next = this.moderator === undefined ? chance.pick(candidates) : undefined;
      this.#isChanging = true;
      await this.channel.update({ moderators: next === undefined ? [] : [next.person.account] });
      const former = this.moderator;
      this.moderator = next;
      this.#isChanging = false;
      if (former !== undefined) await this.#refused(former);
    });
  }

  /** Reads and verifies everything, as a new client does. */
  async read(): Promise<void> {
    const events = await readWhole(this.host, this.channel);
    const rising = events.every(
      ({ sequence }, index) => sequence > (events[index - 1]?.sequence ?? -1),
    );
    this.#journal.must(rising, () => `${this.posts.name} is not in order`);
  }

  /** Checks the posts that the host has stored. */
  check(): void {
    const rows = this.host.relay.disk.query<StoredPost>(
      'SELECT sequence, message_id FROM channel_posts WHERE channel_id = ?',
      this.id,
    );
    this.posts.check(new Map(rows.map(({ sequence, message_id }) => [sequence, message_id])));
  }

  /** A moderator that is none any more is refused. */
  async #refused(former: Resident): Promise<void> {
    const post = this.channel.newPost({ body: text('late') }, { by: former.person });
    const { relay } = this.host;
    const agent = former.agent('phone');
    const code = await agent.call(relay, 'channel.post', post as never).then(
      () => 'ok',
      (error: ProtocolError) => error.code,
    );
    const isRefused = ofDevice.includes(code);
    this.#journal.must(isRefused, () => `a former moderator posts: ${code}`);
  }
}
