/** The target post of edits, deletions and reports (06 §8.8, §8.9, §8.10). */
import { type ChannelMethodName, callTemplates } from '../../channels/channel-calls.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { textBody } from '../../channels/channel-objects.ts';
import { assertUnchanged, lastEvent } from '../../channels/channel-reader.ts';
import { TestChannel } from '../../channels/test-channel.ts';
import { type Check, checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

function targetChecks(method: ChannelMethodName): readonly Check[] {
  const { check, list } = checksOf(method);
  const { build: buildCall, targets } = callTemplates[method];
  if (!targets) return list;
  const build = (channel: TestChannel, target: number, by: TestAccount) =>
    buildCall({ channel, by, target });

  check(
    'no-post',
    { source: '06 §8.8 to §8.10', title: 'answers bad_request for a position that is not a post' },
    async (context) => {
      const { channel, owner } = await channelFixture(context);
      const post = await channel.post();
      await channel.edit(post, { body: textBody('edited') });
      const edit = (await lastEvent(channel)).sequence;
      await channel.update({ name: 'Renamed' });
      const update = (await lastEvent(channel)).sequence;
      await channel.delete(await channel.post());
      const deletion = (await lastEvent(channel)).sequence;
      const wrong = { creation: 0, 'nothing, below all': -1, edit, update, deletion };
      const calls = Object.entries(wrong).map(
        ([what, target]) => [`the position of ${what}`, build(channel, target, owner)] as const,
      );
      await assertUnchanged(channel, () =>
        assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls),
      );
      await context.expectOk(owner.caller, method, build(channel, post, owner));
    },
  );

  check(
    'nowhere',
    { source: '06 §8.8 to §8.10', title: 'answers not_found for a position without an event' },
    async (context) => {
      const { channel, owner } = await channelFixture(context);
      const second = await TestChannel.create(context, owner);
      await second.post();
      const there = await second.post();
      const wrong = [1, there, 1_000_000, Number.MAX_SAFE_INTEGER];
      const calls = wrong.map((target) => {
        return [`the position ${target}`, build(channel, target, owner)] as const;
      });
      await assertUnchanged(channel, () =>
        assertAllRefused({ by: owner, method, codes: ['not_found'] }, calls),
      );
      await context.expectOk(owner.caller, method, build(second, there, owner));
    },
  );

  check(
    'deleted',
    { source: '06 §8.8 to §8.10', title: 'answers state_conflict for a deleted post' },
    async (context) => {
      const { channel, owner, moderators } = await channelFixture(context, { moderators: 1 });
      const [mia] = moderators as [TestAccount];
      const [target, other] = [await channel.post(), await channel.post()];
      await channel.edit(target, { body: textBody('edited') });
      const edit = (await lastEvent(channel)).sequence;
      await channel.delete(target);
      await assertUnchanged(channel, async () => {
        for (const by of [owner, mia]) {
          const call = { method, params: build(channel, target, by) };
          await context.expectError(by.caller, call, 'state_conflict');
        }
        // Its edits are not posts, and may be deleted already.
        const call = { method, params: build(channel, edit, owner) };
        await context.expectError(owner.caller, call, 'bad_request', 'not_found');
      });
      await context.expectOk(mia.caller, method, build(channel, other, mia));
    },
  );
  return list;
}

export const channelTargetChecks: readonly Check[] = (
  Object.keys(callTemplates) as ChannelMethodName[]
).flatMap(targetChecks);
