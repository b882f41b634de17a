/** Reports of posts, which nobody but the operator sees (06 §8.10). */

import { channelSceneOf } from '../../channels/channel-fixture.ts';
import { textBody } from '../../channels/channel-objects.ts';
import { withoutTrace } from '../../channels/channel-reader.ts';
import { checksOf } from '../../check.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { at } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';

const report = checksOf('channel.post.report');
const method = 'channel.post.report';

report.check(
  'unseen',
  { source: '06 §8.10, §5.4', title: 'is no event and changes nothing, however often it is made' },
  async (stage) => {
    const { channel, owner, moderators, readers } = await channelSceneOf(stage, {
      ...{ moderators: 1, readers: 1, devices: 2 },
    });
    const [mia, rea] = [...moderators, ...readers] as [Resident, Resident];
    const target = await channel.post();
    await withoutTrace(channel, async () => {
      for (const by of [rea, at(rea, 1), rea, mia, owner]) await channel.report(target, by);
      await channel.report(target, rea, { reason: 'another reason: é' });
      await channel.report(target, rea, { reason: ' x', evidence: { of: [1] } });
    });
    await channel.edit(target, { body: textBody('edited') });
    await withoutTrace(channel, () => channel.report(target, rea));
    await channel.delete(target);
  },
);

report.check(
  'reason',
  { source: '06 §8.10', title: 'refuses a reason that is empty, or very long' },
  async (stage) => {
    const { channel, readers } = await channelSceneOf(stage, { readers: 1 });
    const [rea] = readers as [Resident];
    const target = await channel.post();
    const reasons = ['', ' ', '\t\u0085\u3000\n', 'x'.repeat(500_000)];
    const calls = reasons.map((reason) => {
      const what = `a reason of ${reason.length} characters`;
      return [what, channel.complaint(target, { reason })] as const;
    });
    await withoutTrace(channel, () =>
      refusesAll({ by: rea, method, codes: ['bad_request'] }, calls),
    );
    await channel.report(target, rea, { reason: 'x' });
  },
);

report.check(
  'at-once',
  {
    source: '06 §8.10',
    title: 'takes reports of one post at once, and one after its deletion not',
  },
  async (stage) => {
    const { channel, readers } = await channelSceneOf(stage, { readers: 2 });
    const target = await channel.post();
    await withoutTrace(channel, () =>
      Promise.all([...readers, ...readers].map((by) => channel.report(target, by))),
    );
    await channel.delete(target);
    for (const by of readers) {
      await stage.fail(by.caller, { method, params: channel.complaint(target) }, 'state_conflict');
    }
  },
);

export const channelReportChecks = report.list;
