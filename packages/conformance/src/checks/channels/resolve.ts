/** Reading the current descriptor and earlier revisions (06 §8.3, §5.2). */
import { type ChannelResolution, deriveDeviceId } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { equal, resolveChannel } from '../../channels/channel-reader.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const resolve = checksOf('channel.resolve');
const method = 'channel.resolve';

resolve.check(
  'revisions',
  { source: '06 §8.3, §7.5', title: 'returns the current descriptor and each earlier revision' },
  async (context) => {
    const overrides = { description: 'first', theme: { of: [1] } };
    const { channel, owner, readers } = await channelFixture(context, { readers: 1, overrides });
    const [rea] = readers as [TestAccount];
    const all = [channel.current];
    for (const change of [{ name: 'second' }, { description: undefined }, { theme: undefined }]) {
      await channel.update(change);
      all.push(channel.current);
    }
    for (const by of [owner, rea]) {
      assertEqual(await resolveChannel(channel, by), channel.current, 'the current descriptor');
      for (const [revision, descriptor] of all.entries()) {
        const found = await resolveChannel(channel, by, revision);
        assertEqual(found, descriptor, `revision ${revision} as it was sent`);
      }
    }
    const other = await context.deviceSession(rea.device, context.otherTransport);
    assertEqual(
      await resolveChannel(channel, { caller: other }, 1),
      all[1],
      'the same on the other transport',
    );
  },
);

resolve.check(
  'signer',
  {
    source: '06 §8.3, §4',
    title: "returns the certificate of each descriptor's signer, also of a removed device",
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context, { devices: 2 });
    const laptop = withDevice(owner, 1);
    await channel.update({ name: 'by the laptop' }, laptop);
    const signers = async () => {
      const ids: string[] = [];
      for (const revision of [0, 1]) {
        const params = { channel_id: channel.channelId, revision };
        const answer: unknown = await context.expectOk(owner.caller, method, params);
        const { signer_certificate } = answer as ChannelResolution;
        ids.push(deriveDeviceId(context.network, signer_certificate));
        await resolveChannel(channel, owner, revision);
      }
      return ids.join();
    };
    const expected = [owner.device.id, laptop.device.id].join();
    assertEqual(await signers(), expected, 'the signing device');
    await publishDevices(context, owner, [owner.device]);
    assertEqual(await signers(), expected, 'the signing device after its removal');
    assertEqual(
      (await resolveChannel(channel, owner)).revision,
      1,
      'the descriptor stays the current one',
    );
  },
);

resolve.check(
  'no-revision',
  { source: '06 §8.3', title: 'answers not_found for unknown revisions' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    await channel.update({ name: 'second' });
    const { channelId: channel_id } = channel;
    const missing = [2, 3, Number.MAX_SAFE_INTEGER].map((revision) => {
      return [`revision ${revision}`, { channel_id, revision }] as const;
    });
    await assertAllRefused({ by: owner, method, codes: ['not_found'] }, missing);
  },
);

resolve.check(
  'wrong-revision',
  {
    source: '06 §8.3, 02 §2.4',
    title: 'refuses a revision that is not a nonnegative safe integer',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const { channelId: channel_id } = channel;
    const texts = ['x', '', '00', '+0', '0.0', '0e0', '-0', ' 0', '9007199254740992'];
    const values = context.transport === 'https' ? [-1, ...texts] : [-1, '0', '', [0], {}, true];
    const calls = values.map((revision): readonly [string, JsonObject] => {
      return [`a revision of ${JSON.stringify(revision)}`, { channel_id, revision }];
    });
    await assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls);
    assertEqual(
      (await resolveChannel(channel, owner, 0)).revision,
      0,
      'the revision on request of 0',
    );
  },
);

resolve.check(
  'final',
  { source: '06 §8.5, §7.4', title: 'returns the final descriptor of a closed channel' },
  async (context) => {
    const { channel, owner, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    await channel.close();
    for (const by of [owner, rea]) {
      const final = await resolveChannel(channel, by);
      assertConforms(
        final.status === 'closed' && equal(final, channel.current),
        'the final descriptor with status closed',
      );
    }
  },
);

export const channelResolveChecks = resolve.list;
