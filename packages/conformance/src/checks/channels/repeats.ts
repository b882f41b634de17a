/** Posts that come again, and posts at once (06 §7.4, §8.7). */

import { demand } from '../../assert.ts';
import { channelSceneOf } from '../../channels/channel-fixture.ts';
import { attachment, textBody } from '../../channels/channel-objects.ts';
import { readTimeline, withoutTrace } from '../../channels/channel-reader.ts';
import { postUntil } from '../../channels/post-until-refused.ts';
import { ChannelActors } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { flipped } from '../../fixtures/tampered.ts';
import { at } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';

const post = checksOf('channel.post');
const method = 'channel.post';

post.check(
  'repeat',
  { source: '06 §8.7', title: 'an identical repeat gets the first sequence and adds nothing' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const publication = channel.publication();
    const sequence = await channel.publish(publication);
    await channel.post();
    const other = await stage.member(owner.device, stage.otherTransport);
    const reordered = Object.fromEntries(Object.entries(publication).reverse());
    await withoutTrace(channel, async () => {
      for (const caller of [owner.caller, other]) {
        for (const again of [publication, reordered]) {
          const repeated = await channel.publish(again, { ...owner, caller });
          demand(repeated === sequence, `the same sequence, not ${repeated}`);
        }
      }
    });
  },
);

post.check(
  'conflict',
  { source: '06 §8.7', title: 'the same ID with any other content is state_conflict' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage, { devices: 2 });
    const body = textBody('text');
    const first = channel.publication({ body });
    const sequence = await channel.publish(first);
    const message_id = String(first.message_id);
    const again = (facts: Parameters<typeof channel.publication>[0]) => {
      return channel.publication({ message_id, body, ...facts });
    };
    const calls = [
      ['another text', again({ body: textBody('Text') })],
      ['another type', again({ body: textBody('text', 'text/markdown') })],
      ['an attachment', again({ attachments: [attachment()] })],
      ['an empty list', again({ attachments: [] })],
      ['a member more', again({ note: 1 })],
    ] as const;
    const laptop = at(owner, 1);
    await withoutTrace(channel, async () => {
      await refusesAll({ by: owner, method, codes: ['state_conflict'] }, calls);
      const byLaptop = channel.sign(first, laptop);
      const refused = { by: laptop, method, codes: ['state_conflict'] } as const;
      await refusesAll(refused, [['the same by another device', byLaptop]]);
      demand((await channel.publish(first)) === sequence, 'the first stands');
    });
  },
);

post.check(
  'key',
  { source: '06 §8.7', title: 'a message ID is of one account in one channel' },
  async (stage) => {
    const { channel, owner, moderators } = await channelSceneOf(stage, { moderators: 1 });
    const [mia] = moderators as [Resident];
    const second = await ChannelActors.found(stage, owner);
    const first = channel.publication();
    const message_id = String(first.message_id);
    const sequence = await channel.publish(first);
    const hers = await channel.post({ message_id }, mia);
    demand(hers > sequence, 'a post of its own by another account');
    const there = await second.post({ message_id });
    demand(there === (await readTimeline(second)).raw.at(-1)?.sequence, 'and in another channel');
    demand((await channel.publish(first)) === sequence, 'the first stands');
  },
);

post.check(
  'repeat-of-deleted',
  { source: '06 §8.7, §7.5', title: 'recognizes a post that was deleted' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const publication = channel.publication();
    const sequence = await channel.publish(publication);
    await channel.edit(sequence, { body: textBody('edited') });
    await channel.delete(sequence);
    const message_id = String(publication.message_id);
    await withoutTrace(channel, async () => {
      demand((await channel.publish(publication)) === sequence, 'the original sequence');
      const refused = { by: owner, method, codes: ['state_conflict'] } as const;
      const other = channel.publication({ message_id, body: textBody('anew') });
      await refusesAll(refused, [['other content', other]]);
    });
  },
);

post.check(
  'repeat-when-closed',
  { source: '06 §7.4, §8.7', title: 'recognizes a post once the channel is closed' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const publication = channel.publication();
    const sequence = await channel.publish(publication);
    await channel.close();
    const message_id = String(publication.message_id);
    await withoutTrace(channel, async () => {
      demand((await channel.publish(publication)) === sequence, 'the original sequence');
      await refusesAll({ by: owner, method, codes: ['state_conflict'] }, [
        ['other content', channel.publication({ message_id, body: textBody('anew') })],
        ['a new post', channel.publication()],
      ]);
    });
  },
);

post.check(
  'repeat-without-right',
  { source: '06 §8.7', title: 'recognizes a post of somebody who may write no longer' },
  async (stage) => {
    const { channel, moderators } = await channelSceneOf(stage, { moderators: 1 });
    const [mia] = moderators as [Resident];
    const publication = channel.publication({}, mia);
    const sequence = await channel.publish(publication, mia);
    await channel.update({ moderators: undefined });
    const signature = flipped(String(publication.device_signature));
    const spoiled = { ...publication, device_signature: signature };
    await withoutTrace(channel, async () => {
      demand((await channel.publish(publication, mia)) === sequence, 'the original sequence');
      await stage.fail(mia.caller, { method, params: spoiled }, 'invalid_signature');
      const anew = { method, params: channel.publication({}, mia) };
      await stage.fail(mia.caller, anew, 'forbidden');
    });
  },
);

post.check(
  'at-once',
  { source: '06 §7.2, §8.7', title: 'the same post several times at once is one' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const other = await stage.member(owner.device);
    const publication = channel.publication();
    const sequences = await Promise.all(
      Array.from({ length: 6 }, (_, index) => {
        const caller = index % 2 === 0 ? owner.caller : other;
        return channel.publish(publication, { ...owner, caller });
      }),
    );
    demand(new Set(sequences).size === 1, 'one sequence');
    demand((await readTimeline(channel)).raw.length === 2, 'one event');
  },
);

post.check(
  'together',
  { source: '06 §5.1, §7.2', title: 'posts of several people at once get a sequence each' },
  async (stage) => {
    const { channel, owner, moderators } = await channelSceneOf(stage, { moderators: 2 });
    const people = [owner, ...moderators, owner, ...moderators, owner, ...moderators];
    const sent = people.map((by, index) => channel.publication({ index }, by));
    const sequences = await Promise.all(
      sent.map((publication, index) => channel.publish(publication, people[index])),
    );
    const { events } = await readTimeline(channel);
    const posts = events.filter(({ kind }) => kind === 'post');
    const expected = sequences
      .map((sequence, index) => `${sequence} ${index}`)
      .sort((one, two) => Number.parseInt(one, 10) - Number.parseInt(two, 10));
    const found = posts.map(({ sequence, payload }) => {
      return `${sequence} ${(payload as { index?: number }).index}`;
    });
    demand(found.join() === expected.join(), 'each where it was answered, once');
  },
);

post.check(
  'right-that-ends',
  { source: '06 §7.2, §8.6', title: 'every post is of a revision that let its author write' },
  async (stage) => {
    const { channel, moderators } = await channelSceneOf(stage, { moderators: 1, devices: 3 });
    const [mia] = moderators as [Resident];
    const devices = [0, 1, 2].map((index) => at(mia, index));
    let posted = 0;
    // Once more and again: a moment of doubt is short.
    for (let round = 0; round < 4; round += 1) {
      await channel.update({ moderators: [mia.account.id] });
      const [counts] = await Promise.all([
        Promise.all(devices.map((by) => postUntil(channel, by, 'forbidden'))),
        channel.update({ moderators: undefined }),
      ]);
      posted += counts.reduce((sum, count) => sum + count, 0);
    }
    // The reader verifies each post with the descriptor of its revision (06 §10.1).
    const { state } = await readTimeline(channel);
    demand(state.posts.size === posted, 'those that succeeded are there, and no others');
  },
);

export const channelRepeatChecks = post.list;
