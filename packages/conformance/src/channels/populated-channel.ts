import { withDevice } from '../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { type ChannelFixture, channelFixture } from './channel-fixture.ts';
import { textBody } from './channel-objects.ts';
import { readTimeline } from './channel-reader.ts';

export interface PopulatedChannel extends ChannelFixture {
  readonly mia: TestAccount;
  readonly rea: TestAccount;
  /** Sequences, all readable but the gaps. */
  readonly all: readonly number[];
  /** Of a post that was deleted, and of its edit. */
  readonly gaps: readonly number[];
}

/** A channel that a good deal has happened to. */
export async function populatedChannel(context: TestContext): Promise<PopulatedChannel> {
  const fixture = await channelFixture(context, { moderators: 1, readers: 1, devices: 2 });
  const { channel, owner } = fixture;
  const [mia, rea] = [...fixture.moderators, ...fixture.readers] as [TestAccount, TestAccount];
  const first = await channel.post();
  const gone = await channel.post({}, mia);
  await channel.edit(gone, { body: textBody('soon gone') });
  await channel.update({ description: 'words' }, withDevice(owner, 1));
  await channel.edit(first, { body: textBody('edited') }, withDevice(mia, 1));
  await channel.post({}, mia);
  const before = (await readTimeline(channel)).raw.map(({ sequence }) => sequence);
  await channel.delete(gone, {}, mia);
  await channel.post();
  const all = (await readTimeline(channel)).raw.map(({ sequence }) => sequence);
  return { ...fixture, mia, rea, all, gaps: before.filter((sequence) => !all.includes(sequence)) };
}
