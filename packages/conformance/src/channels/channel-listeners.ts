/** Accounts that subscribe to channels over WSS, and the hints they get (06 §9). */

import { assertConforms, assertEqual } from '../assert.ts';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { WssCaller } from '../transport/caller.ts';
import { lastEvent } from './channel-reader.ts';
import type { TestChannel } from './test-channel.ts';

const hint = 'channel.timeline.changed';

/** An account on its caller's connection. */
export type Subscriber = Pick<TestAccount, 'caller'>;

/** Replaces an account's subscriptions by these channels. */
export async function subscribeChannels(
  { caller }: Subscriber,
  channels: readonly Pick<TestChannel, 'channelId'>[],
): Promise<void> {
  const channel_ids = channels.map(({ channelId }) => channelId);
  const answer = await caller.call('channel.subscribe', { channel_ids });
  assertConforms(answer.ok, `channel.subscribe succeeds, not ${answer.ok ? '' : answer.code}`);
}

/** Waits for the next hint of a channel; returns its head. */
export async function nextHead({ caller }: Subscriber, channel: TestChannel): Promise<number> {
  const params = await (caller as WssCaller).notification(hint, 10_000);
  assertEqual(params.channel_id, channel.channelId, 'a hint names the channel it is about');
  return Number(params.head);
}

/** The head that a hint must name. */
export interface ExpectedHead {
  readonly channel: TestChannel;
  readonly head: number;
  /** Whether a hint of an earlier head is a violation. */
  readonly alone?: boolean;
}

/**
 * Waits until an account gets the hint of a head. Hints may be repeated and merged (06 §9.2), but a
 * hint must not come before its event.
 */
export async function waitForHead(
  by: Subscriber,
  { channel, head, alone = false }: ExpectedHead,
): Promise<void> {
  for (let hinted = -1; hinted !== head; ) {
    hinted = await nextHead(by, channel);
    assertConforms(hinted <= head, 'no hint of an event that does not exist');
    assertConforms(!alone || hinted === head, 'no hint without a new event');
  }
}

/** Appends an event; returns the new head. */
export async function appendEvent(channel: TestChannel): Promise<number> {
  await channel.post();
  return (await lastEvent(channel)).sequence;
}
