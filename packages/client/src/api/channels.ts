import {
  type ChannelDescriptor,
  type ChannelRange,
  checkChannelPostReport,
} from '@posthouse/protocol';
import { catchUpChannel } from '../channels/catch-up-channels.ts';
import {
  type ChannelRow,
  type ChannelSpan,
  channelRows,
  type FollowState,
  requireChannel,
} from '../channels/channel-rows.ts';
import type { ChannelFacts, NewChannelFacts } from '../channels/descriptors/change-channel.ts';
import {
  type ChannelAddress,
  channelLink,
  channelRefOf,
  type FollowFrom,
  followChannel,
  unfollowChannel,
} from '../channels/follow-channel.ts';
import {
  type ChannelDraft,
  type ChannelPatch,
  type ChannelPostStatus,
  cancelPost,
  deletePost,
  editPost,
  listWrittenPosts,
  postToChannel,
  publish,
  type SentToChannel,
  settledPost,
  type WrittenPost,
} from '../channels/posts/write-post.ts';
import { outgoingToChannel } from '../channels/send-waiting.ts';
import { listChannelEntries, listPosts } from '../channels/timeline/channel-entries.ts';
import type { ChannelEntry, ChannelPostEntry } from '../channels/timeline/channel-entry.ts';
import {
  type ChannelPreview,
  previewChannel,
  readChannelBuffered,
  readOlderPage,
} from '../channels/timeline/read-channel.ts';
import { buildConversations } from '../conversations/build-conversations.ts';
import type { ListOptions } from '../conversations/list-options.ts';
import type { AccountCore } from '../core.ts';
import { checkInput } from '../errors.ts';
import type { ChannelAccountEvent, MessageStatusEvent } from '../events.ts';
import { type TimeLimit, withTimeLimit } from '../sync/budget.ts';
import { checkDraftId, type NamedDraft } from '../sync/draft-outcomes.ts';
import { runToEnd } from '../sync/run-to-end.ts';
import { type Abortable, signalOf } from './options.ts';

/** A channel as this device knows it. */
export interface Channel {
  readonly id: string;
  /** Relay ID of the host. */
  readonly relayId: string;
  readonly followState: FollowState;
  /** Verified; of the highest revision this device has seen. */
  readonly descriptor: ChannelDescriptor;
  /** The own account's role. */
  readonly role: 'owner' | 'moderator' | 'reader';
  /** The stored part of its timeline; absent before the first read. */
  readonly span?: ChannelSpan;
  /** Its address as one word of text, also for a QR code. */
  readonly link: string;
}

/**
 * Channels: public, signed timelines, each on one relay. A host's answers are verified before they
 * are used; order and times are the host's claims (06 §1).
 *
 * @example
 * const channel = await account.channels.create({ name: 'Release notes' });
 * await account.channels.send(channel.id, { text: 'Version 1.0 is out' });
 * await other.channels.follow(channel.link);
 * for (const { body } of await other.channels.listPosts(channel.id)) console.log(body?.text);
 */
export class Channels {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Lists the followed channels and the own ones, from the store.
   *
   * @example
   * const names = (await account.channels.list()).map(({ descriptor }) => descriptor.name);
   */
  async list(): Promise<Channel[]> {
    const rows = await this.#core.store.read((tx) => channelRows(tx));
    return rows
      .map((row) => this.#channelOf(row))
      .filter(({ followState, role }) => followState !== 'left' || role === 'owner');
  }

  /**
   * Reads one stored channel.
   *
   * @throws ClientError `unknown_channel`
   * @example
   * const { role, followState } = await account.channels.get(channelId);
   */
  async get(channelId: string): Promise<Channel> {
    const row = await this.#core.store.read((tx) => requireChannel(tx, channelId));
    return this.#channelOf(row);
  }

  /**
   * Creates a channel and follows it. Its host never changes.
   *
   * @throws ClientError `invalid_input`; `no_relay` if the relay does not host channels
   * @example
   * const { id, link } = await account.channels.create({ name: 'News', moderators: [bob] });
   */
  async create(facts: NewChannelFacts, options: Abortable = {}): Promise<Channel> {
    const { createChannel } = await this.#core.later();
    const id = await createChannel(this.#core, facts, signalOf(options));
    await readChannelBuffered(this.#core, id, signalOf(options));
    return await this.get(id);
  }

  /**
   * Signs the next revision of the descriptor. An absent member stays, `null` removes it.
   *
   * @throws ClientError `unknown_channel`, `not_permitted` for all but the owner, `invalid_input`
   * @example
   * await account.channels.update(channelId, { description: null, moderators: [bob] });
   */
  async update(channelId: string, facts: ChannelFacts, options: Abortable = {}): Promise<Channel> {
    const { updateChannel } = await this.#core.later();
    await updateChannel(this.#core, { channelId, facts }, signalOf(options));
    return await this.get(channelId);
  }

  /**
   * Closes the channel for good.
   *
   * @throws ClientError `unknown_channel`, `not_permitted` for all but the owner
   * @example
   * await account.channels.close(channelId);
   */
  async close(channelId: string, options: Abortable = {}): Promise<Channel> {
    const { closeChannel } = await this.#core.later();
    await closeChannel(this.#core, channelId, signalOf(options));
    return await this.get(channelId);
  }

  /**
   * Stores a post; it is sent in the background, and by `sync` and `follow`, in the order of these
   * calls. A draft with a `draftId` is posted once at most: see `conversations.withdrawDraft`.
   *
   * @throws ClientError `unknown_channel`, `not_permitted` for a closed channel, `invalid_input`;
   *   never for being offline
   * @example
   * const posted = await account.channels.post(channelId, { text: 'Round one: a draw.' });
   * console.log(posted.status); // waiting
   */
  async post(channelId: string, draft: ChannelDraft & NamedDraft): Promise<ChannelPostStatus> {
    checkDraftId(draft);
    const messageId = await postToChannel(this.#core, channelId, draft);
    const { lane, work } = outgoingToChannel(this.#core, channelId);
    this.#core.sender.start(lane, work);
    return { channelId, messageId, status: 'waiting' };
  }

  /**
   * Waits until a post of this device has the host's answer.
   *
   * @returns its status, with the `sequence` if it was accepted, or an `error`
   * @throws ClientError `invalid_input` for an unknown post, also one before the last 10,000 that
   *   ended in groups and channels; RelayRefused, RelayMisbehaviour if it
   *   may still be sent; RelayUnreachable with `kept`
   * @example
   * const posted = await account.channels.post(channelId, { text: 'Round one: a draw.' });
   * const { status, sequence } = await account.channels.settled(posted);
   */
  async settled(
    key: { readonly channelId: string; readonly messageId: string },
    options: Abortable = {},
  ): Promise<ChannelPostStatus> {
    return await settledPost(this.#core, key, signalOf(options));
  }

  /**
   * Cancels a post that was not sent yet; one that was rejected or failed is not listed any more.
   *
   * @throws ClientError `already_sent`; `invalid_input` for an unknown post
   * @example
   * const posted = await account.channels.post(channelId, { text: 'Round one: a draw.' });
   * await account.channels.cancel(posted).catch(() => console.log('too late'));
   */
  async cancel(key: {
    readonly channelId: string;
    readonly messageId: string;
  }): Promise<ChannelPostStatus> {
    return await cancelPost(this.#core, key);
  }

  /**
   * Stores a post as `post` does, and waits for the host's answer. If there is none, it stays stored
   * and is sent again, unchanged.
   *
   * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
   * @throws RelayRefused; RelayUnreachable with `kept`
   * @example
   * const { sequence } = await account.channels.send(channelId, { text: 'Round one: a draw.' });
   */
  async send(
    channelId: string,
    draft: ChannelDraft,
    options: Abortable = {},
  ): Promise<SentToChannel> {
    return await publish(this.#core, { channelId, draft }, signalOf(options));
  }

  /**
   * Edits a post of any author. An absent member stays, `null` removes it. If the answer is lost,
   * the timeline is read to find out whether the edit took effect.
   *
   * @param sequence of the post
   * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
   * @throws RelayRefused, RelayUnreachable
   * @example
   * await account.channels.edit(channelId, 1, { text: 'Round one: Black wins.' });
   */
  async edit(
    channelId: string,
    sequence: number,
    options: ChannelPatch & Abortable,
  ): Promise<void> {
    const { signal, ...patch } = options;
    await editPost(this.#core, { channelId, sequence, patch }, signalOf({ signal }));
  }

  /**
   * Deletes a post of any author, with all its edits. It cannot be undone.
   *
   * @param options.reason public, and part of what is signed
   * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
   * @example
   * await account.channels.delete(channelId, 1, { reason: 'a typo' });
   */
  async delete(
    channelId: string,
    sequence: number,
    options: { readonly reason?: string | undefined } & Abortable = {},
  ): Promise<void> {
    const { reason } = options;
    const target = { channelId, sequence, ...(reason !== undefined && { reason }) };
    await deletePost(this.#core, target, signalOf(options));
  }

  /**
   * Reports a post to the host's operator only. A second report of the same post replaces the
   * first.
   *
   * @throws ClientError `unknown_channel`, `invalid_input`; RelayRefused
   * @example
   * await account.channels.report(channelId, 1, { reason: 'spam' });
   */
  async report(
    channelId: string,
    sequence: number,
    options: { readonly reason: string } & Abortable,
  ): Promise<void> {
    const { relay_id } = await this.#core.store.read((tx) => requireChannel(tx, channelId));
    const params = {
      channel_id: channelId,
      target_sequence: sequence,
      reason: options.reason,
    };
    checkInput('report', () => checkChannelPostReport(params, Number.POSITIVE_INFINITY));
    const signal = signalOf(options);
    await this.#core.relay(relay_id).call('channel.post.report', params, { signal });
  }

  /**
   * Follows a channel: resolves its descriptor at the host; `sync` and `follow` of the account then
   * read its timeline. Reading begins with the latest page; `readOlder` reads earlier pages.
   *
   * @param address a link, or the IDs of channel and host; nothing in it is trusted
   * @param options.from `creation` reads the whole timeline instead
   * @throws ClientError `verification_failed`, `no_relay`
   * @throws RelayRefused `not_found`, RelayMisbehaviour
   * @example
   * const { id } = await account.channels.follow(link, { from: 'creation' });
   */
  async follow(
    address: string | ChannelAddress,
    options: { readonly from?: FollowFrom } & Abortable = {},
  ): Promise<Channel> {
    const channel = channelRefOf(this.#core, address);
    const { from = 'latest' } = options;
    await followChannel(this.#core, channel, { from, signal: signalOf(options) });
    await readChannelBuffered(this.#core, channel.channel_id, signalOf(options));
    return await this.get(channel.channel_id);
  }

  /**
   * Stops reading a channel and removes its timeline. An own channel stays in the list.
   *
   * @throws ClientError `unknown_channel`
   * @example
   * await account.channels.unfollow(channelId);
   */
  async unfollow(channelId: string): Promise<void> {
    await unfollowChannel(this.#core, channelId);
  }

  /**
   * Reads the descriptor and one page of any channel from its host, verified, and stores no entry:
   * the latest page, or the page `before` or `after` a sequence.
   *
   * @throws ClientError `verification_failed`, `no_relay`
   * @throws RelayRefused `not_found`; RelayUnreachable, RelayMisbehaviour
   * @example
   * const { descriptor, entries } = await account.channels.preview(link);
   * console.log(descriptor.name, entries.length);
   * const earlier = await account.channels.preview(link, { before: 100, limit: 10 });
   */
  async preview(
    address: string | ChannelAddress,
    options: ChannelRange & Abortable = {},
  ): Promise<ChannelPreview> {
    const { signal, ...range } = options;
    const channel = channelRefOf(this.#core, address);
    return await previewChannel(this.#core, channel, { range, signal: signalOf({ signal }) });
  }

  /**
   * Catches one channel up and sends its pending writes.
   *
   * @returns its events since the last call of this or of {@link Account.sync}
   * @example
   * for (const event of await account.channels.sync(channelId)) console.log(event.kind);
   */
  async sync(
    channelId: string,
    options: Abortable = {},
  ): Promise<(ChannelAccountEvent | MessageStatusEvent)[]> {
    const core = this.#core;
    const row = await core.store.read((tx) => requireChannel(tx, channelId));
    const read = (limit: TimeLimit) => catchUpChannel(core, row, limit);
    await core.events.drain();
    await runToEnd(core, withTimeLimit(core, signalOf(options), read));
    return await core.events.takeIf((event): event is ChannelAccountEvent | MessageStatusEvent =>
      event.kind === 'message-status'
        ? event.conversation.id === channelId
        : 'channelId' in event && event.channelId === channelId,
    );
  }

  /**
   * Reads one page before the stored part of the timeline.
   *
   * @returns whether there is more before it
   * @example
   * while (await account.channels.readOlder(channelId)) console.log('read one more page');
   */
  async readOlder(channelId: string, options: Abortable = {}): Promise<boolean> {
    return await readOlderPage(this.#core, channelId, signalOf(options));
  }

  /**
   * Lists the stored timeline: posts, revisions, deletions, refused events and gaps, oldest first
   * unless `newestFirst`. Positions are sequences.
   *
   * @throws ClientError `invalid_input`
   * @example
   * const latest = await account.channels.listEntries(channelId, { limit: 50, newestFirst: true });
   */
  async listEntries(channelId: string, options: ListOptions = {}): Promise<ChannelEntry[]> {
    return await this.#core.store.read((tx) => listChannelEntries(tx, channelId, options));
  }

  /**
   * Lists the stored posts in their edited state, oldest first unless `newestFirst`. Positions are
   * sequences.
   *
   * @throws ClientError `invalid_input`
   * @example
   * for (const { body } of await account.channels.listPosts(channelId)) console.log(body?.text);
   */
  async listPosts(channelId: string, options: ListOptions = {}): Promise<ChannelPostEntry[]> {
    await buildConversations(this.#core);
    return await this.#core.store.read((tx) => listPosts(tx, channelId, options));
  }

  /**
   * Lists the posts that this device wrote and that are not in the timeline, as `groups.listWritten`.
   * Edits and deletions are not among them.
   *
   * @example
   * for (const { status, body } of await account.channels.listWritten(channelId)) {
   *   console.log(status, body?.text);
   * }
   */
  async listWritten(channelId: string): Promise<WrittenPost[]> {
    return await this.#core.store.read((tx) => listWrittenPosts(this.#core, tx, channelId));
  }

  #channelOf(row: ChannelRow): Channel {
    const { account } = this.#core;
    const { channel_id: id, relay_id: relayId, standing, descriptor, span } = row;
    const isModerator = descriptor.moderators?.includes(account) === true;
    const role = descriptor.creator === account ? 'owner' : isModerator ? 'moderator' : 'reader';
    const link = channelLink(this.#core, row);
    return {
      id,
      relayId,
      followState: standing,
      descriptor,
      role,
      ...(span !== undefined && { span }),
      link,
    };
  }
}
