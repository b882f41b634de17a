import type { JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { lastReport, listReports, readReportedPost } from '../../src/channels/index.ts';
import { TestChannel, text } from '../fixtures/channel.ts';
import { scansAndSorts } from '../support/engine.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const retention = 10_000;
const period = 50_000;

const relay = inProcessRelay({
  channelTimelineRetention: retention,
  channelReportPeriod: period,
  channelReportReason: 20,
  channelReports: 3,
});
const ann = relay.person('ann');
const ben = relay.person('ben', ['phone', 'laptop']);
const cem = relay.person('cem');
let channel: TestChannel;
let post: number;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann);
  post = await channel.post();
});

const report = (facts: JsonObject = {}) => ({
  channel_id: channel.channelId,
  target_sequence: post,
  reason: 'spam',
  ...facts,
});
const call = (facts: JsonObject = {}, { by = ben, device = 'phone' } = {}) =>
  relay.call('channel.post.report', report(facts), { session: by.session(device) });
const codeOf = (facts: JsonObject = {}, { by = ben, device = 'phone' } = {}) =>
  relay.codeOf('channel.post.report', report(facts), { session: by.session(device) });
const rows = async () => (await relay.rows('channel_reports')) as Record<string, unknown>[];

/** Checks that a report is refused with this code and without any effect. */
const refuses = async (code: string, facts: JsonObject, options = {}) => {
  const before = await relay.dump();
  expect(await codeOf(facts, options)).toBe(code);
  expect(await relay.dump()).toEqual(before);
};

describe('06 §8.10: a report', () => {
  test('is stored with reason, device and time, and answered with null', async () => {
    expect(await call()).toBe(null);
    expect(await rows()).toEqual([
      {
        channel_id: channel.channelId,
        sequence: post,
        account: ben.account,
        device_id: ben.device().deviceId,
        reason: '"spam"',
        reported_at: relay.clock.now(),
        clear_after: relay.clock.now() + period,
      },
    ]);
  });

  test('changes neither timeline, head nor post, and sends no notice', async () => {
    const { channel_reports: none, ...before } = await relay.dump();
    relay.takeNotices();
    await call();
    const { channel_reports: one, ...after } = await relay.dump();
    expect([none, one]).toEqual([[], [expect.anything()]]);
    expect(after).toEqual(before);
    expect(relay.takeNotices()).toEqual([]);
  });

  test('of the same account replaces the earlier one: reason, device, time', async () => {
    await call({ reason: 'first' });
    relay.clock.advance(60);
    await call({ reason: 'second' }, { device: 'laptop' });
    expect(await rows()).toMatchObject([
      {
        device_id: ben.device('laptop').deviceId,
        reason: '"second"',
        reported_at: relay.clock.now(),
        clear_after: relay.clock.now() + period,
      },
    ]);
  });

  test('of other accounts, the owner among them, and of other posts are stored separately', async () => {
    const other = await channel.post();
    await call();
    await call({}, { by: cem });
    await call({}, { by: ann });
    await call({ target_sequence: other });
    expect(await rows()).toHaveLength(4);
  });

  test('of a post in a closed channel is accepted', async () => {
    await channel.close();
    expect(await codeOf()).toBe('ok');
  });

  test('unknown members are accepted and not stored', async () => {
    expect(await codeOf({ more: { of: 'it' } })).toBe('ok');
    expect(await rows()).toMatchObject([{ reason: '"spam"' }]);
  });

  test('a reason of exactly the limit in bytes is accepted; one byte more is refused', async () => {
    expect(await codeOf({ reason: 'ü'.repeat(10) })).toBe('ok');
    await refuses('bad_request', { reason: `${'ü'.repeat(10)}x` });
  });
});

describe('06 §8.10: a reason', () => {
  test.each([
    ['U+0000 alone', '\u0000'],
    ['control characters', 'a\u0000b\u001b[2J\r\n'],
    ['quotes and backslashes', '"\\"'],
    ['an emoji', '\u{1f600}'],
  ])('of %s reaches the operator as it is', async (_, reason) => {
    expect(await codeOf({ reason })).toBe('ok');
    const { storage } = relay.context;
    expect(await listReports(storage, {}, { before: lastReport, limit: 10 })).toMatchObject([
      { reason },
    ]);
  });
});

describe('06 §8.10: refusals neither create nor replace a report', () => {
  beforeEach(() => call({ reason: 'before' }));

  test.each([
    ['an empty reason', { reason: '' }],
    ['a reason of white space', { reason: ' \t\u3000\n' }],
    ['a reason that is no string', { reason: 5 }],
    ['no reason', { reason: undefined }],
    ['a target of zero', { target_sequence: 0 }],
    ['a negative target', { target_sequence: -1 }],
    ['a target that is no integer', { target_sequence: 1.5 }],
    ['a target that is a string', { target_sequence: '1' }],
    ['no target', { target_sequence: undefined }],
    ['a wrong channel ID', { channel_id: 'chan_x' }],
    ['no channel', { channel_id: undefined }],
    ['null', { reason: null }],
    ['null in an unknown member', { more: null }],
    ['$context', { $context: 'neo:1:0x00' }],
  ])('%s: bad_request', (_, facts) => refuses('bad_request', facts as JsonObject));

  test('a target that is no post is bad_request', async () => {
    const edited = await channel.post();
    await channel.edit(edited, { body: text('other') });
    const edit = edited + 1;
    await channel.update({ name: 'other' });
    const descriptor = edit + 1;
    await channel.delete(edited);
    const deletion = descriptor + 1;
    for (const target_sequence of [descriptor, deletion]) {
      await refuses('bad_request', { target_sequence });
    }
  });

  test('a target that is an edit of a readable post is bad_request', async () => {
    await channel.edit(post, { body: text('other') });
    await refuses('bad_request', { target_sequence: post + 1 });
  });

  test('a position above the head and an unknown channel are not_found', async () => {
    await refuses('not_found', { target_sequence: post + 1 });
    await refuses('not_found', { target_sequence: Number.MAX_SAFE_INTEGER });
    await refuses('not_found', { channel_id: `chan_${'A'.repeat(22)}` });
  });

  test('a deleted post is state_conflict while its deletion is stored, then not_found', async () => {
    await channel.delete(post);
    await relay.runJob('channels.retention');
    await refuses('state_conflict', {});
    relay.clock.advance(retention);
    await relay.runJob('channels.retention');
    await refuses('not_found', {});
  });

  test('a post whose retention is over is not_found', async () => {
    relay.clock.advance(retention);
    await relay.runJob('channels.retention');
    await refuses('not_found', {});
  });

  test('no session, an account session, a device that was removed', async () => {
    const before = await relay.dump();
    const over = { session: ben.accountSession() };
    expect(await relay.codeOf('channel.post.report', report())).toBe('unauthorized');
    expect(await relay.codeOf('channel.post.report', report(), over)).toBe('forbidden');
    expect(await relay.rows('channel_reports')).toEqual(before.channel_reports);
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    await refuses('unauthorized', {}, { device: 'laptop' });
  });
});

describe('06 §8: quota of reports', () => {
  test('counts stored reports of one account; a replacement does not count', async () => {
    const posts = [post, await channel.post(), await channel.post(), await channel.post()];
    const [first, second, third, fourth] = posts as [number, number, number, number];
    for (const target_sequence of [first, second, third]) await call({ target_sequence });
    await refuses('rate_limited', { target_sequence: fourth });
    expect(await codeOf({ target_sequence: second, reason: 'again' })).toBe('ok');
    expect(await codeOf({ target_sequence: fourth }, { by: cem })).toBe('ok');
    relay.clock.advance(period);
    await relay.runJob('channels.retention');
    post = await channel.post();
    expect(await codeOf({ target_sequence: post })).toBe('ok');
  });

  test('02 §5: the refusal says when the first of the stored reports ends', async () => {
    const posts = [await channel.post(), await channel.post(), await channel.post()];
    const [first, second, third] = posts as [number, number, number];
    for (const target_sequence of [first, second, third]) {
      await call({ target_sequence });
      relay.clock.advance(100);
    }
    // A replaced report ends last.
    await call({ target_sequence: first, reason: 'again' });
    const waitForAnother = async () => {
      const refusal = call({ target_sequence: await channel.post() });
      return await refusal.then(
        () => 0,
        ({ data }) => data?.retry_after,
      );
    };
    expect(await waitForAnother()).toBe(period - 200);
    relay.clock.advance(period - 200);
    expect(await waitForAnother()).toBe(1);
    await relay.runJob('channels.retention');
    expect(await waitForAnother()).toBe(0);
    expect(await waitForAnother()).toBe(100);
    // With a lower quota, the last report but one must end as well.
    await relay.restart({ channelReports: 1 });
    expect(await waitForAnother()).toBe(period);
  });

  test('concurrent reports of one account on one post stay within the quota', async () => {
    const posts = await Promise.all(Array.from({ length: 8 }, () => channel.post()));
    const codes = await Promise.all(posts.map((target_sequence) => codeOf({ target_sequence })));
    expect(codes.filter((code) => code === 'ok')).toHaveLength(3);
    expect(codes.filter((code) => code === 'rate_limited')).toHaveLength(5);
    expect(await rows()).toHaveLength(3);
  });

  test('an error of the target comes before the quota', async () => {
    for (let count = 0; count < 3; count += 1) {
      await call({ target_sequence: await channel.post() });
    }
    await refuses('not_found', { target_sequence: 1_000 });
    await refuses('bad_request', { reason: '' });
  });

  test('concurrent reports of one account stay within the quota', async () => {
    const posts = [];
    for (let count = 0; count < 8; count += 1) posts.push(await channel.post());
    const codes = await Promise.all(posts.map((target_sequence) => codeOf({ target_sequence })));
    expect(codes.sort()).toEqual([...Array(3).fill('ok'), ...Array(5).fill('rate_limited')]);
    expect(await rows()).toHaveLength(3);
  });

  test('concurrent reports of one post by one account store one', async () => {
    const reasons = ['a', 'b', 'c', 'd'];
    const codes = await Promise.all(reasons.map((reason) => codeOf({ reason })));
    expect(codes).toEqual(reasons.map(() => 'ok'));
    expect(await rows()).toHaveLength(1);
  });
});

describe('reports in metrics and log', () => {
  test('each accepted report is counted, and no refused one', async () => {
    const { metrics } = relay.context;
    await call();
    await call({ reason: 'again' });
    await codeOf({ reason: '' });
    expect(metrics.value('channel_reports')).toBe(2);
  });

  test('the log has channel, sequence and count, never the reason or the account', async () => {
    const lines: [string, object, string][] = [];
    const log = {
      info: (facts: object, message: string) => lines.push(['info', facts, message]),
      warn: (facts: object, message: string) => lines.push(['warn', facts, message]),
    };
    Object.assign(relay.context.log, log);
    await call({ reason: 'secret' });
    await call({ reason: 'secret' }, { by: cem });
    relay.clock.advance(60);
    await call({ reason: 'secret' });
    const facts = { channel: channel.channelId, sequence: post };
    expect(lines).toEqual([
      ['warn', { ...facts, count: 1 }, 'post reported'],
      ['warn', { ...facts, count: 2 }, 'post reported'],
      ['info', { ...facts, count: 2 }, 'post reported again'],
    ]);
  });
});

test('repeated reports of one account are one log line a minute', async () => {
  let lines = 0;
  const write = () => {
    lines += 1;
  };
  Object.assign(relay.context.log, { info: write, warn: write });
  const other = await channel.post();
  // To the beginning of a minute.
  relay.clock.advance(60 - (relay.clock.now() % 60));
  for (const target_sequence of [post, other, post, other]) {
    await call({ target_sequence });
    relay.clock.advance(14);
  }
  expect(lines).toBe(1);
  await call({}, { by: cem });
  expect(lines).toBe(2);
  for (let count = 0; count < 4; count += 1) {
    relay.clock.advance(30);
    await call();
  }
  expect(lines).toBe(4);
  expect(relay.context.metrics.value('channel_reports')).toBe(9);
});

test("no statement of the operator's lists reads a whole table or sorts", async () => {
  const { storage } = relay.context;
  const statements = new Set<string>();
  await call();
  relay.faults.beforeStatement = (sql) => void statements.add(sql);
  const { channelId } = channel;
  const range = { before: lastReport, limit: 5 };
  for (const scope of [{}, { channelId }, { channelId, sequence: post }]) {
    expect(await listReports(storage, scope, range)).toMatchObject([{ reason: 'spam' }]);
  }
  const shown = await readReportedPost(storage, { channelId, sequence: post });
  expect(shown).toMatchObject({ status: 'readable' });
  delete relay.faults.beforeStatement;
  const found: Record<string, string[]> = {};
  for (const sql of statements) {
    // Only the reports of one post are sorted.
    if (/r\.sequence = \?/.test(sql)) continue;
    const slow = await scansAndSorts(storage, sql);
    if (slow.length > 0) found[sql] = slow;
  }
  expect(found).toEqual({});
  expect(statements.size).toBeGreaterThan(4);
});
