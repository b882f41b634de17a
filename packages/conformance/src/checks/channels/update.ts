/** Updates of the descriptor (06 §4, §8.4). */

import { encodeBase64url } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { paddedTo } from '../../channels/channel-objects.ts';
import {
  assertUnchanged,
  lastEvent,
  readTimeline,
  resolveChannel,
} from '../../channels/channel-reader.ts';
import { invalidFields, validFields } from '../../channels/descriptor-fields.ts';
import { TestChannel } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { relayTime } from '../../fixtures/relay-info.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const update = checksOf('channel.update');
const method = 'channel.update';

/** Asserts that the last event and the current descriptor are the one that was sent. */
async function assertCurrent(channel: TestChannel, what: string): Promise<void> {
  const { payload, descriptor_rev } = await lastEvent(channel);
  assertEqual(payload, channel.current, `${what}: the event as it was sent`);
  assertEqual(descriptor_rev, channel.revision, `${what}: the revision of the event`);
  const resolved = await resolveChannel(channel, channel.owner);
  assertEqual(resolved, channel.current, `${what}: the current descriptor as it was sent`);
}

update.check(
  'replaces',
  {
    source: '06 §8.4, §5.1',
    title: 'makes the next descriptor the current one and appends it unchanged',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context, { devices: 2 });
    const first = channel.current;
    const before = await relayTime(context);
    await channel.update(
      { name: 'Renamed', theme: { of: [1, { two: '3' }] } },
      withDevice(owner, 1),
    );
    await assertCurrent(channel, 'by another device');
    const { raw } = await readTimeline(channel);
    const [, event] = raw;
    assertConforms(raw.length === 2 && event !== undefined, 'one event more');
    assertConforms(event.sequence > 0, 'a sequence after the first event');
    assertEqual(event.signer_device_id, withDevice(owner, 1).device.id, 'the signing device');
    const late = await relayTime(context);
    assertConforms(event.accepted_at >= before && event.accepted_at <= late, "the host's time");
    assertEqual(
      await resolveChannel(channel, owner, 0),
      first,
      'the first descriptor is still readable',
    );
  },
);

update.check(
  'fields',
  { source: '06 §4', title: 'accepts every field up to its limits and stores it unchanged' },
  async (context) => {
    const { channel } = await channelFixture(context);
    for (const [what, overrides] of Object.entries(validFields(context))) {
      await channel.update(overrides);
      await assertCurrent(channel, what);
    }
  },
);

update.check(
  'wrong-fields',
  { source: '06 §4', title: 'refuses fields beyond their limits and changes nothing' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const calls = Object.entries(invalidFields(context, owner.account.id)).map(
      ([what, overrides]) => [what, channel.updateParams(overrides)] as const,
    );
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls),
    );
  },
);

update.check(
  'nothing-carried-over',
  { source: '06 §8.4', title: 'omits members that the new descriptor omits' },
  async (context) => {
    const overrides = { description: 'words', theme: 'dark', moderators: [context.account().id] };
    const { channel } = await channelFixture(context, { overrides });
    const omitted = { description: undefined, theme: undefined, moderators: undefined };
    await channel.update(omitted);
    await assertCurrent(channel, 'without optional members');
    for (const name of Object.keys(omitted)) {
      assertConforms(!Object.hasOwn(channel.current, name), `no ${name}`);
    }
    await channel.update({ moderators: [], description: '' });
    await assertCurrent(channel, 'with empty ones');
    await channel.update(omitted);
    await assertCurrent(channel, 'without them again');
  },
);

update.check(
  'rights-that-end',
  { source: '06 §8.4, §8.6', title: 'changes the accounts that may write at once' },
  async (context) => {
    const { channel, moderators, readers } = await channelFixture(context, {
      ...{ moderators: 1, readers: 1 },
    });
    const [mia, rea] = [...moderators, ...readers] as [TestAccount, TestAccount];
    const post = (by: TestAccount) => ({
      method: 'channel.post',
      params: channel.postParams({}, by),
    });
    await channel.post({}, mia);
    await channel.update({ moderators: [rea.account.id] });
    await assertUnchanged(channel, () => context.expectError(mia.caller, post(mia), 'forbidden'));
    await channel.post({}, rea);
    await channel.update({ moderators: undefined });
    await assertUnchanged(channel, async () => {
      for (const by of [mia, rea]) await context.expectError(by.caller, post(by), 'forbidden');
    });
    await readTimeline(channel, rea);
  },
);

update.check(
  'immutable',
  { source: '06 §8.4', title: 'refuses to change the immutable members' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const second = await TestChannel.create(context, owner);
    const eve = context.account().id;
    const { channel_id, nonce } = second.createParams;
    const fresh = encodeBase64url(nodeRandom(16));
    const wrong: Readonly<Record<string, JsonObject>> = {
      'another nonce': { nonce: fresh },
      'another creator': { creator: eve },
      'another relay': { relay_id: `0x${'5a'.repeat(20)}` },
      'another time of creation': { created_at: unixSeconds() - 1 },
      'the final status': { status: 'closed' },
      'the ID of another channel': { channel_id: String(channel_id) },
      'the nonce of another channel': { nonce: String(nonce) },
    };
    const { created_at } = channel.current;
    const earlier = { created_at: Number(created_at) - 1 };
    const calls = Object.entries({ ...wrong, 'another time of creation': earlier });
    await assertUnchanged(second, () =>
      assertUnchanged(channel, () =>
        assertAllRefused(
          { by: owner, method, codes: ['bad_request'] },
          calls.map(([what, overrides]) => [what, channel.updateParams(overrides)]),
        ),
      ),
    );
    await channel.update({ name: 'as allowed' });
  },
);

update.check(
  'owner',
  {
    source: '06 §8.4 step 1',
    title: 'answers forbidden to other accounts, whatever the descriptor says',
  },
  async (context) => {
    const { channel, moderators } = await channelFixture(context, { moderators: 1 });
    const [mia] = moderators as [TestAccount];
    const own = { creator: mia.account.id, moderators: [] };
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: mia, method, codes: ['forbidden'] }, [
        ['their own signature', channel.updateParams({ name: 'theirs' }, mia)],
        ['themselves as the creator', channel.updateParams(own, mia)],
        ['a descriptor that the owner signed', channel.updateParams({ name: 'replayed' })],
      ]),
    );
  },
);

update.check(
  'revision',
  {
    source: '06 §4, §8.4 step 8',
    title: 'answers state_conflict for any revision but the next one',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const first = channel.updateParams({ name: 'first' });
    await channel.sendDescriptor(first);
    await channel.update({ name: 'second' });
    const wrong = [0, 1, 2, 4, 5, Number.MAX_SAFE_INTEGER].map((revision) => {
      return [`revision ${revision}`, channel.updateParams({ revision })] as const;
    });
    const repeats = [
      ['a descriptor that was accepted', first],
      ['the current descriptor', channel.current],
    ] as const;
    await assertUnchanged(channel, async () => {
      const refused = { by: owner, method, codes: ['state_conflict'] } as const;
      await assertAllRefused(refused, [...wrong, ...repeats]);
    });
    await channel.update({ name: 'third' });
    assertEqual((await resolveChannel(channel, owner)).revision, 3, 'the current revision');
  },
);

update.check(
  'at-once',
  { source: '06 §7.2, §8.4', title: 'one of several concurrent updates of one revision succeeds' },
  async (context) => {
    const { channel, owner } = await channelFixture(context, { devices: 2 });
    const callers = [
      owner,
      withDevice(owner, 1),
      { ...owner, caller: await context.deviceSession(owner.device) },
    ];
    const drafts = Array.from({ length: 6 }, (_, index) => {
      const by = callers[index % 3] as TestAccount;
      return { by, params: channel.updateParams({ name: `number ${index}` }, by) };
    });
    const answers = await Promise.all(
      drafts.map(({ by, params }) => by.caller.call(method, params)),
    );
    const won = drafts.filter((_, index) => answers[index]?.ok);
    assertConforms(won.length === 1, `one succeeds, not ${won.length}`);
    for (const answer of answers) {
      assertConforms(
        answer.ok || answer.code === 'state_conflict',
        'the others are state_conflict',
      );
    }
    channel.current = (won[0] as (typeof won)[0]).params;
    await assertCurrent(channel, 'the one that succeeded');
    assertEqual((await readTimeline(channel)).raw.length, 2, 'one event');
  },
);

update.check(
  'clock',
  {
    source: '06 §8.4 step 7, §4',
    title: 'answers clock_skew if the time of the descriptor is far off',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const now = unixSeconds();
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['clock_skew'] }, [
        ['a time long ago', channel.updateParams({ updated_at: now - 31_536_000 })],
        ['a time far ahead', channel.updateParams({ updated_at: now + 31_536_000 })],
      ]),
    );
    await channel.update({ updated_at: now });
    await channel.update({ updated_at: now - 2 });
    await assertCurrent(channel, 'a time before the one of the last revision');
  },
);

update.check(
  'order',
  { source: '06 §8.4', title: 'checks in the order of the chapter' },
  async (context) => {
    const { channel, owner, moderators } = await channelFixture(context, { moderators: 1 });
    const [mia] = moderators as [TestAccount];
    const spoiled = (overrides: JsonObject, by = owner) => {
      const params = channel.updateParams(overrides, by);
      return { ...params, device_signature: tampered(String(params.device_signature)) };
    };
    const old = { updated_at: 0 };
    const make = (overrides: JsonObject) => (filling: string) =>
      channel.updateParams({ ...overrides, filling });
    await assertUnchanged(channel, async () => {
      await assertAllRefused({ by: mia, method, codes: ['forbidden'] }, [
        ['permission before form', channel.updateParams({ name: '' }, mia)],
        ['permission before signature', spoiled({}, mia)],
      ]);
      const cases = [
        ['bad_request', 'immutable members before signature', spoiled({ created_at: 1 })],
        ['invalid_signature', 'signature before clock', spoiled(old)],
        ['invalid_signature', 'signature before revision', spoiled({ revision: 7 })],
        ['request_too_large', 'size before clock', paddedTo(8_193, make(old))],
        ['clock_skew', 'clock before revision', channel.updateParams({ ...old, revision: 7 })],
      ] as const;
      for (const [code, what, params] of cases) {
        await assertAllRefused({ by: owner, method, codes: [code] }, [[what, params]]);
      }
    });
    await channel.close();
    const reopened = (overrides: JsonObject) =>
      channel.updateParams({ status: 'active', ...overrides });
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['state_conflict'] }, [
        ['closure before size', paddedTo(8_193, (filling) => reopened({ filling }))],
        ['closure before clock', reopened(old)],
      ]),
    );
  },
);

export const channelUpdateChecks = update.list;
