/** A channel with people around it, for one check. */
import type { JsonObject } from '@posthouse/protocol/json';
import { testAccounts } from '../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { TestChannel } from './test-channel.ts';

export interface ChannelFixtureOptions {
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
export interface ChannelFixture {
  readonly context: TestContext;
  readonly channel: TestChannel;
  readonly owner: TestAccount;
  readonly moderators: readonly TestAccount[];
  readonly readers: readonly TestAccount[];
}

/**
 * Founds a channel.
 * @example
 * const { channel, owner, moderators } = await channelFixture(context, { moderators: 1 });
 * const [mia] = moderators as [Resident];
 */
export async function channelFixture(
  context: TestContext,
  { moderators = 0, readers = 0, devices = 1, facts }: ChannelFixtureOptions = {},
): Promise<ChannelFixture> {
  const people = await testAccounts(context, 1 + moderators + readers, { devices });
  const [owner, ...others] = people as [TestAccount, ...TestAccount[]];
  const chosen = others.slice(0, moderators);
  const named = moderators === 0 ? {} : { moderators: chosen.map(({ account }) => account.id) };
  const channel = await TestChannel.create(context, owner, { ...named, ...facts });
  return { context, channel, owner, moderators: chosen, readers: others.slice(moderators) };
}
