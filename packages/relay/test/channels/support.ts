/** A channel for tests: its current descriptor, and signed calls of its accounts. */

import {
  type ChannelChange,
  type ChannelClose,
  type ChannelDescriptor,
  type ChannelPage,
  type ChannelPost,
  type ChannelPostDelete,
  type ChannelPostEdit,
  type ChannelResolution,
  type ContentReference,
  encodeBase64url,
  type NewChannel,
  type PostState,
  ProtocolError,
  signAsDevice,
  signChannelClose,
  signChannelDescriptor,
  signChannelUpdate,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { expect } from 'vitest';
import { network } from '../support/modules.ts';
import type { Ground, Person } from '../support/people.ts';
import type { World } from '../support/world.ts';

/** The device that signs and calls; by default the owner's phone. */
export interface By {
  readonly by?: Person;
  readonly device?: string;
}

/** The part of the timeline to read. */
export interface ReadRange {
  readonly before?: number;
  readonly after?: number;
  readonly limit?: number;
}

/** Makes a body of plain text. */
export const text = (words: string) => ({ content_type: 'text/plain', text: words });

/** Makes an attachment that is never fetched; each call makes another. */
export function attachment(): ContentReference {
  return {
    uri: 'https://files.example/1',
    hash: `sha256:${encodeBase64url(nodeRandom(32))}`,
    content_type: 'image/png',
    size: 1,
  };
}

/**
 * A channel with its current descriptor. Methods named after an act make the call and update the
 * descriptor; those named after an object only sign it, so that a test can change it first.
 *
 * @example
 * const channel = await TestChannel.create(world, ann, { moderators: [ben.account] });
 * const sequence = await channel.post({ body: text('hello') }, { by: ben });
 * await channel.edit(sequence, { body: text('hello all') });
 * const post = { ...channel.newPost({ body: text('hi') }), message_id: 'wrong' };
 * await world.codeOf('channel.post', post, { session: ann.session() });
 */
export class TestChannel {
  readonly channelId: string;
  readonly owner: Person;
  /** The current descriptor, as far as it was written through this object. */
  descriptor: ChannelDescriptor;
  readonly #world: Ground;

  private constructor(world: Ground, owner: Person, descriptor: ChannelDescriptor) {
    this.#world = world;
    this.owner = owner;
    this.descriptor = descriptor;
    this.channelId = descriptor.channel_id;
  }

  /** Calls `channel.create`; unknown members of `facts` stay in the descriptor. */
  static async create(
    world: Ground,
    owner: Person,
    facts: Partial<NewChannel> & JsonObject = {},
  ): Promise<TestChannel> {
    const channel = TestChannel.draft(world, owner, facts);
    await world.call('channel.create', channel.descriptor, { session: owner.session() });
    return channel;
  }

  /** Signs a first descriptor without calling `channel.create`. */
  static draft(
    world: Ground,
    owner: Person,
    facts: Partial<NewChannel> & JsonObject = {},
  ): TestChannel {
    const descriptor = signChannelDescriptor(network, owner.device().signer, {
      creator: owner.account,
      relay_id: world.relayId,
      nonce: encodeBase64url(nodeRandom(16)),
      name: 'Release notes',
      created_at: world.clock.now(),
      ...facts,
    });
    return new TestChannel(world, owner, descriptor);
  }

  /** Signs any object with a device. */
  sign<T extends JsonObject>(object: T, { by = this.owner, device = 'phone' }: By = {}) {
    return signAsDevice(network, object, by.device(device).signer);
  }

  /** Signs the next descriptor. */
  nextDescriptor(
    change: Partial<ChannelChange> & JsonObject,
    { by = this.owner, device = 'phone' }: By = {},
  ): ChannelDescriptor {
    return signChannelUpdate(network, by.device(device).signer, {
      current: this.descriptor,
      change: { updated_at: this.#world.clock.now(), ...change },
    });
  }

  /** Calls `channel.update`. */
  async update(change: Partial<ChannelChange> & JsonObject, by: By = {}): Promise<void> {
    const descriptor = this.nextDescriptor(change, by);
    await this.#call('channel.update', descriptor, by);
    this.descriptor = descriptor;
  }

  /** Signs parameters of `channel.close`. */
  closure({ by = this.owner, device = 'phone' }: By = {}): ChannelClose {
    return signChannelClose(network, by.device(device).signer, {
      current: this.descriptor,
      updatedAt: this.#world.clock.now(),
    });
  }

  async close(by: By = {}): Promise<void> {
    const closure = this.closure(by);
    await this.#call('channel.close', closure, by);
    this.descriptor = { ...this.descriptor, ...closure, status: 'closed' };
  }

  /** Signs a post; by default with a text body. */
  newPost(
    facts: Partial<ChannelPost> & JsonObject = { body: text('Version 1.0 is out') },
    by: By = {},
  ): ChannelPost {
    const post = {
      $type: network.type('channel.post'),
      channel_id: this.channelId,
      message_id: `msg_${encodeBase64url(nodeRandom(16))}`,
      ...facts,
    };
    return this.sign(post, by);
  }

  /** Calls `channel.post` with a new post; returns the sequence. */
  async post(facts?: Partial<ChannelPost> & JsonObject, by: By = {}): Promise<number> {
    return await this.publish(this.newPost(facts, by), by);
  }

  /** Calls `channel.post` with a signed post; returns the sequence. */
  async publish(post: ChannelPost, by: By = {}): Promise<number> {
    const answer = await this.#call('channel.post', post, by);
    return (answer as { sequence: number }).sequence;
  }

  /** Signs an edit of a post. */
  newEdit(target: number, patch: Patch, by: By = {}): ChannelPostEdit {
    const edit = {
      $type: network.type('channel.post.edit'),
      channel_id: this.channelId,
      target_sequence: target,
      ...patch,
    };
    return this.sign(edit, by) as ChannelPostEdit;
  }

  /** Calls `channel.post.edit`. */
  async edit(target: number, patch: Patch, by: By = {}): Promise<void> {
    await this.#call('channel.post.edit', this.newEdit(target, patch, by), by);
  }

  /** Signs a deletion of a post. */
  newDeletion(target: number, facts: JsonObject = {}, by: By = {}): ChannelPostDelete {
    const deletion = {
      $type: network.type('channel.post.delete'),
      channel_id: this.channelId,
      target_sequence: target,
      ...facts,
    };
    return this.sign(deletion, by) as ChannelPostDelete;
  }

  /** Calls `channel.post.delete`. */
  async delete(target: number, facts: JsonObject = {}, by: By = {}): Promise<void> {
    await this.#call('channel.post.delete', this.newDeletion(target, facts, by), by);
  }

  /** Calls `channel.read`. */
  async read(range: ReadRange = {}, by: By = {}): Promise<ChannelPage> {
    const params = { channel_id: this.channelId, ...range };
    return (await this.#call('channel.read', params, by)) as unknown as ChannelPage;
  }

  /** Reads a page and returns its sequences. */
  async sequences(range: ReadRange = {}, by: By = {}): Promise<number[]> {
    return (await this.read(range, by)).events.map(({ sequence }) => sequence);
  }

  /** Calls `channel.resolve`. */
  async resolve(revision?: number, by: By = {}): Promise<ChannelResolution> {
    const params = { channel_id: this.channelId, ...(revision === undefined ? {} : { revision }) };
    return (await this.#call('channel.resolve', params, by)) as unknown as ChannelResolution;
  }

  async #call(method: string, params: object, { by = this.owner, device = 'phone' }: By) {
    return await this.#world.call(method, params, { session: by.session(device) });
  }
}

/** The members an edit changes; `null` removes one. */
export type Patch = { readonly [K in keyof PostState]?: PostState[K] | null } & JsonObject;

/**
 * Returns the code an act is refused with; checks that it changed no storage and sent no notice.
 * @example
 * expect(await refusal(world, () => channel.post({}, { by: eve }))).toBe('forbidden');
 */
export async function refusal(
  world: Pick<World, 'dump' | 'takeNotices'>,
  act: () => Promise<unknown>,
): Promise<string> {
  const before = await world.dump();
  world.takeNotices();
  const error: unknown = await act().then(
    () => 'ok',
    (thrown) => thrown,
  );
  expect(await world.dump()).toEqual(before);
  expect(world.takeNotices()).toEqual([]);
  return error instanceof ProtocolError ? error.code : String(error);
}

/** Reads the rows of a table. */
export async function rows(
  world: Pick<World, 'dump'>,
  table: string,
): Promise<readonly Record<string, unknown>[]> {
  return ((await world.dump())[table] ?? []) as Record<string, unknown>[];
}
