/** Posts that the operator withholds: unreadable, but stored until their deadline. */
import { beforeEach, describe, expect, test } from 'vitest';
import {
  lastReport,
  lastWithheld,
  listReports,
  listWithheld,
  readReportedPost,
  restorePost,
  withholdPost,
} from '../../src/channels/index.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { readWhole } from '../fixtures/channel-reader.ts';
import { engine } from '../support/engine.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const retention = 10_000;

const relay = inProcessRelay({ channelTimelineRetention: retention });
const ann = relay.person('ann');
const ben = relay.person('ben');
let channel: TestChannel;
/** A post of ben with two edits, and after it a post of ann. */
let post: number;
let next: number;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
  post = await channel.post({ body: text('stolen goods') }, { by: ben });
  await channel.edit(post, { body: text('stolen goods, cheap') }, { by: ben });
  await channel.edit(post, { body: text('stolen goods, cheaper') }, { by: ben });
  next = await channel.post();
});

const at = (sequence = post) => ({ channelId: channel.channelId, sequence });
const withhold = (sequence = post) =>
  withholdPost(relay.context.storage, at(sequence), relay.clock.now());
const restore = (sequence = post) => restorePost(relay.context.storage, at(sequence));
const run = () => relay.runJob('channels.retention');
const readable = async () => (await readWhole(relay, channel)).map(({ sequence }) => sequence);
const codeOf = (method: string, params: unknown, by = ann) =>
  relay.codeOf(`channel.post${method}`, params, { session: by.session() });
const report = (target: number) => ({
  ...{ channel_id: channel.channelId, target_sequence: target, reason: 'spam' },
});
const reportedPost = (sequence = post) => readReportedPost(relay.context.storage, at(sequence));

/** Crashes `work` before its commit of that number; returns false if it has fewer commits. */
const isCutOff = async (commits: number, work: () => Promise<unknown>) => {
  let left = commits;
  relay.faults.beforeCommit = () => {
    left -= 1;
    if (left < 0) throw new Error('crash of the test');
  };
  const error = await work().then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  delete relay.faults.beforeCommit;
  if (error === undefined) return false;
  expect(error.message).toContain('crash of the test');
  await relay.restart();
  return true;
};

describe('06 §7.5: a withheld post', () => {
  test('leaves the timeline with its edits; head and other events stay and no hint is sent', async () => {
    const before = await channel.read();
    relay.takeNotices();
    expect(await withhold()).toEqual({ isNew: true, reports: 0 });
    const after = await channel.read();
    expect(after.events).toEqual(
      before.events.filter(({ sequence }) => [0, next].includes(sequence)),
    );
    expect(after).toMatchObject({ certificates: [ann.device().certificate], has_more: false });
    expect(await channel.sequences({ after: 0, limit: 1 })).toEqual([next]);
    expect(await channel.sequences({ before: next })).toEqual([0]);
    expect(await relay.rows('channels')).toMatchObject([{ head: next }]);
    expect(relay.takeNotices()).toEqual([]);
    expect(await channel.post()).toBe(next + 1);
  });

  test('is no target of edits and reports, like a post whose retention is over', async () => {
    await withhold();
    expect(await codeOf('.edit', channel.newEdit(post, { body: text('x') }))).toBe('not_found');
    expect(await codeOf('.report', report(post), ben)).toBe('not_found');
  });

  test('is recognised as published: a repeat has its sequence, other content conflicts', async () => {
    const one = channel.newPost();
    const sequence = await channel.publish(one);
    await withhold(sequence);
    expect(await channel.publish(one)).toBe(sequence);
    const other = channel.sign({ ...one, body: text('other') });
    expect(await codeOf('', other)).toBe('state_conflict');
    expect(await readable()).not.toContain(sequence);
  });

  test('can be deleted for good, and the deletion is an event', async () => {
    await withhold();
    await channel.delete(post);
    expect(await readable()).toEqual([0, next, next + 1]);
    expect(await codeOf('.delete', channel.newDeletion(post))).toBe('state_conflict');
    expect(await reportedPost()).toMatchObject({ status: 'deleted', account: ben.account });
    expect(await reportedPost()).not.toHaveProperty('state');
    await expect(restore()).rejects.toThrow(/ was deleted$/);
    await run();
    expect(await relay.rows('channel_withheld_events')).toEqual([]);
    expect(await relay.rows('channel_hidden_posts')).toEqual([]);
    expect(await relay.rows('channel_certificates')).toHaveLength(1);
  });

  test('is stored exactly until its deadline, with its edits, descriptors and certificates', async () => {
    await channel.update({ name: 'other' });
    await withhold();
    const kept = async () => (await relay.rows('channel_withheld_events')).length;
    relay.clock.advance(retention - 1);
    await run();
    expect(await kept()).toBe(3);
    expect(await relay.rows('channel_certificates')).toHaveLength(2);
    await restore();
    expect(await readable()).toContain(post);
    await withhold();
    relay.clock.advance(1);
    await run();
    expect(await kept()).toBe(0);
    expect(await relay.rows('channel_posts')).toEqual([]);
    expect(await relay.rows('channel_hidden_posts')).toEqual([]);
    expect(await relay.rows('channel_certificates')).toHaveLength(1);
    await expect(restore()).rejects.toThrow(/ does not exist$/);
  });

  test('keeps its descriptor even with a wrong deadline', async () => {
    await channel.delete(next);
    await channel.update({ name: 'other' });
    await withhold();
    await relay.context.storage.write('test', (tx) =>
      tx.run('UPDATE channel_events SET clear_after = 1 WHERE sequence <= ?', next + 1),
    );
    await run();
    await restore();
    expect(await readable()).toEqual([0, 1, 2, 3, next + 2]);
  });

  test('is restored with all its edits', async () => {
    const before = await relay.dump();
    const page = await channel.read();
    await withhold();
    await restore();
    expect(await relay.dump()).toEqual(before);
    expect(await channel.read()).toEqual(page);
    await channel.edit(post, { body: text('bicycles') });
    expect(await readable()).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('can be withheld and restored in a closed channel', async () => {
    await channel.close();
    await withhold();
    expect(await readable()).toEqual([0, next, next + 1]);
    await restore();
    expect(await readable()).toHaveLength(6);
  });
});

describe('operator commands about withheld posts', () => {
  test('a withheld post is listed with time, account and content; only its reports are dismissed', async () => {
    await codeOf('.report', report(post), ben);
    await codeOf('.report', report(post), ann);
    await codeOf('.report', report(next), ben);
    relay.clock.advance(60);
    expect(await withhold()).toEqual({ isNew: true, reports: 2 });
    const { storage } = relay.context;
    expect(await listReports(storage, {}, { before: lastReport, limit: 9 })).toMatchObject([
      { sequence: next, post: 'readable' },
    ]);
    expect(await reportedPost()).toMatchObject({
      ...{ status: 'withheld', account: ben.account, withheldAt: relay.clock.now() },
      state: { body: text('stolen goods, cheaper') },
    });
    const unedited = await channel.post({ body: text('more of it') });
    await withhold(unedited);
    expect(await reportedPost(unedited)).toMatchObject({ state: { body: text('more of it') } });
    const withheldAt = relay.clock.now();
    const range = { before: lastWithheld, limit: 9 };
    expect(await listWithheld(storage, range)).toEqual([
      expect.objectContaining({ sequence: unedited }),
      {
        ...{ channelId: channel.channelId, sequence: post, account: ben.account },
        ...{ withheldAt, keepUntil: withheldAt - 60 + retention },
      },
    ]);
    expect(await listWithheld(storage, { ...range, limit: 1 })).toMatchObject([
      { sequence: unedited },
    ]);
    await restore();
    expect(await listWithheld(storage, range)).toHaveLength(1);
  });

  test('withholding twice changes nothing but dismisses reports made in between', async () => {
    await withhold();
    const before = await relay.dump();
    relay.clock.advance(60);
    expect(await withhold()).toEqual({ isNew: false, reports: 0 });
    expect(await relay.dump()).toEqual(before);
  });

  test('only a readable post can be withheld; only a withheld post can be restored', async () => {
    const before = await relay.dump();
    for (const sequence of [0, post + 1, next + 1]) {
      await expect(withhold(sequence)).rejects.toThrow(/^post \d+ of chan_.* does not exist$/);
    }
    await expect(restore()).rejects.toThrow(/^post 1 of chan_.* is not withheld$/);
    expect(await relay.dump()).toEqual(before);
    await channel.delete(next);
    await expect(withhold(next)).rejects.toThrow(/ was deleted$/);
  });

  test('while the database is being moved, nothing is withheld or restored', async () => {
    const { storage } = relay.context;
    const mark = `INSERT INTO relay_move (slot, state, move_id, other)
      VALUES (1, 'moving', 'id', 'sqlite:/elsewhere')`;
    await withhold(next);
    await storage.write('relay', (tx) => tx.run(mark));
    await expect(withhold()).rejects.toThrow('is being moved to sqlite:/elsewhere');
    await expect(restore(next)).rejects.toThrow('is being moved to sqlite:/elsewhere');
  });
});

describe('a crash at any commit', () => {
  /** More edits than one commit moves. */
  const edits = 210;
  let whole: readonly number[];
  /** Reads sequences without verifying. */
  const stored = () => channel.sequences({ after: -1, limit: edits + 10 });
  beforeEach(async () => {
    for (let count = 0; count < edits; count += 1) {
      await channel.edit(next, { body: text(`edit ${count}`) });
    }
    whole = await stored();
  });

  test(
    'a post is readable with all its edits or not at all, and the next attempt completes the command',
    async () => {
      const others = [0, 1, 2, 3];
      for (let commits = 0; await isCutOff(commits, () => withhold(next)); commits += 1) {
        expect(await stored()).toEqual(commits === 0 ? whole : others);
        if (commits > 0) await restore(next);
        expect(await stored()).toEqual(whole);
      }
      for (let commits = 0; await isCutOff(commits, () => restore(next)); commits += 1) {
        expect(await stored()).toEqual(others);
        await withhold(next);
        expect(await relay.rows('channel_withheld_events')).toHaveLength(edits + 1);
      }
      expect(await stored()).toEqual(whole);
    },
    engine === 'sqlite' ? 60_000 : 120_000,
  );

  test('a post that is restored while it is being withheld has all its edits', async () => {
    const { storage } = relay.context;
    const { write } = storage;
    let commits = 0;
    storage.write = async (aggregates, work) => {
      commits += 1;
      if (commits === 2) await restore(next);
      return (await write.call(storage, aggregates, work)) as never;
    };
    await withhold(next);
    storage.write = write;
    expect(await stored()).toEqual(whole);
    expect(await relay.rows('channel_withheld_events')).toEqual([]);
  });

  test('a post that is deleted meanwhile is removed from both tables', async () => {
    expect(await isCutOff(2, () => withhold(next))).toBe(true);
    expect(await relay.rows('channel_withheld_events')).toHaveLength(201);
    await channel.delete(next);
    await run();
    expect(await relay.rows('channel_withheld_events')).toEqual([]);
    expect(await stored()).toEqual([0, 1, 2, 3, next + edits + 1]);
    expect(await relay.rows('channel_events')).toHaveLength(5);
  });
});
