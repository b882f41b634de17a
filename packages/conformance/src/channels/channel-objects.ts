/** The signed objects of a channel: descriptors, posts, edits and deletions. */

import { deriveChannelId, encodeBase64url, newMessageId, signAsDevice } from '@posthouse/protocol';
import { canonicalJson, type JsonObject, type JsonValue } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { unixSeconds } from '../fixtures/account.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';

/** The signing device; the caller may be another one. */
export type Signer = Pick<TestAccount, 'device'>;

/** Makes a body with a text. */
export function textBody(text: string, content_type = 'text/plain'): JsonObject {
  return { content_type, text };
}

/** Makes an attachment that refers to content which does not exist; each has another hash. */
export function attachment(overrides: JsonObject = {}): JsonObject {
  const hash = encodeBase64url(nodeRandom(32));
  return {
    uri: `https://files.example/${hash}`,
    hash: `sha256:${hash}`,
    content_type: 'image/png',
    size: 17,
    ...overrides,
  };
}

/** Removes the members that are `undefined`. */
export function withoutUndefined(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/**
 * Makes and signs the objects of one channel without sending them. By default the owner signs.
 * `overrides` replace members of the usual object and may be invalid; `undefined` removes a member.
 */
export class ChannelObjects {
  readonly context: TestContext;
  readonly owner: TestAccount;
  /** The parameters of `channel.create`. */
  readonly createParams: JsonObject;
  /** The last descriptor that was sent through this object. */
  current: JsonObject;

  protected constructor(context: TestContext, owner: TestAccount, overrides: JsonObject) {
    this.context = context;
    this.owner = owner;
    this.createParams = this.#signCreation(overrides);
    this.current = this.createParams;
  }

  #signCreation(overrides: JsonObject): JsonObject {
    const now = unixSeconds();
    const named = {
      nonce: encodeBase64url(nodeRandom(16)),
      creator: this.owner.account.id,
      relay_id: this.context.relayId,
      ...overrides,
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
      ...overrides,
    });
  }

  get channelId(): string {
    return String(this.createParams.channel_id);
  }

  get revision(): number {
    return Number(this.current.revision);
  }

  /** Signs an object without changing it. */
  sign(object: JsonObject, { device }: Signer = this.owner): JsonObject {
    return signAsDevice(this.context.network, withoutUndefined(object), device.signer);
  }

  /** Builds the parameters of `channel.update`: the current descriptor with the next revision. */
  updateParams(overrides: JsonObject = {}, by: Signer = this.owner): JsonObject {
    const changes = { revision: this.revision + 1, updated_at: unixSeconds() };
    return this.sign({ ...this.current, ...changes, ...overrides }, by);
  }

  /** Builds the final descriptor that a close request stands for (06 §8.5). */
  finalDescriptor(overrides: JsonObject = {}, by: Signer = this.owner): JsonObject {
    return this.updateParams({ status: 'closed', ...overrides }, by);
  }

  /** Builds the parameters of `channel.close`. */
  closeParams(overrides: JsonObject = {}, by: Signer = this.owner): JsonObject {
    const { channel_id, revision, updated_at, device_signature } = this.finalDescriptor(
      overrides,
      by,
    );
    return withoutUndefined({ channel_id, revision, updated_at, device_signature });
  }

  /** Builds the parameters of `channel.post`. */
  postParams(overrides: JsonObject = {}, by: Signer = this.owner): JsonObject {
    const message_id = newMessageId(nodeRandom);
    const own = { message_id, body: textBody('Version 1.0 is out') };
    return this.#content('channel.post', { ...own, ...overrides }, by);
  }

  /** Builds the parameters of `channel.post.edit`, with `overrides` as the changes. */
  editParams(
    target_sequence: JsonValue,
    overrides: JsonObject,
    by: Signer = this.owner,
  ): JsonObject {
    return this.#content('channel.post.edit', { target_sequence, ...overrides }, by);
  }

  /** Builds the parameters of `channel.post.delete`. */
  deleteParams(target_sequence: JsonValue, overrides: JsonObject = {}, by: Signer = this.owner) {
    return this.#content('channel.post.delete', { target_sequence, ...overrides }, by);
  }

  /** Builds the parameters of `channel.post.report`, which are unsigned. */
  reportParams(target_sequence: JsonValue, overrides: JsonObject = {}): JsonObject {
    return { channel_id: this.channelId, target_sequence, reason: 'spam', ...overrides };
  }

  #content(kind: string, overrides: JsonObject, by: Signer): JsonObject {
    const $type = this.context.network.type(kind);
    return this.sign({ $type, channel_id: this.channelId, ...overrides }, by);
  }
}

/**
 * Pads an object to an exact number of bytes of Canonical JSON, with a text in an unknown member.
 * @param make signs the object with this text
 */
export function paddedTo(bytes: number, make: (filling: string) => JsonObject): JsonObject {
  return make('x'.repeat(bytes - Buffer.byteLength(canonicalJson(make('')))));
}
