import type { RelayContext } from '../context.ts';
import type { Notice } from '../dispatch/notice.ts';
import { readEnds } from '../sessions/session-store.ts';
import { FairScheduler, pauseAfter } from './fair-scheduler.ts';
import { channelTimelineHint } from './hint.ts';
import type { Listener } from './listener.ts';
import { applySessionEnd, RecheckQueue, recheckBatchSize } from './recheck-queue.ts';
import { SubscriberMap, type Subscribers, type TopicListeners } from './subscribers.ts';

type ChannelNotice = Extract<Notice, { channel: string }>;
type Context = Pick<RelayContext, 'clock' | 'log' | 'metrics' | 'sessions' | 'storage'>;

interface Channel extends Subscribers {
  isNotifying: boolean;
}

/**
 * Notifies the connections that subscribe to channels (06 §9.2). Every device session may read a
 * channel, so access is not checked; only while this process may not know which sessions ended is
 * each session checked in storage first. Nothing queues: posts during a notification are merged into one
 * hint with the last head.
 */
export class ChannelListeners implements TopicListeners, AsyncDisposable {
  readonly #context: Context;
  readonly #channels: SubscriberMap<Channel>;
  readonly #rechecks: RecheckQueue<Channel>;
  readonly #scheduler: FairScheduler;

  constructor(context: Context, scheduler = new FairScheduler(context.clock)) {
    this.#context = context;
    this.#scheduler = scheduler;
    this.#rechecks = new RecheckQueue(context, (channel) => this.#recheck(channel));
    this.#channels = new SubscriberMap(
      (empty): Channel => ({ ...empty, isNotifying: false }),
      (channel) => this.#rechecks.delete(channel),
    );
  }

  /** @see TopicListeners */
  get count(): number {
    return this.#channels.count;
  }

  /** @see TopicListeners */
  countOf(account: string): number {
    return this.#channels.countOf(account);
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
    const subscribers = this.#channels.join(listener, id, confirmedAt);
    // The subscribe call has just confirmed the caller's session.
    if (subscribers !== undefined) listener.hint(channelTimelineHint(id, subscribers.head));
  }

  /** @see TopicListeners */
  uncount(listener: Listener, subscriptions: number): void {
    this.#channels.uncount(listener, subscriptions);
  }

  /** @see TopicListeners */
  leave(listener: Listener, id: string): void {
    this.#channels.leave(listener, id);
  }

  /** Sends the hints of a notice to the channel's listeners in this process. */
  notify({ channel: id, head }: ChannelNotice): void {
    const channel = this.#channels.get(id);
    if (channel === undefined || head <= channel.head) return;
    channel.head = head;
    if (!channel.isNotifying) void this.#notifyAll(channel);
  }

  /** Lets the current recheck finish and starts no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#rechecks[Symbol.asyncDispose]();
  }

  async #notifyAll(channel: Channel): Promise<void> {
    channel.isNotifying = true;
    let mustRecheck = false;
    for (let told = -1; told < channel.head; ) {
      told = channel.head;
      const began = this.#context.clock.monotonic();
      const hint = channelTimelineHint(channel.id, told);
      await this.#scheduler.each(channel.listeners.keys(), (listener) => {
        // It may have left while it waited.
        if (!channel.listeners.has(listener)) return;
        if (this.#context.sessions.isCurrent) listener.hint(hint);
        else mustRecheck = true;
      });
      // Each hint makes followers read: leave half of the time to other calls.
      await pauseAfter(this.#context.clock, began);
    }
    channel.isNotifying = false;
    if (!mustRecheck) return;
    this.#rechecks.add(channel);
    this.#rechecks.start();
  }

  async #recheck({ id, head, listeners }: Channel): Promise<void> {
    const hint = channelTimelineHint(id, head);
    const unconfirmed = [...listeners.keys()];
    for (let start = 0; start < unconfirmed.length; start += recheckBatchSize) {
      if (this.#rechecks.isStopping) return;
      const batch = unconfirmed.slice(start, start + recheckBatchSize);
      const seen = batch.map((listener) => ({ listener, session: listener.session.id }));
      const sessions = seen.map(({ session }) => session);
      const ends = await this.#context.storage.read((tx) => readEnds(tx, sessions));
      await this.#scheduler.each(seen, ({ listener, session }) => {
        if (!listeners.has(listener)) return;
        if (applySessionEnd(listener, session, ends)) listener.hint(hint);
      });
    }
  }
}
