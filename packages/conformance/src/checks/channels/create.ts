/** Creation of channels (06 §3, §4, §8.2). */

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
import { testAccounts, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';

const create = checksOf('channel.create');
const method = 'channel.create';

/** Asserts that a channel does not exist. */
async function absent(context: TestContext, { channelId, owner }: TestChannel): Promise<void> {
  const params = { channel_id: channelId };
  await context.expectError(owner.caller, { method: 'channel.resolve', params }, 'not_found');
  await context.expectError(owner.caller, { method: 'channel.read', params }, 'not_found');
}

/** Asserts that each creation is refused and creates no channel. */
async function refused(
  context: TestContext,
  codes: Parameters<typeof assertAllRefused>[0]['codes'],
  drafts: Readonly<Record<string, TestChannel>>,
): Promise<void> {
  for (const [what, draft] of Object.entries(drafts)) {
    await assertAllRefused({ by: draft.owner, method, codes }, [[what, draft.createParams]]);
    await absent(context, draft);
  }
}

create.check(
  'founds',
  { source: '06 §8.2, §5', title: 'creates a channel whose first event is its descriptor' },
  async (context) => {
    const before = await relayTime(context);
    const { channel, owner, readers } = await channelFixture(context, { readers: 1, devices: 2 });
    const [rea] = readers as [TestAccount];
    for (const by of [owner, withDevice(owner, 1), rea]) {
      const { raw } = await readTimeline(channel, by);
      const [event] = raw;
      assertConforms(raw.length === 1 && event !== undefined, 'one event');
      assertConforms(
        event.sequence === 0 && event.descriptor_rev === 0,
        'sequence 0 and revision 0',
      );
      assertEqual(event.signer_device_id, owner.device.id, 'the signing device');
      assertEqual(event.payload, channel.createParams, 'the descriptor that was sent');
      const late = await relayTime(context);
      assertConforms(event.accepted_at >= before && event.accepted_at <= late, "the host's time");
      assertEqual(
        await resolveChannel(channel, by),
        channel.createParams,
        'the current descriptor',
      );
    }
  },
);

create.check(
  'fields',
  { source: '06 §4', title: 'accepts every field up to its limits and stores it unchanged' },
  async (context) => {
    const owner = await context.testAccount();
    const more: Record<string, JsonObject> = {
      'nothing optional': {},
      'members it does not know': {
        theme: { colours: ['red', { shade: -1 }], on: true },
        constructor: 'x',
        ...(JSON.parse('{"__proto__": {"moderators": []}}') as JsonObject),
      },
    };
    for (const [what, overrides] of Object.entries({ ...validFields(context), ...more })) {
      const channel = await TestChannel.create(context, owner, overrides);
      const { payload } = await lastEvent(channel);
      assertEqual(payload, channel.createParams, `${what}: the event`);
      assertEqual(await resolveChannel(channel, owner), channel.createParams, `${what}: resolved`);
    }
  },
);

create.check(
  'wrong-fields',
  { source: '06 §4', title: 'refuses fields beyond their limits and creates no channel' },
  async (context) => {
    const owner = await context.testAccount();
    const drafts = Object.entries(invalidFields(context, owner.account.id)).map(
      ([what, overrides]) => [what, TestChannel.draft(context, owner, overrides)] as const,
    );
    const calls = drafts.map(([what, { createParams }]) => [what, createParams] as const);
    await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls);
    for (const [what, draft] of drafts) if (!/nonce/.test(what)) await absent(context, draft);
  },
);

create.check(
  'initial',
  {
    source: '06 §3, §8.2 step 5',
    title: 'refuses another revision than 0, a wrong ID and another host',
  },
  async (context) => {
    const owner = await context.testAccount();
    const draft = (overrides: JsonObject) => TestChannel.draft(context, owner, overrides);
    const { channelId } = draft({});
    await refused(context, ['bad_request'], {
      'revision 1': draft({ revision: 1 }),
      'the final status': draft({ status: 'closed' }),
      'other times': draft({ updated_at: unixSeconds() + 1 }),
      'another relay': draft({ relay_id: `0x${'5a'.repeat(20)}` }),
      'the ID of another nonce': draft({ channel_id: channelId }),
      'any ID': draft({ channel_id: `chan_${encodeBase64url(nodeRandom(16))}` }),
    });
  },
);

create.check(
  'creator',
  {
    source: '06 §8.2 step 3',
    title: 'answers forbidden to a creation in the name of another account',
  },
  async (context) => {
    const [owner, eve] = (await testAccounts(context, 2)) as [TestAccount, TestAccount];
    const named = TestChannel.draft(context, eve, { creator: owner.account.id });
    const theirs = TestChannel.draft(context, owner);
    await assertAllRefused({ by: eve, method, codes: ['forbidden'] }, [
      ['a creator who does not call', named.createParams],
      ['a descriptor that its creator signed', theirs.createParams],
    ]);
    await absent(context, named);
    await absent(context, theirs);
  },
);

create.check(
  'again',
  {
    source: '06 §8.2 step 7',
    title: 'answers state_conflict for an existing ID, identical or not',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context, { devices: 2 });
    const { nonce } = channel.createParams;
    const laptop = withDevice(owner, 1);
    const other = await context.deviceSession(owner.device, context.otherTransport);
    await assertUnchanged(channel, async () => {
      const same = { method, params: channel.createParams };
      for (const caller of [owner.caller, other])
        await context.expectError(caller, same, 'state_conflict');
      const overrides = { nonce: String(nonce), name: 'Another name' };
      await assertAllRefused({ by: owner, method, codes: ['state_conflict'] }, [
        ['another name', TestChannel.draft(context, owner, overrides).createParams],
      ]);
      const byLaptop = channel.sign(channel.createParams, laptop);
      await context.expectError(laptop.caller, { method, params: byLaptop }, 'state_conflict');
    });
    await channel.update({ name: 'Later' });
    await channel.close();
    await assertUnchanged(channel, () =>
      context.expectError(owner.caller, { method, params: channel.createParams }, 'state_conflict'),
    );
  },
);

create.check(
  'nonce-of-others',
  { source: '06 §3', title: 'accepts a nonce that another account has used' },
  async (context) => {
    const { channel, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    const nonce = String(channel.createParams.nonce);
    const second = await TestChannel.create(context, rea, { nonce });
    assertConforms(
      second.channelId !== channel.channelId,
      'another channel ID than that of the other account',
    );
    assertEqual(
      (await readTimeline(second)).raw.length,
      1,
      'the number of events of the second channel',
    );
  },
);

create.check(
  'at-once',
  { source: '06 §7.2, §8.2', title: 'several identical concurrent creations create one channel' },
  async (context) => {
    const owner = await context.testAccount();
    const draft = TestChannel.draft(context, owner);
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => owner.caller.call(method, draft.createParams)),
    );
    const won = answers.filter(({ ok }) => ok);
    assertConforms(won.length === 1, `one succeeds, not ${won.length}`);
    for (const answer of answers) {
      assertConforms(
        answer.ok || answer.code === 'state_conflict',
        'the others are state_conflict',
      );
    }
    assertEqual((await readTimeline(draft)).raw.length, 1, 'one event');
  },
);

create.check(
  'clock',
  {
    source: '06 §8.2 step 8',
    title: 'answers clock_skew if the time of the descriptor is far off',
  },
  async (context) => {
    const owner = await context.testAccount();
    const now = unixSeconds();
    const dated = (time: number) =>
      TestChannel.draft(context, owner, { created_at: time, updated_at: time });
    await refused(context, ['clock_skew'], {
      'a time long ago': dated(now - 31_536_000),
      'a time far ahead': dated(now + 31_536_000),
      'the beginning of time': dated(0),
    });
  },
);

create.check(
  'order',
  { source: '06 §8.2', title: 'checks in the order of the chapter' },
  async (context) => {
    const { channel, owner, readers } = await channelFixture(context, { readers: 1 });
    const [eve] = readers as [TestAccount];
    const draft = (overrides: JsonObject, by = owner) => TestChannel.draft(context, by, overrides);
    const spoiled = ({ createParams }: TestChannel) => {
      return { ...createParams, device_signature: tampered(String(createParams.device_signature)) };
    };
    const old = { created_at: 0, updated_at: 0 };
    const make = (overrides: JsonObject) => (filling: string) =>
      draft({ ...overrides, filling }).createParams;
    const nonce = String(channel.createParams.nonce);
    const cases = [
      ['bad_request', 'form before identity', draft({ creator: eve.account.id, name: '' })],
      ['forbidden', 'identity before signature', spoiled(draft({ creator: eve.account.id }))],
      ['invalid_signature', 'signature before revision', spoiled(draft({ revision: 1 }))],
      ['bad_request', 'revision before size', paddedTo(8_193, make({ revision: 1 }))],
      ['request_too_large', 'size before existence', paddedTo(8_193, make({ nonce, ...old }))],
      ['state_conflict', 'existence before clock', draft({ nonce, ...old })],
    ] as const;
    for (const [code, what, of] of cases) {
      const params = of instanceof TestChannel ? of.createParams : of;
      await assertAllRefused({ by: owner, method, codes: [code] }, [[what, params]]);
    }
  },
);

export const channelCreateChecks = create.list;
