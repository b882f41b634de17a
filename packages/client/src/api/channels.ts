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
import {
  type ChannelFacts,
  closeChannel,
  createChannel,
  type NewChannelFacts,
  updateChannel,
} from '../channels/descriptors/change-channel.ts';
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
  deletePost,
  editPost,
  publish,
  type SentToChannel,
} from '../channels/posts/write-post.ts';
import {
  type ChannelEntry,
  type ChannelPostEntry,
  listChannelEntries,
  listPosts,
} from '../channels/timeline/channel-entries.ts';
import {
  type ChannelPreview,
  currentDescriptor,
  previewChannel,
  readChannelBuffered,
  readOlderPage,
} from '../channels/timeline/read-channel.ts';
import type { AccountCore } from '../core.ts';
import { checkInput } from '../errors.ts';
import type { ChannelAccountEvent } from '../events.ts';
import { type TimeLimit, withTimeLimit } from '../sync/budget.ts';
import { collectEvents } from '../sync/collect-events.ts';
import type { EntryRange } from '../sync/timeline-range.ts';
import { type Abortable, signalOf } from './options.ts';

/** A channel as this device knows it. */
export interface Channel {
  readonly id: string;
  /** Relay ID of the host. */
  readonly relayId: string;
  readonly followState: FollowState;
  /** Verified; of the highest revision this device has seen. */
  readonly descriptor: ChannelDescriptor;
  /** What the own account may do in it. */
  readonly role: 'owner' | 'moderator' | 'reader';
  /** The part of its timeline that is here; absent before the first read. */
  readonly span?: ChannelSpan;
  /** Its address as one word of text, for a link or a QR code. */
  readonly link: string;
}

/**
 * Channels: public, signed timelines on one relay each. What a host says is verified before it is
 * used; order and times are its word (06 §1).
 *
 * @example
 * const channel = await account.channels.create({ name: 'Release notes' });
 * await account.channels.post(channel.id, { text: 'Version 1.0 is out' });
 * await other.channels.follow(channel.link);
 * for (const { content } of await other.channels.posts(channel.id)) show(content.body);
 */
export class Channels {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /** Every channel that is followed, and the own ones, from the store. */
  async list(): Promise<Channel[]> {
    const rows = await this.#core.store.read((tx) => channelRows(tx));
    return rows
      .map((row) => this.#channelOf(row))
      .filter(({ followState, role }) => followState !== 'left' || role === 'owner');
  }

  /** @throws ClientError `unknown_channel` */
  async get(channelId: string): Promise<Channel> {
    const row = await this.#core.store.read((tx) => requireChannel(tx, channelId));
    return this.#channelOf(row);
  }

  /**
   * Creates a channel at a host that it never leaves, and follows it.
   * @throws ClientError `invalid_input`; `no_relay` where the relay hosts no channels
   */
  async create(facts: NewChannelFacts, options: Abortable = {}): Promise<Channel> {
    const id = await createChannel(this.#core, facts, signalOf(options));
    await readChannelBuffered(this.#core, id, signalOf(options));
    return await this.get(id);
  }

  /**
   * Signs the next revision of the descriptor; what is left out stays, `null` removes.
   * @throws ClientError `unknown_channel`, `not_permitted` for all but the owner, `invalid_input`
   */
  async update(channelId: string, facts: ChannelFacts, options: Abortable = {}): Promise<Channel> {
    await updateChannel(this.#core, { channelId, facts }, signalOf(options));
    return await this.get(channelId);
  }

  /** Closes the channel for good. @throws ClientError `unknown_channel`, `not_permitted` */
  async close(channelId: string, options: Abortable = {}): Promise<Channel> {
    await closeChannel(this.#core, channelId, signalOf(options));
    return await this.get(channelId);
  }

  /**
   * Publishes a post. Where the host's answer is lost it is kept, and goes out again unchanged with
   * `sync`.
   *
   * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
   * @throws RelayRefused, RelayUnreachable
   */
  async post(
    channelId: string,
    draft: ChannelDraft,
    options: Abortable = {},
  ): Promise<SentToChannel> {
    return await publish(this.#core, { channelId, draft }, signalOf(options));
  }

  /**
   * Changes a post, whoever wrote it; what is left out stays, `null` removes. Where the answer is
   * lost, the timeline is read to learn what became of it.
   *
   * @param sequence of the post
   * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
   * @throws RelayRefused, RelayUnreachable
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
   * Deletes a post, whoever wrote it, with all its edits. It cannot be undone.
   *
   * @param options.reason public, and part of what is signed
   * @throws ClientError `unknown_channel`, `not_permitted`, `invalid_input`
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
   * Reports a post to the host's operator; nobody else sees it. Another report of the same post
   * replaces the first.
   *
   * @throws ClientError `unknown_channel`, `invalid_input`; RelayRefused
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
   * Follows a channel: its host is asked for the descriptor, and `sync` and `follow` of the account
   * read what happens in it. Reading begins with the latest page; `older` reads further back.
   *
   * @param address a link, or the IDs of channel and host; nothing in it is believed
   * @param options.from `creation` reads the whole timeline instead
   * @throws ClientError `verification_failed`, `no_relay`
   * @throws RelayRefused `not_found`, RelayMisbehaviour
   */
  async follow(
    address: string | ChannelAddress,
    options: { readonly from?: FollowFrom } & Abortable = {},
  ): Promise<Channel> {
    const place = channelRefOf(this.#core, address);
    const { from = 'latest' } = options;
    await followChannel(this.#core, place, { from, signal: signalOf(options) });
    await readChannelBuffered(this.#core, place.channel_id, signalOf(options));
    return await this.get(place.channel_id);
  }

  /**
   * Reads a channel no more and removes what was read of it. An own channel stays in the list.
   * @throws ClientError `unknown_channel`
   */
  async unfollow(channelId: string): Promise<void> {
    await unfollowChannel(this.#core, channelId);
  }

  /**
   * Asks a host for the current descriptor of a channel, verified.
   * @throws ClientError `verification_failed`, `no_relay`; RelayRefused `not_found`
   */
  async preview(
    address: string | ChannelAddress,
    options: Abortable = {},
  ): Promise<ChannelDescriptor> {
    const place = channelRefOf(this.#core, address);
    return await currentDescriptor(this.#core, place, signalOf(options));
  }

  /** Catches one channel up and sends what waits for it. @returns what happened */
  async sync(channelId: string, options: Abortable = {}): Promise<ChannelAccountEvent[]> {
    const core = this.#core;
    const row = await core.store.read((tx) => requireChannel(tx, channelId));
    const read = (limit: TimeLimit) => catchUpChannel(core, row, limit);
    return await collectEvents(withTimeLimit(core, signalOf(options), read));
  }

  /**
   * Reads one page before everything that is here.
   * @returns whether there is more before it
   */
  async older(channelId: string, options: Abortable = {}): Promise<boolean> {
    return await readOlderPage(this.#core, channelId, signalOf(options));
  }

  /**
   * The timeline as far as it is here: posts, revisions, deletions, what was refused, and gaps;
   * oldest first.
   */
  async entries(channelId: string, range: EntryRange = {}): Promise<ChannelEntry[]> {
    return await this.#core.store.read((tx) => listChannelEntries(tx, channelId, range));
  }

  /** The posts of it, as their edits left them; oldest first. */
  async posts(
    channelId: string,
    range: Omit<EntryRange, 'limit'> = {},
  ): Promise<ChannelPostEntry[]> {
    return await this.#core.store.read((tx) => listPosts(tx, channelId, range));
  }

  /**
   * Reads one page of any channel from its host, at any position, and keeps nothing of it: the
   * latest page, or what lies `before` or `after` a sequence.
   *
   * @throws ClientError `verification_failed`, `no_relay`
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   */
  async read(
    address: string | ChannelAddress,
    options: ChannelRange & Abortable = {},
  ): Promise<ChannelPreview> {
    const { signal, ...range } = options;
    const place = channelRefOf(this.#core, address);
    return await previewChannel(this.#core, place, { range, signal: signalOf({ signal }) });
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
