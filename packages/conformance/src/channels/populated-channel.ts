import { withDevice } from '../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { type ChannelFixture, channelFixture } from './channel-fixture.ts';
import { textBody } from './channel-objects.ts';
import { readTimeline } from './channel-reader.ts';

/** A channel with events of every kind. */
export interface PopulatedChannel extends ChannelFixture {
  readonly mia: TestAccount;
  readonly rea: TestAccount;
  /** Sequences of the readable events. */
  readonly all: readonly number[];
  /** Sequences of a deleted post and of its edit, which are not readable. */
  readonly gaps: readonly number[];
}

/** Creates a channel with posts, edits, a deletion and a new descriptor. */
export async function populatedChannel(context: TestContext): Promise<PopulatedChannel> {
  const fixture = await channelFixture(context, { moderators: 1, readers: 1, devices: 2 });
  const { channel, owner } = fixture;
  const [mia, rea] = [...fixture.moderators, ...fixture.readers] as [TestAccount, TestAccount];
  const first = await channel.post();
  const deleted = await channel.post({}, mia);
  await channel.edit(deleted, { body: textBody('soon deleted') });
  await channel.update({ description: 'words' }, withDevice(owner, 1));
  await channel.edit(first, { body: textBody('edited') }, withDevice(mia, 1));
  await channel.post({}, mia);
  const before = (await readTimeline(channel)).raw.map(({ sequence }) => sequence);
  await channel.delete(deleted, {}, mia);
  await channel.post();
  const all = (await readTimeline(channel)).raw.map(({ sequence }) => sequence);
  return { ...fixture, mia, rea, all, gaps: before.filter((sequence) => !all.includes(sequence)) };
}
