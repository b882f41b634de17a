/** Repeated and concurrent posts (06 §7.4, §8.7). */

import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { attachment, textBody } from '../../channels/channel-objects.ts';
import { assertUnchanged, readTimeline } from '../../channels/channel-reader.ts';
import { postUntilRefused } from '../../channels/post-until-refused.ts';
import { TestChannel } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const post = checksOf('channel.post');
const method = 'channel.post';

post.check(
  'repeat',
  {
    source: '06 §8.7',
    title: 'an identical repeat returns the first sequence and appends nothing',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const publication = channel.postParams();
    const sequence = await channel.sendPost(publication);
    await channel.post();
    const other = await context.deviceSession(owner.device, context.otherTransport);
    const reordered = Object.fromEntries(Object.entries(publication).reverse());
    await assertUnchanged(channel, async () => {
      for (const caller of [owner.caller, other]) {
        for (const again of [publication, reordered]) {
          const repeated = await channel.sendPost(again, { ...owner, caller });
          assertConforms(repeated === sequence, `the same sequence, not ${repeated}`);
        }
      }
    });
  },
);

post.check(
  'conflict',
  { source: '06 §8.7', title: 'the same ID with any other content is state_conflict' },
  async (context) => {
    const { channel, owner } = await channelFixture(context, { devices: 2 });
    const body = textBody('text');
    const first = channel.postParams({ body });
    const sequence = await channel.sendPost(first);
    const message_id = String(first.message_id);
    const again = (overrides: Parameters<typeof channel.postParams>[0]) => {
      return channel.postParams({ message_id, body, ...overrides });
    };
    const calls = [
      ['another text', again({ body: textBody('Text') })],
      ['another type', again({ body: textBody('text', 'text/markdown') })],
      ['an attachment', again({ attachments: [attachment()] })],
      ['an empty list', again({ attachments: [] })],
      ['a member more', again({ note: 1 })],
    ] as const;
    const laptop = withDevice(owner, 1);
    await assertUnchanged(channel, async () => {
      await assertAllRefused({ by: owner, method, codes: ['state_conflict'] }, calls);
      const byLaptop = channel.sign(first, laptop);
      const refused = { by: laptop, method, codes: ['state_conflict'] } as const;
      await assertAllRefused(refused, [['the same by another device', byLaptop]]);
      assertEqual(await channel.sendPost(first), sequence, 'the sequence of the first post');
    });
  },
);

post.check(
  'key',
  { source: '06 §8.7', title: 'a message ID is unique for one account in one channel' },
  async (context) => {
    const { channel, owner, moderators } = await channelFixture(context, { moderators: 1 });
    const [mia] = moderators as [TestAccount];
    const second = await TestChannel.create(context, owner);
    const first = channel.postParams();
    const message_id = String(first.message_id);
    const sequence = await channel.sendPost(first);
    const hers = await channel.post({ message_id }, mia);
    assertConforms(hers > sequence, 'another sequence for another account');
    const there = await second.post({ message_id });
    assertEqual(
      there,
      (await readTimeline(second)).raw.at(-1)?.sequence,
      'a post of its own in another channel',
    );
    assertEqual(await channel.sendPost(first), sequence, 'the sequence of the first post');
  },
);

post.check(
  'repeat-of-deleted',
  { source: '06 §8.7, §7.5', title: 'recognizes a post that was deleted' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const publication = channel.postParams();
    const sequence = await channel.sendPost(publication);
    await channel.edit(sequence, { body: textBody('edited') });
    await channel.delete(sequence);
    const message_id = String(publication.message_id);
    await assertUnchanged(channel, async () => {
      assertEqual(await channel.sendPost(publication), sequence, 'the original sequence');
      const refused = { by: owner, method, codes: ['state_conflict'] } as const;
      const other = channel.postParams({ message_id, body: textBody('anew') });
      await assertAllRefused(refused, [['other content', other]]);
    });
  },
);

post.check(
  'repeat-when-closed',
  { source: '06 §7.4, §8.7', title: 'recognizes a post after the channel is closed' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const publication = channel.postParams();
    const sequence = await channel.sendPost(publication);
    await channel.close();
    const message_id = String(publication.message_id);
    await assertUnchanged(channel, async () => {
      assertEqual(await channel.sendPost(publication), sequence, 'the original sequence');
      await assertAllRefused({ by: owner, method, codes: ['state_conflict'] }, [
        ['other content', channel.postParams({ message_id, body: textBody('anew') })],
        ['a new post', channel.postParams()],
      ]);
    });
  },
);

post.check(
  'repeat-without-right',
  { source: '06 §8.7', title: 'recognizes a post of an account that may no longer write' },
  async (context) => {
    const { channel, moderators } = await channelFixture(context, { moderators: 1 });
    const [mia] = moderators as [TestAccount];
    const publication = channel.postParams({}, mia);
    const sequence = await channel.sendPost(publication, mia);
    await channel.update({ moderators: undefined });
    const signature = tampered(String(publication.device_signature));
    const spoiled = { ...publication, device_signature: signature };
    await assertUnchanged(channel, async () => {
      assertEqual(await channel.sendPost(publication, mia), sequence, 'the original sequence');
      await context.expectError(mia.caller, { method, params: spoiled }, 'invalid_signature');
      const anew = { method, params: channel.postParams({}, mia) };
      await context.expectError(mia.caller, anew, 'forbidden');
    });
  },
);

post.check(
  'at-once',
  { source: '06 §7.2, §8.7', title: 'several identical concurrent posts are appended once' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const other = await context.deviceSession(owner.device);
    const publication = channel.postParams();
    const sequences = await Promise.all(
      Array.from({ length: 6 }, (_, index) => {
        const caller = index % 2 === 0 ? owner.caller : other;
        return channel.sendPost(publication, { ...owner, caller });
      }),
    );
    assertEqual(new Set(sequences).size, 1, 'one sequence');
    assertEqual((await readTimeline(channel)).raw.length, 2, 'one event');
  },
);

post.check(
  'together',
  { source: '06 §5.1, §7.2', title: 'concurrent posts of several accounts get one sequence each' },
  async (context) => {
    const { channel, owner, moderators } = await channelFixture(context, { moderators: 2 });
    const writers = [owner, ...moderators, owner, ...moderators, owner, ...moderators];
    const sent = writers.map((by, index) => channel.postParams({ index }, by));
    const sequences = await Promise.all(
      sent.map((publication, index) => channel.sendPost(publication, writers[index])),
    );
    const { events } = await readTimeline(channel);
    const posts = events.filter(({ kind }) => kind === 'post');
    const expected = sequences
      .map((sequence, index) => `${sequence} ${index}`)
      .sort((one, two) => Number.parseInt(one, 10) - Number.parseInt(two, 10));
    const found = posts.map(({ sequence, payload }) => {
      return `${sequence} ${(payload as { index?: number }).index}`;
    });
    assertEqual(found.join(), expected.join(), 'each post once, at the sequence in its answer');
  },
);

post.check(
  'right-that-ends',
  { source: '06 §7.2, §8.6', title: 'every post has a revision that allowed its author to write' },
  async (context) => {
    const { channel, moderators } = await channelFixture(context, { moderators: 1, devices: 3 });
    const [mia] = moderators as [TestAccount];
    const devices = [0, 1, 2].map((index) => withDevice(mia, index));
    let posted = 0;
    // Several rounds: the critical moment is short.
    for (let round = 0; round < 4; round += 1) {
      await channel.update({ moderators: [mia.account.id] });
      const [counts] = await Promise.all([
        Promise.all(devices.map((by) => postUntilRefused(channel, by, 'forbidden'))),
        channel.update({ moderators: undefined }),
      ]);
      posted += counts.reduce((sum, count) => sum + count, 0);
    }
    // The reader verifies each post with the descriptor of its revision (06 §10.1).
    const { state } = await readTimeline(channel);
    assertEqual(state.posts.size, posted, 'the number of posts is that of successful calls');
  },
);

export const channelRepeatChecks = post.list;
