/** What the people of a channel sign: its descriptors, posts, edits and deletions. */
import { nodeRandom } from '@posthouse/primitives-node';
import {
  canonicalJson,
  deriveChannelId,
  encodeBase64url,
  type JsonObject,
  type JsonValue,
  newMessageId,
  signAsDevice,
} from '@posthouse/protocol';
import { unixSeconds } from '../fixtures/account.ts';
import type { Resident, Stage } from '../fixtures/test-context.ts';

/** Who signs: a device of somebody, whoever calls with it. */
export type Signing = Pick<Resident, 'device'>;

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
export class ChannelPapers {
  readonly stage: Stage;
  readonly owner: Resident;
  /** The parameters of `channel.create`. */
  readonly creation: JsonObject;
  /** The descriptor that these people think is in force. */
  current: JsonObject;

  protected constructor(stage: Stage, owner: Resident, facts: JsonObject) {
    this.stage = stage;
    this.owner = owner;
    this.creation = this.#found(facts);
    this.current = this.creation;
  }

  #found(facts: JsonObject): JsonObject {
    const now = unixSeconds();
    const named = {
      nonce: encodeBase64url(nodeRandom(16)),
      creator: this.owner.account.id,
      relay_id: this.stage.relayId,
      ...facts,
    };
    return this.sign({
      $type: this.stage.network.type('channel.descriptor'),
      channel_id: deriveChannelId(this.stage.network, named),
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
    return String(this.creation.channel_id);
  }

  get revision(): number {
    return Number(this.current.revision);
  }

  /** Signs an object as it is. */
  sign(object: JsonObject, { device }: Signing = this.owner): JsonObject {
    return signAsDevice(this.stage.network, withoutUndefined(object), device.signer);
  }

  /** The parameters of `channel.update`: the current descriptor, one revision further. */
  revised(facts: JsonObject = {}, by: Signing = this.owner): JsonObject {
    const changes = { revision: this.revision + 1, updated_at: unixSeconds() };
    return this.sign({ ...this.current, ...changes, ...facts }, by);
  }

  /** The final descriptor that a close request amounts to (06 §8.5). */
  final(facts: JsonObject = {}, by: Signing = this.owner): JsonObject {
    return this.revised({ status: 'closed', ...facts }, by);
  }

  /** The parameters of `channel.close`. */
  closing(facts: JsonObject = {}, by: Signing = this.owner): JsonObject {
    const { channel_id, revision, updated_at, device_signature } = this.final(facts, by);
    return withoutUndefined({ channel_id, revision, updated_at, device_signature });
  }

  /** The parameters of `channel.post`. */
  publication(facts: JsonObject = {}, by: Signing = this.owner): JsonObject {
    const message_id = newMessageId(nodeRandom);
    const own = { message_id, body: textBody('Version 1.0 is out') };
    return this.#content('channel.post', { ...own, ...facts }, by);
  }

  /** The parameters of `channel.post.edit`; nothing is changed but by the facts. */
  patch(target_sequence: JsonValue, facts: JsonObject, by: Signing = this.owner): JsonObject {
    return this.#content('channel.post.edit', { target_sequence, ...facts }, by);
  }

  /** The parameters of `channel.post.delete`. */
  deletion(target_sequence: JsonValue, facts: JsonObject = {}, by: Signing = this.owner) {
    return this.#content('channel.post.delete', { target_sequence, ...facts }, by);
  }

  /** The parameters of `channel.post.report`, which nobody signs. */
  complaint(target_sequence: JsonValue, facts: JsonObject = {}): JsonObject {
    return { channel_id: this.channelId, target_sequence, reason: 'spam', ...facts };
  }

  #content(kind: string, facts: JsonObject, by: Signing): JsonObject {
    const $type = this.stage.network.type(kind);
    return this.sign({ $type, channel_id: this.channelId, ...facts }, by);
  }
}

/**
 * An object that is exactly so long as Canonical JSON, by a text in an unknown member.
 * @param make signs the object with this text
 */
export function filledTo(bytes: number, make: (filling: string) => JsonObject): JsonObject {
  return make('x'.repeat(bytes - Buffer.byteLength(canonicalJson(make('')))));
}
