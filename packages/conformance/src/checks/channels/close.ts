/** The end of a channel (06 §7.4, §8.5). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { paddedTo } from '../../channels/channel-objects.ts';
import {
  assertUnchanged,
  equal,
  lastEvent,
  readTimeline,
  resolveChannel,
} from '../../channels/channel-reader.ts';
import { postUntilRefused } from '../../channels/post-until-refused.ts';
import type { TestChannel } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const close = checksOf('channel.close');
const method = 'channel.close';

/** Builds the parameters of a close request with the signature of a descriptor. */
function signedOver(descriptor: JsonObject): JsonObject {
  const { channel_id, revision, updated_at, device_signature } = descriptor;
  return { channel_id, revision, updated_at, device_signature };
}

/** Asserts that the channel is closed and its last event says so. */
async function assertClosed(channel: TestChannel): Promise<void> {
  const { payload, descriptor_rev } = await lastEvent(channel);
  assertEqual(payload, channel.current, 'the event is the final descriptor');
  assertEqual(descriptor_rev, channel.revision, 'the revision of the event');
  const resolved = await resolveChannel(channel, channel.owner);
  assertConforms(
    resolved.status === 'closed' && equal(resolved, channel.current),
    'the final descriptor is the current one',
  );
}

close.check(
  'final',
  { source: '06 §8.5', title: 'appends the current descriptor with status closed' },
  async (context) => {
    const overrides = { description: 'words', theme: { of: [1, { two: '3' }] }, moderators: [] };
    const { channel, owner } = await channelFixture(context, { overrides, devices: 2 });
    await channel.update({ later: true });
    const { raw } = await readTimeline(channel);
    await channel.close(withDevice(owner, 1));
    await assertClosed(channel);
    const after = await readTimeline(channel);
    assertEqual(after.raw.length, raw.length + 1, 'the number of events');
    assertEqual(after.raw.slice(0, -1), raw, 'the earlier events are unchanged');
    const last = after.raw.at(-1);
    assertEqual(last?.signer_device_id, withDevice(owner, 1).device.id, 'the signing device');
    for (const name of ['description', 'theme', 'moderators', 'later']) {
      assertConforms(Object.hasOwn(channel.current, name), `${name} stays`);
    }
  },
);

close.check(
  'not-mapped',
  { source: '06 §8.5', title: 'copies no other member of the request into the descriptor' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const final = channel.finalDescriptor();
    const more = { name: 'Another', description: 'more', status: 'active', future: [1] };
    await context.expectOk(owner.caller, method, { ...more, ...signedOver(final) });
    channel.current = final;
    await assertClosed(channel);
  },
);

close.check(
  'signature',
  {
    source: '06 §8.5 step 5',
    title: 'answers invalid_signature unless the final descriptor is signed',
  },
  async (context) => {
    const overrides = { description: 'words', theme: 'dark' };
    const { channel, owner } = await channelFixture(context, { devices: 2, overrides });
    const params = channel.closeParams();
    const over = (changes: JsonObject) => signedOver(channel.finalDescriptor(changes));
    const changed = { ...params, updated_at: Number(params.updated_at) - 1 };
    const request = channel.sign(params);
    const wrong: Readonly<Record<string, JsonObject>> = {
      'bit flipped': { ...params, device_signature: tampered(String(params.device_signature)) },
      'another time than was signed': changed,
      'over the request': request,
      'over an active descriptor': over({ status: 'active' }),
      'over another name': over({ name: 'Another' }),
      'without an unknown member': over({ theme: undefined }),
      'without the description': over({ description: undefined }),
      'with a list that is not there': over({ moderators: [] }),
      'by the other device': signedOver(channel.finalDescriptor({}, withDevice(owner, 1))),
      'by another account': signedOver(
        channel.finalDescriptor({}, { device: await context.account().device() }),
      ),
    };
    const refused = { by: owner, method, codes: ['invalid_signature'] } as const;
    await assertUnchanged(channel, () => assertAllRefused(refused, Object.entries(wrong)));
    await context.expectOk(owner.caller, method, params);
  },
);

close.check(
  'revision',
  { source: '06 §8.5 step 3', title: 'answers state_conflict for any revision but the next one' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    await channel.update({ name: 'second' });
    const calls = [0, 1, 3, Number.MAX_SAFE_INTEGER].map((revision) => {
      return [`revision ${revision}`, channel.closeParams({ revision })] as const;
    });
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['state_conflict'] }, calls),
    );
    await channel.close();
  },
);

close.check(
  'clock',
  { source: '06 §8.5 step 4', title: 'answers clock_skew if the time of the request is far off' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const now = unixSeconds();
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['clock_skew'] }, [
        ['a time long ago', channel.closeParams({ updated_at: now - 31_536_000 })],
        ['a time far ahead', channel.closeParams({ updated_at: now + 31_536_000 })],
      ]),
    );
    await channel.close();
  },
);

close.check(
  'order',
  { source: '06 §8.5', title: 'checks in the order of the chapter' },
  async (context) => {
    const { channel, owner, moderators } = await channelFixture(context, { moderators: 1 });
    const [mia] = moderators as [TestAccount];
    const spoiled = (overrides: JsonObject, by = owner) => {
      const params = channel.closeParams(overrides, by);
      return { ...params, device_signature: tampered(String(params.device_signature)) };
    };
    const old = { updated_at: 0 };
    const cases = [
      [mia, 'bad_request', 'form', { ...channel.closeParams({}, mia), device_signature: 'short' }],
      [mia, 'forbidden', 'permission before signature', spoiled({}, mia)],
      [mia, 'forbidden', 'permission before revision', channel.closeParams({ revision: 7 }, mia)],
      [owner, 'state_conflict', 'revision before clock', spoiled({ ...old, revision: 7 })],
      [owner, 'clock_skew', 'clock before signature', spoiled(old)],
    ] as const;
    await assertUnchanged(channel, async () => {
      for (const [by, code, what, params] of cases) {
        await assertAllRefused({ by, method, codes: [code] }, [[what, params]]);
      }
    });
    await channel.close();
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['state_conflict'] }, [
        ['closure before clock', spoiled(old)],
      ]),
    );
  },
);

close.check(
  'inherited-size',
  {
    source: '06 §8.5 step 6',
    title: 'answers request_too_large if the final descriptor would be too large',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    while (channel.revision < 8) await channel.update({});
    // The ninth revision has one digit and the largest size; the tenth is one byte too large.
    await channel.sendDescriptor(paddedTo(8_192, (filling) => channel.updateParams({ filling })));
    const call = { method, params: channel.closeParams() };
    await assertUnchanged(channel, () =>
      context.expectError(owner.caller, call, 'request_too_large'),
    );
    await channel.update({ filling: undefined });
    await channel.close();
    await assertClosed(channel);
  },
);

close.check(
  'terminal',
  { source: '06 §7.4', title: 'is the last write of a channel' },
  async (context) => {
    const { channel, owner, moderators } = await channelFixture(context, { moderators: 1 });
    const [mia] = moderators as [TestAccount];
    const target = await channel.post({}, mia);
    const request = channel.closeParams();
    await channel.close();
    const active = { status: 'active' };
    const writes: readonly (readonly [TestAccount, string, JsonObject])[] = [
      [owner, method, request],
      [owner, method, channel.closeParams()],
      [owner, 'channel.update', channel.updateParams(active)],
      [mia, 'channel.post', channel.postParams({}, mia)],
      [mia, 'channel.post.edit', channel.editParams(target, { body: null, x: 1 }, mia)],
      [mia, 'channel.post.edit', channel.editParams(target, { x: 1 }, mia)],
      [mia, 'channel.post.delete', channel.deleteParams(target, {}, mia)],
    ];
    await assertUnchanged(channel, async () => {
      for (const [by, called, params] of writes) {
        await context.expectError(by.caller, { method: called, params }, 'state_conflict');
      }
    });
    await assertClosed(channel);
  },
);

close.check(
  'at-once',
  {
    source: '06 §7.2, §8.5',
    title: 'one of several concurrent updates and closes of one revision succeeds',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context, { devices: 2 });
    const drafts = [owner, withDevice(owner, 1), owner, withDevice(owner, 1)].map((by, index) => {
      const updated_at = unixSeconds() - index;
      const descriptor =
        index === 2
          ? channel.updateParams({ updated_at }, by)
          : channel.finalDescriptor({ updated_at }, by);
      return { by, descriptor, closes: index !== 2 };
    });
    const answers = await Promise.all(
      drafts.map(({ by, descriptor, closes }) => {
        return closes
          ? by.caller.call(method, signedOver(descriptor))
          : by.caller.call('channel.update', descriptor);
      }),
    );
    const won = drafts.filter((_, index) => answers[index]?.ok);
    assertConforms(won.length === 1, `one succeeds, not ${won.length}`);
    for (const answer of answers) {
      assertConforms(
        answer.ok || answer.code === 'state_conflict',
        'the others are state_conflict',
      );
    }
    channel.current = (won[0] as (typeof won)[0]).descriptor;
    assertEqual(
      (await lastEvent(channel)).payload,
      channel.current,
      'the successful call is the current descriptor',
    );
    assertEqual((await readTimeline(channel)).raw.length, 2, 'one event');
    if (!won[0]?.closes) await channel.close();
    await assertClosed(channel);
  },
);

close.check(
  'with-posts',
  { source: '06 §7.2, §7.4', title: 'no concurrent write is appended after it' },
  async (context) => {
    const { channel, moderators } = await channelFixture(context, { moderators: 1, devices: 3 });
    const [mia] = moderators as [TestAccount];
    const devices = [0, 1, 2].map((index) => withDevice(mia, index));
    const [counts] = await Promise.all([
      Promise.all(devices.map((by) => postUntilRefused(channel, by, 'state_conflict'))),
      channel.close(),
    ]);
    await assertClosed(channel);
    const { state } = await readTimeline(channel);
    const posted = counts.reduce((sum, count) => sum + count, 0);
    assertEqual(state.posts.size, posted, 'the number of posts is that of successful calls');
  },
);

export const channelCloseChecks = close.list;
