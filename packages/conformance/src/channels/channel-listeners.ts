/** People who listen to channels over WSS, and what they hear (06 §9). */

import { assertConforms } from '../assert.ts';
import type { TestAccount } from '../fixtures/test-context.ts';
import type { WssCaller } from '../transport/caller.ts';
import { lastEvent } from './channel-reader.ts';
import type { TestChannel } from './test-channel.ts';

const hint = 'channel.timeline.changed';

/** Somebody on the connection of their caller. */
export type Subscriber = Pick<TestAccount, 'caller'>;

/** Replaces somebody's subscriptions by these channels. */
export async function subscribeChannels(
  { caller }: Subscriber,
  channels: readonly Pick<TestChannel, 'channelId'>[],
): Promise<void> {
  const channel_ids = channels.map(({ channelId }) => channelId);
  const answer = await caller.call('channel.subscribe', { channel_ids });
  assertConforms(answer.ok, `channel.subscribe succeeds, not ${answer.ok ? '' : answer.code}`);
}

/** The head that somebody's next hint tells of a channel. */
export async function nextHead({ caller }: Subscriber, channel: TestChannel): Promise<number> {
  const params = await (caller as WssCaller).notification(hint, 10_000);
  assertConforms(params.channel_id === channel.channelId, 'a hint names the channel it is about');
  return Number(params.head);
}

/** What somebody is to hear of. */
export interface ExpectedHead {
  readonly channel: TestChannel;
  readonly head: number;
  /** Whether no hint of an earlier head may come. */
  readonly alone?: boolean;
}

/**
 * Waits until somebody has heard of a head. Hints may be repeated and merged (06 §9.2), but none
 * may come before the event it is about.
 */
export async function waitForHead(
  by: Subscriber,
  { channel, head, alone = false }: ExpectedHead,
): Promise<void> {
  for (let told = -1; told !== head; ) {
    told = await nextHead(by, channel);
    assertConforms(told <= head, 'no hint of what there is not');
    assertConforms(!alone || told === head, 'no hint without an event');
  }
}

/** Appends an event; says the head. */
export async function appendEvent(channel: TestChannel): Promise<number> {
  await channel.post();
  return (await lastEvent(channel)).sequence;
}
