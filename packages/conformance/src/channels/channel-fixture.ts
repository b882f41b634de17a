/** Makes a channel with moderators and readers for one check. */
import type { JsonObject } from '@posthouse/protocol/json';
import { testAccounts } from '../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { TestChannel } from './test-channel.ts';

export interface ChannelFixtureOptions {
  /** Number of moderators, 0 by default. */
  readonly moderators?: number;
  /** Number of accounts that may only read, 0 by default. */
  readonly readers?: number;
  /** Devices of each account, 1 by default. */
  readonly devices?: number;
  /** Members of the descriptor that replace the defaults. */
  readonly overrides?: JsonObject;
}

/** A channel with its accounts by role. */
export interface ChannelFixture {
  readonly context: TestContext;
  readonly channel: TestChannel;
  readonly owner: TestAccount;
  readonly moderators: readonly TestAccount[];
  readonly readers: readonly TestAccount[];
}

/**
 * Creates a channel.
 * @example
 * const { channel, owner, moderators } = await channelFixture(context, { moderators: 1 });
 * const [mia] = moderators as [TestAccount];
 */
export async function channelFixture(
  context: TestContext,
  { moderators = 0, readers = 0, devices = 1, overrides }: ChannelFixtureOptions = {},
): Promise<ChannelFixture> {
  const accounts = await testAccounts(context, 1 + moderators + readers, { devices });
  const [owner, ...others] = accounts as [TestAccount, ...TestAccount[]];
  const chosen = others.slice(0, moderators);
  const named = moderators === 0 ? {} : { moderators: chosen.map(({ account }) => account.id) };
  const channel = await TestChannel.create(context, owner, { ...named, ...overrides });
  return { context, channel, owner, moderators: chosen, readers: others.slice(moderators) };
}
