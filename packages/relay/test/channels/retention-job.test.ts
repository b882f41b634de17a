/** The retention job next to writes, next to other runs of itself, and when it is stopped. */
import { beforeEach, describe, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { readWhole } from '../fixtures/channel-reader.ts';
import { scansAndSorts } from '../support/engine.ts';
import { breakOwner, crashJob } from '../support/faults.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const retention = 10_000;
const year = 31_536_000;

const relay = inProcessRelay({ channelTimelineRetention: retention });
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben', ['phone', 'laptop']);
let channel: TestChannel;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
});

const rows = (table: string) => relay.rows(table);
const run = () => relay.runJob('channels.retention');
const readable = async () => (await readWhole(relay, channel)).map(({ sequence }) => sequence);
const stored = async () => (await rows('channel_events')).map(({ sequence }) => sequence);
const devices = async () =>
  (await rows('channel_certificates')).map(({ device_id }) => device_id).sort();
const codeOf = (method: string, params: unknown, by = ann) =>
  relay.codeOf(`channel.${method}`, params, { session: by.session() });
const crash = (commits: number) => crashJob(relay, 'channels.retention', commits);

describe('the job next to writes and other runs', () => {
  /** Runs `work` after the job has read what is due and before it removes anything. */
  const between = (work: () => Promise<unknown>) => {
    const { storage } = relay.context;
    const { write } = storage;
    storage.write = async (aggregates, other) => {
      storage.write = write;
      await work();
      return (await write.call(storage, aggregates, other)) as never;
    };
  };

  test('an edit of a post that becomes due is removed with it', async () => {
    const post = await channel.post();
    relay.clock.advance(retention);
    between(() => channel.edit(post, { body: text('late') }));
    await run();
    expect(await readable()).toEqual([0]);
    expect(await stored()).toEqual([0]);
    expect(await rows('channel_hidden_posts')).toEqual([]);
  });

  test('a post that is deleted while it becomes due is stored as deleted', async () => {
    const post = await channel.post();
    await channel.edit(post, { body: text('edited') });
    relay.clock.advance(retention);
    between(() => channel.delete(post));
    await run();
    expect(await readable()).toEqual([0, post + 2]);
    expect(await stored()).toEqual([0, post + 2]);
    expect(await rows('channel_posts')).toMatchObject([{ status: 'deleted' }]);
    expect(await codeOf('post.delete', channel.newDeletion(post))).toBe('state_conflict');
  });

  test('if a moderator posts while the certificate is removed, the certificate is stored again', async () => {
    const post = await channel.post(undefined, { by: ben });
    relay.clock.advance(retention);
    between(() => channel.post(undefined, { by: ben }));
    await run();
    expect(await readable()).toEqual([0, post + 1]);
    await channel.delete(post + 1);
    await channel.post(undefined, { by: ben });
    expect(await readable()).toEqual([0, post + 2, post + 3]);
  });

  test('concurrent runs remove everything once', async () => {
    const channels = [channel];
    for (let count = 0; count < 3; count += 1) channels.push(await TestChannel.create(relay, ann));
    for (const each of channels) {
      for (let count = 0; count < 4; count += 1) {
        const post = await each.post();
        await each.edit(post, { body: text(`${count}`) });
      }
      await each.update({ name: 'other' });
    }
    relay.clock.advance(retention);
    await Promise.all([run(), run(), run()]);
    await run();
    for (const each of channels) {
      expect((await readWhole(relay, each)).map(({ sequence }) => sequence)).toEqual([9]);
    }
    expect(await stored()).toEqual([9, 9, 9, 9]);
    expect(await rows('channel_certificates')).toHaveLength(4);
  });

  test('a run that was stopped at any commit is completed by the next', async () => {
    await channel.post(undefined, { by: ben });
    await channel.edit(1, { body: text('edited') }, { by: ben, device: 'laptop' });
    const gone = await channel.post();
    await channel.edit(gone, { body: text('edited') });
    await channel.delete(gone);
    await channel.update({ name: 'other' });
    const last = await channel.post();
    await relay.restart({ channelTimelineRetention: year });
    await channel.edit(last, { body: text('edited') });
    relay.clock.advance(retention);
    for (let commits = 0; commits < 4; commits += 1) {
      await crash(1);
      // After each commit everything readable verifies.
      await readable();
    }
    await run();
    expect(await stored()).toEqual([6]);
    expect(await readable()).toEqual([6]);
    expect(await devices()).toEqual(ann.deviceIds('phone'));
  });

  test('a run that was stopped between the edits of one post is completed by the next', async () => {
    const post = await channel.post();
    const edits = 205;
    for (let count = 0; count < edits; count += 1) {
      await channel.edit(post, { body: text(`edit ${count}`) });
    }
    await channel.delete(post);
    // One commit removes two hundred.
    await crash(1);
    expect(await stored()).toHaveLength(7);
    await run();
    expect(await stored()).toEqual([0, post + edits + 1]);
    expect(await rows('channel_hidden_posts')).toEqual([]);
  });

  test('one failing channel does not delay the others and is retried', async () => {
    const channels = [
      channel,
      await TestChannel.create(relay, ann),
      await TestChannel.create(relay, ann),
    ];
    for (const each of channels) {
      await each.edit(await each.post(), { body: text('edited') });
      await each.delete(await each.post());
      await each.update({ name: 'other' });
    }
    const [broken] = channels.map(({ channelId }) => channelId).sort() as [string];
    relay.clock.advance(retention);
    {
      using _fault = breakOwner(relay, `channel:${broken}`);
      expect(await run()).toBe(relay.clock.now() + 1);
      // An earlier time would let the job run without end.
      expect(await run()).toBe(relay.clock.now() + 1);
    }
    const left = async () => {
      const events = (await rows('channel_events')).map(({ channel_id }) => channel_id === broken);
      return [events.filter((isBroken) => isBroken).length, events.length];
    };
    expect(await left()).toEqual([5, 7]);
    relay.clock.advance(1);
    expect(await run()).toBe(undefined);
    expect(await left()).toEqual([1, 3]);
  });

  test('a stopped run begins no further write', async () => {
    for (let count = 0; count < 3; count += 1) await (await TestChannel.create(relay, ann)).post();
    relay.clock.advance(retention);
    const { storage } = relay.context;
    const { write } = storage;
    const stopping = new AbortController();
    let writes = 0;
    storage.write = async (aggregates, work) => {
      writes += 1;
      stopping.abort();
      return (await write.call(storage, aggregates, work)) as never;
    };
    await relay.runJob('channels.retention', stopping.signal);
    expect(writes).toBe(1);
    expect(await rows('channel_posts')).toHaveLength(2);
  });
});

test('one run removes more than one batch, of several channels', async () => {
  const other = await TestChannel.create(relay, ben);
  for (let count = 0; count < 250; count += 1) {
    await channel.post();
    if (count % 5 === 0) await other.post();
  }
  relay.clock.advance(retention);
  await run();
  expect(await rows('channel_posts')).toEqual([]);
  expect(await stored()).toEqual([0, 0]);
});

test('no statement of the job reads a whole table or sorts', async () => {
  const post = await channel.post();
  await channel.edit(post, { body: text('edited') });
  await channel.delete(await channel.post());
  await channel.update({ name: 'other' });
  relay.clock.advance(retention);
  const statements = new Set<string>();
  relay.faults.beforeStatement = (sql) => void statements.add(sql);
  await run();
  delete relay.faults.beforeStatement;
  const found: Record<string, string[]> = {};
  const searching = [...statements].filter((sql) => /channel_/.test(sql));
  for (const sql of searching) {
    const slow = await scansAndSorts(relay.context.storage, sql);
    if (slow.length > 0) found[sql] = slow;
  }
  expect(found).toEqual({});
  expect(searching.length).toBeGreaterThan(12);
});
