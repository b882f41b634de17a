/** Reports of posts, which only the operator sees (06 §8.10). */

import { channelFixture } from '../../channels/channel-fixture.ts';
import { textBody } from '../../channels/channel-objects.ts';
import { assertUnchanged } from '../../channels/channel-reader.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const report = checksOf('channel.post.report');
const method = 'channel.post.report';

report.check(
  'unseen',
  {
    source: '06 §8.10, §5.4',
    title: 'appends no event and changes nothing, however often it is called',
  },
  async (context) => {
    const { channel, owner, moderators, readers } = await channelFixture(context, {
      ...{ moderators: 1, readers: 1, devices: 2 },
    });
    const [mia, rea] = [...moderators, ...readers] as [TestAccount, TestAccount];
    const target = await channel.post();
    await assertUnchanged(channel, async () => {
      for (const by of [rea, withDevice(rea, 1), rea, mia, owner]) await channel.report(target, by);
      await channel.report(target, rea, { reason: 'another reason: é' });
      await channel.report(target, rea, { reason: ' x', evidence: { of: [1] } });
    });
    await channel.edit(target, { body: textBody('edited') });
    await assertUnchanged(channel, () => channel.report(target, rea));
    await channel.delete(target);
  },
);

report.check(
  'reason',
  { source: '06 §8.10', title: 'refuses an empty or a very long reason' },
  async (context) => {
    const { channel, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    const target = await channel.post();
    const reasons = ['', ' ', '\t\u0085\u3000\n', 'x'.repeat(500_000)];
    const calls = reasons.map((reason) => {
      const what = `a reason of ${reason.length} characters`;
      return [what, channel.reportParams(target, { reason })] as const;
    });
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: rea, method, codes: ['bad_request'] }, calls),
    );
    await channel.report(target, rea, { reason: 'x' });
  },
);

report.check(
  'at-once',
  {
    source: '06 §8.10',
    title: 'accepts concurrent reports of a post, and refuses one after its deletion',
  },
  async (context) => {
    const { channel, readers } = await channelFixture(context, { readers: 2 });
    const target = await channel.post();
    await assertUnchanged(channel, () =>
      Promise.all([...readers, ...readers].map((by) => channel.report(target, by))),
    );
    await channel.delete(target);
    for (const by of readers) {
      await context.expectError(
        by.caller,
        { method, params: channel.reportParams(target) },
        'state_conflict',
      );
    }
  },
);

export const channelReportChecks = report.list;
