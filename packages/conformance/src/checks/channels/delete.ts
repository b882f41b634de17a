/** Deleting posts (06 §6.3, §7.3, §8.9). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { textBody } from '../../channels/channel-objects.ts';
import {
  assertUnchanged,
  equal,
  lastEvent,
  readBackward,
  readChannelPage,
  readTimeline,
} from '../../channels/channel-reader.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const deletion = checksOf('channel.post.delete');
const method = 'channel.post.delete';

deletion.check(
  'hides',
  { source: '06 §7.3, §8.9', title: 'removes the post and its edits and nothing else' },
  async (context) => {
    const { channel, owner, moderators, readers } = await channelFixture(context, {
      ...{ moderators: 1, readers: 1 },
    });
    const [mia, rea] = [...moderators, ...readers] as [TestAccount, TestAccount];
    const target = await channel.post();
    await channel.edit(target, { body: textBody('one') }, mia);
    const remaining = await channel.post({}, mia);
    await channel.edit(remaining, { body: textBody('two') });
    await channel.update({ name: 'Renamed' });
    await channel.edit(target, { body: textBody('three') });
    const before = (await readTimeline(channel, rea)).raw;
    const params = channel.deleteParams(target, { reason: 'Posted in error', of: [1] }, mia);
    await context.expectOk(mia.caller, method, params);
    const { raw, state } = await readTimeline(channel, rea);
    const removed = before.filter(({ sequence, payload }) => {
      return sequence === target || (payload as JsonObject).target_sequence === target;
    });
    assertEqual(removed.length, 3, 'a post and two edits');
    const rest = before.filter((event) => !removed.includes(event));
    assertEqual(raw.slice(0, -1), rest, 'the other events are unchanged');
    const last = raw.at(-1);
    assertConforms(
      last !== undefined && equal(last.payload, params),
      'the deletion as it was sent',
    );
    assertConforms(
      last.sequence > (before.at(-1)?.sequence ?? 0),
      'a sequence after the last event',
    );
    assertEqual(last.descriptor_rev, 1, 'the current revision');
    assertEqual(last.signer_device_id, mia.device.id, 'the signing device');
    assertEqual([...state.posts.keys()].join(), `${remaining}`, 'the remaining posts');
    // All ways of reading return the same events.
    assertEqual(await readBackward(channel, rea, 2), raw, 'read backward');
    for (const [position, { sequence }] of raw.entries()) {
      const { page } = await readChannelPage(channel, rea, { before: sequence + 1, limit: 2 });
      assertEqual(page.events, raw.slice(Math.max(position - 1, 0), position + 1), 'and around');
    }
    await channel.edit(remaining, { body: textBody('four') }, owner);
  },
);

deletion.check(
  'reason',
  { source: '06 §6.3', title: 'accepts any reason that is not empty, or none' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const target = await channel.post();
    const wrong = ['', ' \t\u0085\u2003', 1, null, ['x']].map((reason) => {
      return [
        `a reason of ${JSON.stringify(reason)}`,
        channel.deleteParams(target, { reason }),
      ] as const;
    });
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['bad_request'] }, wrong),
    );
    for (const overrides of [{}, { reason: ' é ' }, { reason: 'x'.repeat(10_000), note: {} }]) {
      const params = channel.deleteParams(await channel.post(), overrides);
      await context.expectOk(owner.caller, method, params);
      assertEqual((await lastEvent(channel)).payload, params, 'the deletion as it was sent');
    }
  },
);

deletion.check(
  'signature-coverage',
  { source: '06 §6.3, §14', title: 'answers invalid_signature for another reason or post' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const [one, two] = [await channel.post(), await channel.post()];
    const signed = channel.deleteParams(one, { reason: 'an error' });
    const { reason: _, ...without } = signed;
    const patch = channel.editParams(one, { reason: 'an error' });
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['invalid_signature'] }, [
        ['another post', { ...signed, target_sequence: two }],
        ['another reason', { ...signed, reason: 'an Error' }],
        ['the reason left out', without],
        ['the signature of an edit', { ...patch, $type: signed.$type as string }],
      ]),
    );
    await context.expectOk(owner.caller, method, signed);
  },
);

deletion.check(
  'order',
  {
    source: '06 §8, §8.6, 02 §18',
    title: 'checks form, size, signature, right and state in this order',
  },
  async (context) => {
    const { channel, owner, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    const target = await channel.post();
    const spoiled = (overrides: JsonObject, by = owner) => {
      const params = channel.deleteParams(target, overrides, by);
      return { ...params, device_signature: tampered(String(params.device_signature)) };
    };
    const large = 'x'.repeat(65_536);
    const cases = [
      [owner, 'bad_request', 'form before size', spoiled({ filling: large, reason: '' })],
      [owner, 'request_too_large', 'size before signature', spoiled({ reason: large })],
      [rea, 'invalid_signature', 'signature before permission', spoiled({}, rea)],
      [rea, 'forbidden', 'permission before the post', channel.deleteParams(99, {}, rea)],
    ] as const;
    await assertUnchanged(channel, async () => {
      for (const [by, code, what, params] of cases) {
        await assertAllRefused({ by, method, codes: [code] }, [[what, params]]);
      }
    });
    await channel.delete(target);
  },
);

deletion.check(
  'at-once',
  { source: '06 §7.2, §8.9', title: 'one of several concurrent deletions of a post succeeds' },
  async (context) => {
    const { channel, owner, moderators } = await channelFixture(context, {
      moderators: 1,
      devices: 2,
    });
    const [mia] = moderators as [TestAccount];
    const target = await channel.post();
    const callers = [owner, mia, withDevice(owner, 1), withDevice(mia, 1), owner, mia];
    const answers = await Promise.all(
      callers.map((by) => by.caller.call(method, channel.deleteParams(target, {}, by))),
    );
    const won = answers.filter(({ ok }) => ok).length;
    assertConforms(won === 1, `one succeeds, not ${won}`);
    for (const answer of answers) {
      assertConforms(
        answer.ok || answer.code === 'state_conflict',
        'the others are state_conflict',
      );
    }
    assertEqual((await readTimeline(channel)).raw.length, 2, 'creation and one deletion');
  },
);

deletion.check(
  'with-edits',
  { source: '06 §7.2, §7.3', title: 'a concurrent edit is appended before it or refused' },
  async (context) => {
    const { channel, moderators } = await channelFixture(context, { moderators: 1, devices: 2 });
    const [mia] = moderators as [TestAccount];
    const target = await channel.post();
    const editing = [0, 1, 0, 1].map((index) => {
      const by = withDevice(mia, index);
      const params = channel.editParams(target, { body: textBody(`text ${index}`) }, by);
      return by.caller.call('channel.post.edit', params);
    });
    const [answers] = await Promise.all([Promise.all(editing), channel.delete(target)]);
    for (const answer of answers) {
      assertConforms(
        answer.ok || answer.code === 'state_conflict',
        'succeeds or is state_conflict',
      );
    }
    const { raw, state } = await readTimeline(channel);
    assertConforms(
      raw.length === 2 && state.posts.size === 0,
      'the number of events: the creation and the deletion',
    );
  },
);

deletion.check(
  'atomic',
  {
    source: '06 §7.3',
    title: 'no page has a post without its edits, or together with its deletion',
  },
  async (context) => {
    const { channel, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    const targets: number[] = [];
    for (let count = 0; count < 2; count += 1) {
      const target = await channel.post();
      await channel.edit(target, { body: textBody('one') });
      await channel.edit(target, { body: textBody('two') });
      targets.push(target);
    }
    const look = async () => {
      const { events } = await readChannelPage(channel, rea);
      for (const target of targets) {
        const kinds = events.filter(({ sequence, payload }) => {
          return sequence === target || (payload as JsonObject).target_sequence === target;
        });
        const seen = kinds.map(({ kind }) => kind).join();
        assertConforms(
          seen === 'post,edit,edit' || seen === 'delete',
          `all or nothing, not ${seen}`,
        );
      }
    };
    for (const target of targets) {
      await Promise.all([look(), look(), channel.delete(target), look(), look()]);
    }
    await look();
  },
);

export const channelDeleteChecks = deletion.list;
