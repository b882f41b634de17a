import { beforeEach, describe, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { readWhole } from '../fixtures/channel-reader.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const retention = 10_000;
const hour = 3_600;
const month = 2_592_000;
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
const resolveCode = (revision: number) =>
  codeOf('resolve', { channel_id: channel.channelId, revision });
/** Advances the clock to so many seconds before an instant and runs the job. */
const runAt = async (instant: number, before = 0) => {
  relay.clock.advance(instant - before - relay.clock.now());
  return await run();
};

describe('06 §7.5: any event', () => {
  test('stays until the deadline fixed at its acceptance, even if retention is set lower later', async () => {
    const end = relay.clock.now() + retention;
    const post = await channel.post();
    await channel.update({ name: 'other' });
    await relay.restart({ channelTimelineRetention: 10 });
    expect(await runAt(end, 1)).toBe(end);
    expect(await readable()).toEqual([0, post, 2]);
    expect(await runAt(end)).toBe(undefined);
    expect(await readable()).toEqual([2]);
    expect(await rows('channel_posts')).toEqual([]);
  });

  test('stays no longer if retention is set higher later', async () => {
    const post = await channel.post();
    await relay.restart({ channelTimelineRetention: year });
    const later = await channel.post();
    relay.clock.advance(retention);
    expect(await run()).toBe(relay.clock.now() - retention + year);
    expect(await readable()).toEqual([0, later]);
    expect(await codeOf('post.edit', channel.newEdit(post, { body: text('x') }))).toBe('not_found');
    expect(await codeOf('post.delete', channel.newDeletion(post))).toBe('not_found');
  });

  test('stays no longer if it is repeated, edited or read', async () => {
    const post = channel.newPost();
    const sequence = await channel.publish(post);
    const end = relay.clock.now() + retention;
    relay.clock.advance(hour);
    await channel.publish(post);
    await channel.edit(sequence, { body: text('edited') });
    await channel.read();
    await runAt(end);
    expect(await readable()).toEqual([0]);
    expect(await stored()).toEqual([0]);
  });

  test('is removed alone: head, revision and the rest of the channel stay', async () => {
    await channel.post();
    await channel.edit(1, { body: text('edited') });
    const { channels } = await relay.dump();
    relay.clock.advance(retention);
    await run();
    const [left] = await relay.rows('channel_events');
    const stored_bytes = left?.bytes;
    expect(await relay.rows('channels')).toMatchObject([
      { ...(channels?.[0] as object), stored_bytes },
    ]);
    const page = await channel.read();
    expect(page).toMatchObject({ has_more: false, events: [{ sequence: 0 }] });
    expect(page.certificates).toHaveLength(1);
  });
});

describe('06 §7.5: edits', () => {
  test('of a readable post stay with it past their own deadline', async () => {
    const post = await channel.post();
    const end = relay.clock.now() + retention;
    await relay.restart({ channelTimelineRetention: 10 });
    await channel.edit(post, { body: text('edited') }, { by: ben });
    await runAt(end, 1);
    expect(await readable()).toEqual([0, post, post + 1]);
    await runAt(end);
    expect(await readable()).toEqual([0]);
    expect(await stored()).toEqual([0]);
    expect(await devices()).toEqual(ann.deviceIds('phone'));
  });

  test('of a post whose retention is over are removed with it, before their own deadline', async () => {
    const post = await channel.post();
    const end = relay.clock.now() + retention;
    relay.clock.advance(retention - 1);
    await channel.edit(post, { body: text('edited') });
    expect(await runAt(end)).toBe(undefined);
    expect(await readable()).toEqual([0]);
    expect(await stored()).toEqual([0]);
    expect(await rows('channel_hidden_posts')).toEqual([]);
  });

  test('of a deleted post are unreadable at once, and removed by the job', async () => {
    const post = await channel.post();
    for (const words of ['a', 'b', 'c']) await channel.edit(post, { body: text(words) });
    await channel.delete(post);
    expect(await readable()).toEqual([0, post + 4]);
    expect(await stored()).toEqual([0, post + 1, post + 2, post + 3, post + 4]);
    await run();
    expect(await stored()).toEqual([0, post + 4]);
    expect(await rows('channel_hidden_posts')).toEqual([]);
    expect(await readable()).toEqual([0, post + 4]);
  });

  test('of other posts stay', async () => {
    const [gone, other] = [await channel.post(), await channel.post()];
    for (const post of [gone, other]) await channel.edit(post, { body: text('edited') });
    await channel.delete(gone);
    await run();
    expect(await readable()).toEqual([0, other, other + 2, other + 3]);
  });

  test('of more than two batches are removed, one batch in each transaction', async () => {
    const post = await channel.post();
    for (let count = 0; count < 450; count += 1) {
      await channel.edit(post, { body: text(`${count}`) });
    }
    await channel.delete(post);
    const counts: number[] = [];
    const { storage } = relay.context;
    const { write } = storage;
    storage.write = async (aggregates, work) => {
      const before = (await stored()).length;
      const value = await write.call(storage, aggregates, work);
      counts.push(before - (await stored()).length);
      return value as never;
    };
    await run();
    expect(counts.filter((count) => count > 0)).toEqual([200, 200, 50]);
    expect(await readable()).toEqual([0, post + 451]);
  });

  test('are removed soon: a deletion wakes the job', async () => {
    const woken: string[] = [];
    relay.context.jobs.wake = (name) => woken.push(name);
    const post = await channel.post();
    expect(woken).toEqual([]);
    await channel.delete(post);
    expect(woken).toEqual(['channels.retention']);
  });
});

describe('06 §7.5: a deletion', () => {
  test("stays until the original post's deadline if that is later than its own", async () => {
    const post = await channel.post();
    const end = relay.clock.now() + retention;
    await relay.restart({ channelTimelineRetention: 10 });
    await channel.delete(post);
    await channel.update({ name: 'other' });
    await runAt(end, 1);
    expect(await readable()).toEqual([0, post + 1, post + 2]);
    expect(await codeOf('post.delete', channel.newDeletion(post))).toBe('state_conflict');
    await runAt(end);
    expect(await readable()).toEqual([post + 2]);
    expect(await codeOf('post.delete', channel.newDeletion(post))).toBe('not_found');
  });

  test('stays until its own deadline if that is later', async () => {
    const post = await channel.post();
    relay.clock.advance(retention - 1);
    await channel.delete(post);
    const end = relay.clock.now() + retention;
    await runAt(end, 1);
    expect(await readable()).toEqual([0, post + 1]);
    expect(await codeOf('post.edit', channel.newEdit(post, { body: text('x') }))).toBe(
      'state_conflict',
    );
    await runAt(end);
    expect(await readable()).toEqual([0]);
    expect(await rows('channel_posts')).toEqual([]);
  });
});

describe('06 §7.5, §8.7: a message ID', () => {
  const other = () => channel.newPost({ body: text('other') });

  test('is recognised until the deadline of the post, even if it is deleted or retention is set lower', async () => {
    const post = channel.newPost();
    const sequence = await channel.publish(post);
    const end = relay.clock.now() + retention;
    await channel.delete(sequence);
    await relay.restart({ channelTimelineRetention: 10 });
    await runAt(end, 1);
    expect(await channel.publish(post)).toBe(sequence);
    const conflict = { ...other(), message_id: post.message_id };
    expect(await codeOf('post', channel.sign(conflict))).toBe('state_conflict');
    expect((await readable()).at(-1)).toBe(sequence + 1);
    await runAt(end);
    expect(await channel.publish(post)).toBe(sequence + 2);
  });

  test('is recognised after the channel was closed', async () => {
    const post = channel.newPost();
    const sequence = await channel.publish(post);
    await channel.close();
    await runAt(relay.clock.now() + retention, 1);
    expect(await channel.publish(post)).toBe(sequence);
    relay.clock.advance(1);
    await run();
    expect(await codeOf('post', post)).toBe('state_conflict');
  });
});

describe('06 §7.5, §8.3: descriptors', () => {
  test('the latest stays for good, with its certificate', async () => {
    relay.clock.advance(10 * year);
    expect(await run()).toBe(undefined);
    expect(await readable()).toEqual([0]);
    expect((await channel.resolve()).descriptor).toEqual(channel.descriptor);
  });

  test('a superseded one stays until its own deadline', async () => {
    const end = relay.clock.now() + retention;
    await channel.update({ name: 'other' }, { device: 'laptop' });
    await runAt(end, 1);
    expect((await channel.resolve(0)).descriptor.revision).toBe(0);
    expect(await devices()).toEqual(ann.deviceIds());
    await runAt(end);
    expect(await resolveCode(0)).toBe('not_found');
    expect(await readable()).toEqual([1]);
    expect(await devices()).toEqual(ann.deviceIds('laptop'));
  });

  test('one past its deadline is removed when it is superseded and not needed', async () => {
    relay.clock.advance(month);
    await channel.update({ name: 'other' });
    await run();
    expect(await resolveCode(0)).toBe('not_found');
    expect(await readable()).toEqual([1]);
  });

  test('one that a post needs can be resolved as long as the post is stored', async () => {
    relay.clock.advance(month);
    const post = await channel.post(undefined, { by: ben });
    const end = relay.clock.now() + retention;
    await channel.update({ moderators: [] });
    await runAt(end, 1);
    expect(await readable()).toEqual([0, post, 2]);
    expect((await channel.resolve(0)).descriptor.moderators).toEqual([ben.account]);
    await runAt(end);
    expect(await resolveCode(0)).toBe('not_found');
    expect(await readable()).toEqual([2]);
    expect(await devices()).toEqual(ann.deviceIds('phone'));
  });

  test('one stays until the latest deadline of its events, not that of its last event', async () => {
    const start = relay.clock.now();
    const first = await channel.post();
    relay.clock.advance(hour);
    const second = await channel.post();
    await channel.edit(first, { body: text('other') });
    await channel.update({ name: 'other' });
    // The job has nothing to do until then.
    expect(await runAt(start + retention)).toBe(start + hour + retention);
    expect(await readable()).toEqual([0, second, 4]);
    await runAt(start + hour + retention);
    expect(await resolveCode(0)).toBe('not_found');
  });

  test('one that only an edit needs can be resolved until the post of the edit is removed', async () => {
    relay.clock.advance(month);
    const post = await channel.post();
    const end = relay.clock.now() + retention;
    await channel.update({ name: 'one' });
    await relay.restart({ channelTimelineRetention: 10 });
    await channel.edit(post, { body: text('edited') });
    await channel.update({ name: 'two' });
    await runAt(end, 1);
    expect((await channel.resolve(1)).descriptor.name).toBe('one');
    expect(await readable()).toEqual([0, post, 2, 3, 4]);
    await runAt(end);
    expect(await resolveCode(1)).toBe('not_found');
    expect(await readable()).toEqual([4]);
  });

  test('one that only a deletion needs can be resolved until the later of both deadlines', async () => {
    const post = await channel.post();
    const end = relay.clock.now() + retention;
    await channel.update({ name: 'one' });
    await relay.restart({ channelTimelineRetention: 10 });
    await channel.update({ name: 'two' });
    await channel.delete(post);
    await channel.update({ name: 'three' });
    await runAt(end, 1);
    expect(await resolveCode(2)).toBe('ok');
    expect(await readable()).toEqual([0, 2, 3, 4, 5]);
    await runAt(end);
    expect(await resolveCode(2)).toBe('not_found');
    expect(await readable()).toEqual([5]);
  });

  test('one in the middle is removed before an older one that is needed longer', async () => {
    const post = await channel.post();
    await relay.restart({ channelTimelineRetention: 10 });
    await channel.update({ name: 'one' });
    await channel.update({ name: 'two' });
    relay.clock.advance(10);
    await run();
    expect(await readable()).toEqual([0, post, 3]);
    expect(await resolveCode(0)).toBe('ok');
    expect(await resolveCode(1)).toBe('not_found');
  });

  test('even with a wrong deadline, a descriptor that an event needs stays', async () => {
    await channel.post();
    await channel.update({ name: 'other' });
    await relay.context.storage.write('test', (tx) =>
      tx.run("UPDATE channel_events SET clear_after = 1 WHERE kind = 'descriptor'"),
    );
    await relay.context.storage.write('test', (tx) =>
      tx.run('UPDATE channel_events SET clear_after = NULL WHERE sequence = 2'),
    );
    // The job runs again a second later, not at once without end.
    expect(await run()).toBe(relay.clock.now() + 1);
    expect(await readable()).toEqual([0, 1, 2]);
    relay.clock.advance(retention);
    await run();
    expect(await readable()).toEqual([2]);
  });
});

describe('06 §7.5: a closed channel', () => {
  test('has the same deadlines for its events, and keeps its final descriptor for good', async () => {
    const post = await channel.post();
    await channel.edit(post, { body: text('edited') });
    const end = relay.clock.now() + retention;
    await channel.close({ device: 'laptop' });
    await runAt(end, 1);
    expect(await readable()).toEqual([0, post, post + 1, post + 2]);
    await runAt(end);
    expect(await readable()).toEqual([post + 2]);
    relay.clock.advance(10 * year);
    await run();
    expect((await channel.resolve()).descriptor.status).toBe('closed');
    expect(await readable()).toEqual([post + 2]);
  });

  test('is never created again', async () => {
    await channel.close();
    relay.clock.advance(month);
    await run();
    const again = { ...channel.descriptor, status: 'active', revision: 0 };
    const { device_signature: _, ...unsigned } = again;
    const now = relay.clock.now();
    const descriptor = channel.sign({ ...unsigned, created_at: now, updated_at: now });
    expect(await codeOf('create', descriptor)).toBe('state_conflict');
  });
});

describe('06 §5.1: assigned numbers', () => {
  test('sequences and revisions continue above removed events', async () => {
    const post = await channel.post();
    await channel.edit(post, { body: text('edited') });
    await channel.delete(post);
    await channel.update({ name: 'one' });
    relay.clock.advance(retention);
    await run();
    await relay.restart();
    expect(await readable()).toEqual([4]);
    expect(await channel.post()).toBe(5);
    await channel.update({ name: 'two' });
    expect((await channel.resolve()).descriptor.revision).toBe(2);
    expect(await readable()).toEqual([4, 5, 6]);
  });
});

describe('06 §5.2: certificates', () => {
  test('of a device is removed with the last event it signed, in each channel', async () => {
    const other = await TestChannel.create(relay, ben);
    await channel.post(undefined, { by: ben, device: 'laptop' });
    relay.clock.advance(1);
    await channel.post(undefined, { by: ben, device: 'laptop' });
    const both = [...ann.deviceIds('phone'), ...ben.deviceIds()].sort();
    await runAt(relay.clock.now() + retention, 1);
    expect(await devices()).toEqual(both);
    relay.clock.advance(1);
    await run();
    expect(await devices()).toEqual([...ann.deviceIds('phone'), ...ben.deviceIds('phone')].sort());
    expect((await readWhole(relay, other)).map(({ sequence }) => sequence)).toEqual([0]);
  });

  test('of the poster of a deleted post is removed at once, that of an editor with the edits', async () => {
    const post = await channel.post(undefined, { by: ben });
    await channel.edit(post, { body: text('edited') }, { by: ben, device: 'laptop' });
    await channel.delete(post);
    await run();
    expect(await devices()).toEqual(ann.deviceIds('phone'));
    expect(await readable()).toEqual([0, post + 2]);
  });

  test('of a removed device stays as long as its events', async () => {
    const post = await channel.post(undefined, { by: ben, device: 'laptop' });
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    const end = relay.clock.now() + retention;
    await runAt(end, 1);
    expect(await readable()).toEqual([0, post]);
    await runAt(end);
    expect(await devices()).toEqual(ann.deviceIds('phone'));
  });
});

describe('reports', () => {
  const report = (post: number) =>
    relay.call(
      'channel.post.report',
      { channel_id: channel.channelId, target_sequence: post, reason: 'spam' },
      { session: ben.session() },
    );

  test('stay until the deadline fixed when they were made', async () => {
    await relay.restart({ channelReportPeriod: 2 * retention });
    const post = await channel.post();
    await report(post);
    const end = relay.clock.now() + 2 * retention;
    await relay.restart({ channelReportPeriod: 10 });
    expect(await runAt(end, 1)).toBe(end);
    expect(await rows('channel_posts')).toEqual([]);
    expect(await rows('channel_reports')).toHaveLength(1);
    await runAt(end);
    expect(await rows('channel_reports')).toEqual([]);
  });

  test('one that is replaced during the run stays', async () => {
    await relay.restart({ channelReportPeriod: 100 });
    const post = await channel.post();
    await report(post);
    relay.clock.advance(100);
    const { storage } = relay.context;
    const { write } = storage;
    storage.write = async (aggregates, work) => {
      storage.write = write;
      await report(post);
      return (await write.call(storage, aggregates, work)) as never;
    };
    await run();
    expect(await rows('channel_reports')).toMatchObject([{ reported_at: relay.clock.now() }]);
  });
});
