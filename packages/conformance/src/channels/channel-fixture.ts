/** A channel with people around it, for one check. */
import type { JsonObject } from '@posthouse/protocol';
import { residents } from '../fixtures/test-accounts.ts';
import type { Resident, Stage } from '../fixtures/test-context.ts';
import { ChannelActors } from './test-channel.ts';

export interface ChannelSceneOptions {
  /** Number of moderators, 0 by default. */
  readonly moderators?: number;
  /** Number of people who may only read, 0 by default. */
  readonly readers?: number;
  /** Devices of each, 1 by default. */
  readonly devices?: number;
  /** What the creation says otherwise. */
  readonly facts?: JsonObject;
}

/** A channel, its writers and its readers; take them by destructuring. */
export interface ChannelScene {
  readonly stage: Stage;
  readonly channel: ChannelActors;
  readonly owner: Resident;
  readonly moderators: readonly Resident[];
  readonly readers: readonly Resident[];
}

/**
 * Founds a channel.
 * @example
 * const { channel, owner, moderators } = await channelSceneOf(stage, { moderators: 1 });
 * const [mia] = moderators as [Resident];
 */
export async function channelSceneOf(
  stage: Stage,
  { moderators = 0, readers = 0, devices = 1, facts }: ChannelSceneOptions = {},
): Promise<ChannelScene> {
  const people = await residents(stage, 1 + moderators + readers, { devices });
  const [owner, ...others] = people as [Resident, ...Resident[]];
  const chosen = others.slice(0, moderators);
  const named = moderators === 0 ? {} : { moderators: chosen.map(({ account }) => account.id) };
  const channel = await ChannelActors.found(stage, owner, { ...named, ...facts });
  return { stage, channel, owner, moderators: chosen, readers: others.slice(moderators) };
}
