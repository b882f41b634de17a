/** Clients of a channel that accept only what verifies. */
import {
  type ChannelDescriptor,
  type ChannelPage,
  type ChannelProjection,
  checkChannelPageBounds,
  emptyProjection,
  projectChannel,
  type VerifiedChannelEvent,
  verifyChannelPage,
  verifyChannelResolution,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import type { ReadRange, TestChannel } from '../../fixtures/channel.ts';
import { network } from '../../support/in-process-relay.ts';
import { type Reference, textOf } from './reference.ts';

export interface ModelChannel {
  readonly channel: TestChannel;
  readonly relayId: string;
  readonly model: Reference;
}

/** Reads and verifies a page; missing descriptors come from the host (06 §10.1). */
async function readPage(
  { channel, relayId }: ModelChannel,
  range: ReadRange,
  descriptors: Map<number, ChannelDescriptor>,
): Promise<{ readonly events: readonly VerifiedChannelEvent[]; readonly page: ChannelPage }> {
  const page = await channel.read(range);
  checkChannelPageBounds(page, range);
  const known = { channelId: channel.channelId, relayId, descriptors };
  for (const revision of verifyChannelPage(network, page, known).missing) {
    const answer = await channel.resolve(revision);
    descriptors.set(revision, verifyChannelResolution(network, answer, { ...known, revision }));
  }
  const verified = verifyChannelPage(network, page, known);
  expect(verified.refused).toEqual([]);
  expect(verified.events).toHaveLength(page.events.length);
  // Each certificate belongs to a device that signed an event of the page.
  const signers = new Set(page.events.map(({ signer_device_id }) => signer_device_id));
  expect(page.certificates).toHaveLength(signers.size);
  for (const [revision, descriptor] of verified.descriptors) descriptors.set(revision, descriptor);
  return { events: verified.events, page };
}

/** A client that follows the channel, and so also has events that the host has removed. */
export class Follower {
  readonly #source: ModelChannel;
  readonly #descriptors = new Map<number, ChannelDescriptor>();
  #projection: ChannelProjection = emptyProjection;

  constructor(source: ModelChannel) {
    this.#source = source;
  }

  async sync(limit: number): Promise<void> {
    const { model } = this.#source;
    for (let isMore = true; isMore; ) {
      const range = { after: this.#projection.position, limit };
      const { events, page } = await readPage(this.#source, range, this.#descriptors);
      this.#projection = projectChannel(this.#projection, events);
      isMore = page.has_more;
    }
    const { descriptor, posts } = this.#projection;
    expect(descriptor).toEqual(model.descriptor);
    for (const post of model.posts) {
      const own = posts.get(post.sequence);
      if (!post.isGone) expect(own && canonicalJson(own.state)).toBe(textOf(post.state));
      // A deletion that was removed too is not visible any more (06 §7.5).
      else if (post.deletion?.isGone === false) expect(own).toBeUndefined();
    }
  }
}

/** Reads everything as a new client does: forwards, and backwards from the end. */
export async function readLate(source: ModelChannel, limit: number): Promise<void> {
  const forwards: VerifiedChannelEvent[] = [];
  const known = new Map<number, ChannelDescriptor>();
  for (let isMore = true; isMore; ) {
    const range = { after: forwards.at(-1)?.sequence ?? -1, limit };
    const { events, page } = await readPage(source, range, known);
    forwards.push(...events);
    isMore = page.has_more;
  }
  const backwards: VerifiedChannelEvent[] = [];
  const alsoKnown = new Map<number, ChannelDescriptor>();
  for (let isMore = true; isMore; ) {
    const first = backwards[0];
    const range = { ...(first && { before: first.sequence }), limit };
    const { events, page } = await readPage(source, range, alsoKnown);
    backwards.unshift(...events);
    isMore = page.has_more;
  }
  expect(backwards).toEqual(forwards);
  const { descriptor, posts } = projectChannel(emptyProjection, forwards);
  const states = [...posts].map(([sequence, { state }]) => [sequence, canonicalJson(state)]);
  const { model } = source;
  expect(descriptor).toEqual(model.descriptor);
  expect(states).toEqual(
    model.readablePosts.map(({ sequence, state }) => [sequence, textOf(state)]),
  );
}
