/** Retention compared with a simple model, and with concurrent writes, reads and jobs. */
import { verifyChannelPage } from '@posthouse/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { restorePost, withholdPost } from '../../src/channels/index.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { readWhole } from '../fixtures/channel-reader.ts';
import { Person } from '../fixtures/person.ts';
import { share } from '../support/chance.ts';
import { engine } from '../support/engine.ts';
import { InProcessRelay, network } from '../support/in-process-relay.ts';

/** Every event ever appended, with its deadline. */
interface Item {
  readonly sequence: number;
  readonly kind: 'descriptor' | 'post' | 'edit' | 'delete';
  readonly revision: number;
  readonly deviceId: string;
  readonly keepUntil: number;
  /** The post of an edit or a deletion. */
  readonly post?: Item;
}

const writers = ['ann phone', 'ann laptop', 'ben phone'] as const;
const writer = fc.constantFrom(...writers);
const which = fc.nat(3);
const command = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('post' as const), by: writer }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('edit' as const), by: writer, which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('delete' as const), by: writer, which }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('update' as const), by: writer }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('withhold' as const), which }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('restore' as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      seconds: fc.constantFrom(1, 4, 6, 30, 60),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('limit' as const),
      retention: fc.constantFrom(5, 50, 200),
    }),
  },
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

class Model {
  readonly items: Item[] = [];
  readonly deleted = new Map<Item, Item>();
  readonly withheld = new Set<Item>();
  revision = 0;

  get head(): number {
    return this.items.at(-1)?.sequence ?? -1;
  }

  /** Stored posts, withheld or not. */
  posts(now: number): Item[] {
    return this.items.filter((item) => item.kind === 'post' && this.#isKept(item, now));
  }

  /** Implements the table of 06 §7.5 line by line. */
  kept(now: number): Item[] {
    return this.items.filter((item) => this.#isKept(item, now));
  }

  isReadable(item: Item): boolean {
    const post = item.kind === 'edit' ? item.post : item;
    return !this.withheld.has(post as Item);
  }

  #isKept(item: Item, now: number): boolean {
    if (item.kind === 'descriptor' && item.revision === this.revision) return true;
    if (item.kind === 'post' && this.deleted.has(item)) return false;
    if (item.kind === 'edit' && this.deleted.has(item.post as Item)) return false;
    return this.#end(item) > now;
  }

  /** Returns the time at which it can be removed. */
  #end(item: Item): number {
    const { kind, keepUntil, post } = item;
    if (kind === 'edit') return (post as Item).keepUntil;
    if (kind === 'delete') return Math.max(keepUntil, (post as Item).keepUntil);
    if (kind === 'post') return keepUntil;
    const needing = this.items.filter(
      (other) => other.kind !== 'descriptor' && other.revision === item.revision,
    );
    return Math.max(keepUntil, ...needing.map((other) => this.#end(other)));
  }
}

async function apply(
  relay: InProcessRelay,
  { channel, model, people }: { channel: TestChannel; model: Model; people: Map<string, Person> },
  one: Command,
): Promise<void> {
  const now = relay.clock.now();
  if (one.kind === 'wait') return void relay.clock.advance(one.seconds);
  if (one.kind === 'limit') {
    return await relay.restart({ channelTimelineRetention: one.retention });
  }
  if (one.kind === 'withhold' || one.kind === 'restore') {
    const withheld = one.kind === 'restore';
    const posts = model.posts(now).filter((post) => model.withheld.has(post) === withheld);
    const post = posts[one.which % Math.max(posts.length, 1)];
    if (post === undefined) return;
    const place = { channelId: channel.channelId, sequence: post.sequence };
    const { storage } = relay.context;
    if (withheld) await restorePost(storage, place);
    else await withholdPost(storage, place, now);
    if (withheld) model.withheld.delete(post);
    else model.withheld.add(post);
    return;
  }
  const [name = '', device = ''] = one.by.split(' ');
  const by = { by: people.get(name) as Person, device };
  const common = {
    sequence: model.head + 1,
    deviceId: by.by.device(device).deviceId,
    keepUntil: now + relay.context.limits.channelTimelineRetention,
  };
  const { revision } = model;
  if (one.kind === 'post') {
    expect(await channel.post(undefined, by)).toBe(common.sequence);
    model.items.push({ ...common, revision, kind: 'post' });
  } else if (one.kind === 'update') {
    if (name !== 'ann') return;
    await channel.update({ name: `name ${revision + 1}` }, by);
    model.revision += 1;
    model.items.push({ ...common, revision: model.revision, kind: 'descriptor' });
  } else {
    const posts = model.posts(now);
    const post = posts[one.which % Math.max(posts.length, 1)];
    if (post === undefined) return;
    if (one.kind === 'edit') {
      if (model.withheld.has(post)) return;
      await channel.edit(post.sequence, { body: text(`edit ${common.sequence}`) }, by);
    } else {
      await channel.delete(post.sequence, {}, by);
    }
    const item = { ...common, revision, kind: one.kind, post };
    model.items.push(item);
    if (one.kind === 'delete') {
      model.deleted.set(post, item);
      model.withheld.delete(post);
    }
  }
}

test('06 §7.5: exactly the events of the table are stored, and all of them verify', async () => {
  const commands = fc.array(command, { minLength: 20, maxLength: 60 });
  await fc.assert(
    fc.asyncProperty(commands, async (all) => {
      await using relay = await InProcessRelay.start({ channelTimelineRetention: 100 });
      const ann = await Person.register(relay, 'ann', ['phone', 'laptop']);
      const ben = await Person.register(relay, 'ben');
      const people = new Map(Object.entries({ ann, ben }));
      const channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
      const model = new Model();
      const first = { sequence: 0, kind: 'descriptor', revision: 0 } as const;
      const deviceId = ann.device().deviceId;
      model.items.push({ ...first, deviceId, keepUntil: relay.clock.now() + 100 });
      for (const one of all) {
        await apply(relay, { channel, model, people }, one);
        await relay.runJob('channels.retention');
        const kept = model.kept(relay.clock.now());
        const readable = kept.filter((item) => model.isReadable(item));
        const found = await readWhole(relay, channel);
        expect(found.map(({ sequence }) => sequence)).toEqual(
          readable.map(({ sequence }) => sequence),
        );
        const rows = await relay.dump();
        const certified = (rows.channel_certificates as { device_id: string }[]).map(
          ({ device_id }) => device_id,
        );
        const needed = new Set(kept.map((item) => item.deviceId));
        expect(certified.sort()).toEqual([...needed].sort());
        expect(rows.channel_events).toHaveLength(readable.length);
        expect(rows.channel_withheld_events).toHaveLength(kept.length - readable.length);
        expect(rows.channels).toMatchObject([{ head: model.head, revision: model.revision }]);
      }
    }),
    { numRuns: engine === 'sqlite' && share !== 'part' ? 15 : 5 },
  );
}, 180_000);

test('06 §7.2, §7.5: after concurrent writes, reads and jobs the timeline verifies', async () => {
  await using relay = await InProcessRelay.start({ channelTimelineRetention: 20 });
  const ann = await Person.register(relay, 'ann', ['phone', 'laptop']);
  const ben = await Person.register(relay, 'ben');
  const channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
  const posts: number[] = [];
  const step = async (turn: number) => {
    const by = turn % 3 === 0 ? { by: ben } : { device: turn % 2 === 0 ? 'phone' : 'laptop' };
    if (turn % 2 === 0) return void posts.push(await channel.post(undefined, by));
    const target = posts.at(-1 - (turn % 7));
    if (target === undefined) return;
    const isDeletion = turn % 9 === 0;
    // The post may be removed or deleted by then, which is the only reason for a refusal.
    await (isDeletion
      ? channel.delete(target, {}, by)
      : channel.edit(target, { body: text(`${turn}`) }, by)
    ).catch((error: Error) => expect(error).toHaveProperty('code'));
  };
  // A descriptor may be removed between a page and its `channel.resolve`; nothing else may fail.
  const look = async () => {
    const known = { channelId: channel.channelId, relayId: relay.relayId };
    const { refused } = verifyChannelPage(network, await channel.read({ after: -1 }), known);
    expect(refused).toEqual([]);
  };
  for (let round = 0; round < 12; round += 1) {
    relay.clock.advance(5);
    const turns = Array.from({ length: 8 }, (_, index) => step(round * 8 + index));
    const jobs = [1, 2].map(() => relay.runJob('channels.retention'));
    await Promise.all([...turns, ...jobs, look()]);
    if (round % 4 === 0) await channel.update({ name: `round ${round}` });
    await readWhole(relay, channel);
  }
  relay.clock.advance(20);
  await relay.runJob('channels.retention');
  expect(await readWhole(relay, channel)).toMatchObject([{ kind: 'descriptor' }]);
  const rows = await relay.dump();
  expect(rows.channel_events).toHaveLength(1);
  expect(rows.channel_certificates).toHaveLength(1);
  expect([rows.channel_posts, rows.channel_hidden_posts]).toEqual([[], []]);
}, 180_000);
