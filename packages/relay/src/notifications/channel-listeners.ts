import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { readEnds } from '../sessions/session-store.ts';
import { FairScheduler, pauseAfter } from './fair-scheduler.ts';
import { channelTimelineHint } from './hint.ts';
import type { Listener } from './listener.ts';
import { applySessionEnd, RecheckQueue, recheckBatchSize } from './recheck-queue.ts';
import { SubscriberMap, type Subscribers, type TopicListeners } from './subscribers.ts';

type ChannelNotice = Extract<Notice, { channel: string }>;
type Context = Pick<RelayContext, 'bus' | 'clock' | 'log' | 'metrics' | 'storage'>;

interface Channel extends Subscribers {
  isNotifying: boolean;
}

/**
 * The connections that subscribed channels, and what they hear (06 §9.2). Every device session may
 * read a channel, so that nobody's rights are looked up; only while notices of removed devices may
 * not arrive, storage says whose session still stands. Nothing queues: whatever is posted while
 * they are told becomes one hint with the last head.
 */
export class ChannelListeners implements TopicListeners, AsyncDisposable {
  readonly #context: Context;
  readonly #channels: SubscriberMap<Channel>;
  readonly #lookUps: RecheckQueue<Channel>;
  readonly #turns: FairScheduler;

  constructor(context: Context, turns = new FairScheduler()) {
    this.#context = context;
    this.#turns = turns;
    this.#lookUps = new RecheckQueue(context, (channel) => this.#confirmAll(channel));
    this.#channels = new SubscriberMap(
      (empty): Channel => ({ ...empty, isNotifying: false }),
      (channel) => this.#lookUps.delete(channel),
    );
  }

  /** @see TopicListeners */
  ids(): string[] {
    return this.#channels.ids();
  }

  /** @see TopicListeners */
  expect(ids: readonly string[]): Disposable {
    return this.#channels.expect(ids);
  }

  /** @see TopicListeners */
  join(listener: Listener, id: string, confirmedAt: number): void {
    const lacked = this.#channels.join(listener, id, confirmedAt);
    // Who calls was confirmed with the call.
    if (lacked !== undefined) listener.hint(channelTimelineHint(id, lacked.head));
  }

  /** @see TopicListeners */
  leave(listener: Listener, id: string): void {
    this.#channels.leave(listener, id);
  }

  /** Passes a notice on to whom it concerns here. */
  notify({ channel: id, head }: ChannelNotice): void {
    const channel = this.#channels.get(id);
    if (channel === undefined || head <= channel.head) return;
    channel.head = head;
    if (!channel.isNotifying) void this.#tellAll(channel);
  }

  /** Lets the look at storage under way finish and begins no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#lookUps[Symbol.asyncDispose]();
  }

  async #tellAll(channel: Channel): Promise<void> {
    channel.isNotifying = true;
    let isDoubted = false;
    for (let told = -1; told < channel.head; ) {
      told = channel.head;
      const began = this.#context.clock.monotonic();
      const hint = channelTimelineHint(channel.id, told);
      await this.#turns.each(channel.listeners.keys(), (listener) => {
        // It may have left while it waited for its turn.
        if (!channel.listeners.has(listener)) return;
        if (this.#context.bus.isConnected) listener.hint(hint);
        else isDoubted = true;
      });
      // Each hint makes followers read: a steady poster to thousands leaves others half of the time.
      await pauseAfter(this.#context.clock, began);
    }
    channel.isNotifying = false;
    if (!isDoubted) return;
    this.#lookUps.add(channel);
    this.#lookUps.start();
  }

  async #confirmAll({ id, head, listeners }: Channel): Promise<void> {
    const hint = channelTimelineHint(id, head);
    const doubtful = [...listeners.keys()];
    for (let start = 0; start < doubtful.length; start += recheckBatchSize) {
      if (this.#lookUps.isStopping) return;
      const some = doubtful.slice(start, start + recheckBatchSize);
      const seen = some.map((listener) => ({ listener, session: listener.session.id }));
      const sessions = seen.map(({ session }) => session);
      const ends = await this.#context.storage.read((tx) => readEnds(tx, sessions));
      await this.#turns.each(seen, ({ listener, session }) => {
        if (!listeners.has(listener)) return;
        if (applySessionEnd(listener, session, ends)) listener.hint(hint);
      });
    }
  }
}
