import { at } from '../fixtures/test-accounts.ts';
import type { Resident, Stage } from '../fixtures/test-context.ts';
import { type ChannelScene, channelSceneOf } from './channel-fixture.ts';
import { textBody } from './channel-objects.ts';
import { readTimeline } from './channel-reader.ts';

export interface Lively extends ChannelScene {
  readonly mia: Resident;
  readonly rea: Resident;
  /** Sequences, all readable but the gaps. */
  readonly all: readonly number[];
  /** Of a post that was deleted, and of its edit. */
  readonly gaps: readonly number[];
}

/** A channel that a good deal has happened to. */
export async function lively(stage: Stage): Promise<Lively> {
  const scene = await channelSceneOf(stage, { moderators: 1, readers: 1, devices: 2 });
  const { channel, owner } = scene;
  const [mia, rea] = [...scene.moderators, ...scene.readers] as [Resident, Resident];
  const first = await channel.post();
  const gone = await channel.post({}, mia);
  await channel.edit(gone, { body: textBody('soon gone') });
  await channel.update({ description: 'words' }, at(owner, 1));
  await channel.edit(first, { body: textBody('edited') }, at(mia, 1));
  await channel.post({}, mia);
  const before = (await readTimeline(channel)).raw.map(({ sequence }) => sequence);
  await channel.delete(gone, {}, mia);
  await channel.post();
  const all = (await readTimeline(channel)).raw.map(({ sequence }) => sequence);
  return { ...scene, mia, rea, all, gaps: before.filter((sequence) => !all.includes(sequence)) };
}
