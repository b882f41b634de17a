/** What the people of a channel sign: its descriptors, posts, edits and deletions. */

import { deriveChannelId, encodeBase64url, newMessageId, signAsDevice } from '@posthouse/protocol';
import { canonicalJson, type JsonObject, type JsonValue } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { unixSeconds } from '../fixtures/account.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';

/** Who signs: a device of somebody, whoever calls with it. */
export type Signer = Pick<TestAccount, 'device'>;

/** Text as a body. */
export function textBody(text: string, content_type = 'text/plain'): JsonObject {
  return { content_type, text };
}

/** A reference to content that nobody has; each one is other content. */
export function attachment(facts: JsonObject = {}): JsonObject {
  const hash = encodeBase64url(nodeRandom(32));
  return {
    uri: `https://files.example/${hash}`,
    hash: `sha256:${hash}`,
    content_type: 'image/png',
    size: 17,
    ...facts,
  };
}

/** The object without the members that are `undefined`. */
export function withoutUndefined(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/**
 * Makes and signs the objects of one channel, without sending any. Who signs is the owner unless
 * said otherwise; facts given replace those of the usual object, right or wrong, and `undefined`
 * leaves a member out.
 */
export class ChannelObjects {
  readonly context: TestContext;
  readonly owner: TestAccount;
  /** The parameters of `channel.create`. */
  readonly createParams: JsonObject;
  /** The descriptor that these people think is in force. */
  current: JsonObject;

  protected constructor(context: TestContext, owner: TestAccount, facts: JsonObject) {
    this.context = context;
    this.owner = owner;
    this.createParams = this.#signCreation(facts);
    this.current = this.createParams;
  }

  #signCreation(facts: JsonObject): JsonObject {
    const now = unixSeconds();
    const named = {
      nonce: encodeBase64url(nodeRandom(16)),
      creator: this.owner.account.id,
      relay_id: this.context.relayId,
      ...facts,
    };
    return this.sign({
      $type: this.context.network.type('channel.descriptor'),
      channel_id: deriveChannelId(this.context.network, named),
      name: 'Release notes',
      revision: 0,
      status: 'active',
      created_at: now,
      updated_at: now,
      ...named,
      ...facts,
    });
  }

  get channelId(): string {
    return String(this.createParams.channel_id);
  }

  get revision(): number {
    return Number(this.current.revision);
  }

  /** Signs an object as it is. */
  sign(object: JsonObject, { device }: Signer = this.owner): JsonObject {
    return signAsDevice(this.context.network, withoutUndefined(object), device.signer);
  }

  /** The parameters of `channel.update`: the current descriptor, one revision further. */
  updateParams(facts: JsonObject = {}, by: Signer = this.owner): JsonObject {
    const changes = { revision: this.revision + 1, updated_at: unixSeconds() };
    return this.sign({ ...this.current, ...changes, ...facts }, by);
  }

  /** The final descriptor that a close request amounts to (06 §8.5). */
  finalDescriptor(facts: JsonObject = {}, by: Signer = this.owner): JsonObject {
    return this.updateParams({ status: 'closed', ...facts }, by);
  }

  /** The parameters of `channel.close`. */
  closeParams(facts: JsonObject = {}, by: Signer = this.owner): JsonObject {
    const { channel_id, revision, updated_at, device_signature } = this.finalDescriptor(facts, by);
    return withoutUndefined({ channel_id, revision, updated_at, device_signature });
  }

  /** The parameters of `channel.post`. */
  postParams(facts: JsonObject = {}, by: Signer = this.owner): JsonObject {
    const message_id = newMessageId(nodeRandom);
    const own = { message_id, body: textBody('Version 1.0 is out') };
    return this.#content('channel.post', { ...own, ...facts }, by);
  }

  /** The parameters of `channel.post.edit`; nothing is changed but by the facts. */
  editParams(target_sequence: JsonValue, facts: JsonObject, by: Signer = this.owner): JsonObject {
    return this.#content('channel.post.edit', { target_sequence, ...facts }, by);
  }

  /** The parameters of `channel.post.delete`. */
  deleteParams(target_sequence: JsonValue, facts: JsonObject = {}, by: Signer = this.owner) {
    return this.#content('channel.post.delete', { target_sequence, ...facts }, by);
  }

  /** The parameters of `channel.post.report`, which nobody signs. */
  reportParams(target_sequence: JsonValue, facts: JsonObject = {}): JsonObject {
    return { channel_id: this.channelId, target_sequence, reason: 'spam', ...facts };
  }

  #content(kind: string, facts: JsonObject, by: Signer): JsonObject {
    const $type = this.context.network.type(kind);
    return this.sign({ $type, channel_id: this.channelId, ...facts }, by);
  }
}

/**
 * An object that is exactly so long as Canonical JSON, by a text in an unknown member.
 * @param make signs the object with this text
 */
export function paddedTo(bytes: number, make: (filling: string) => JsonObject): JsonObject {
  return make('x'.repeat(bytes - Buffer.byteLength(canonicalJson(make('')))));
}
