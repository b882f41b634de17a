/** What the people of a group hold and sign: its secret, the head of its chain, their keys. */

import {
  clientSecretCommitment,
  createGroupInviteId,
  createGroupNonce,
  createGroupSecret,
  deriveGroupId,
  encodeBase64url,
  type GroupChainBodies,
  type GroupCreate,
  type GroupInvite,
  type GroupSecretBox,
  managementHash,
  newMessageId,
  sealClientSecret,
  sealGroupMessage,
  signAsDevice,
} from '@posthouse/protocol';
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { type Device, unixSeconds } from '../fixtures/account.ts';
import { signerOf } from '../fixtures/contacts.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';
import { KeyRing, type MemberKey } from './member-keys.ts';

/** A client secret, or what is to become one. */
export const newSecret = (): Uint8Array => createGroupSecret(nodeRandom);

/** Every chain body but the first. */
export type ChainBodyKind = Exclude<keyof GroupChainBodies, 'group.create'>;
/** What of a body is its own; more where a check wants something wrong in it. */
export type ChainBodyMembers = { readonly [name: string]: JsonValue };

/** The epoch a message is written in, and the secret its key comes from. */
export interface EpochSecret {
  readonly epoch: number;
  readonly applicationSecret: Uint8Array;
}

/**
 * Makes and signs the objects of one group, without sending any. Who signs is the owner unless
 * said otherwise; facts given replace those of the usual object, right or wrong.
 */
export class GroupObjects {
  readonly context: TestContext;
  readonly create: GroupCreate;
  readonly keys = new KeyRing();
  /** Digest of the last chain event these people wrote. */
  head: string;
  /** The client secret in force. */
  secret: Uint8Array;
  owner: TestAccount;

  protected constructor(context: TestContext, owner: TestAccount, facts: JsonObject) {
    this.context = context;
    this.owner = owner;
    this.secret = newSecret();
    this.keys.activate(owner.account.id, this.keys.make());
    this.create = this.#signCreation(facts);
    this.head = managementHash(context.network, this.create);
  }

  #signCreation(facts: JsonObject): GroupCreate {
    const { network, relayId: relay_id } = this.context;
    const account = this.owner.account.id;
    const nonce = createGroupNonce(nodeRandom);
    const group_id = deriveGroupId(network, { creator: account, nonce, relay_id });
    const body = {
      $type: network.type('group.create'),
      group_id,
      nonce,
      name: 'club',
      member_capacity: 8,
      invite_policy: 'administrators',
      owner: { account, member_encryption_public_key: this.keys.of(account).publicKey },
      client_secret_commitment: clientSecretCommitment(network, group_id, this.secret),
      ...facts,
    };
    return this.sign(body) as unknown as GroupCreate;
  }

  get groupId(): string {
    return this.create.group_id;
  }

  get commitment(): string {
    return this.commitmentTo(this.secret);
  }

  /** The parameters of `group.create`. */
  get createParams(): JsonObject {
    return { create: this.create, client_secret_box: this.box(this.owner) };
  }

  commitmentTo(secret: Uint8Array): string {
    return clientSecretCommitment(this.context.network, this.groupId, secret);
  }

  /** A box of the secret in force for an account's member key, or of and for others. */
  box(
    { account }: Pick<TestAccount, 'account'>,
    options: { readonly key?: MemberKey | undefined; readonly secret?: Uint8Array } = {},
  ): GroupSecretBox {
    const { key = this.keys.of(account.id), secret = this.secret } = options;
    const context = {
      group_id: this.groupId,
      account: account.id,
      member_encryption_public_key: key.publicKey,
      client_secret_commitment: this.commitmentTo(secret),
    };
    return sealClientSecret(this.context.network, context, { secret, random: nodeRandom });
  }

  /** Any object with a device's signature, which replaces one that is there. */
  sign<T extends JsonObject>(object: T, by: { readonly device: Device } = this.owner) {
    return signAsDevice(this.context.network, object, by.device.signer);
  }

  /** A chain body on the current head, signed. */
  chainBody(
    kind: ChainBodyKind,
    facts: ChainBodyMembers = {},
    by: TestAccount = this.owner,
  ): JsonObject {
    const $type = this.context.network.type(kind);
    const body = { $type, group_id: this.groupId, prev_hash: this.head, ...facts };
    return this.sign(body, by);
  }

  /** An invitation for anybody, for an hour, or with what is given. */
  invitation(facts: JsonObject = {}, by: TestAccount = this.owner): GroupInvite {
    const now = unixSeconds();
    const body = {
      $type: this.context.network.type('group.invite'),
      invite_id: createGroupInviteId(nodeRandom),
      group_id: this.groupId,
      inviter: by.account.id,
      created_at: now,
      expires_at: now + 3_600,
      ...facts,
    };
    return this.sign(body, by) as unknown as GroupInvite;
  }

  /** An application with a new key, which becomes the candidate of its account. */
  application(
    by: TestAccount,
    { invite_id }: Pick<GroupInvite, 'invite_id'>,
    facts: JsonObject = {},
  ): JsonObject {
    const { publicKey } = this.keys.propose(by.account.id);
    const body = {
      $type: this.context.network.type('group.application'),
      account: by.account.id,
      group_id: this.groupId,
      invite_id,
      member_encryption_public_key: publicKey,
      ...facts,
    };
    return this.sign(body, by);
  }

  /** Parameters that give people the keys they ask for, as new members or as members. */
  approvalParams(
    people: readonly Pick<TestAccount, 'account'>[],
    options: {
      readonly by?: TestAccount;
      readonly kind?: ApprovalKind;
      readonly facts?: ChainBodyMembers;
    } = {},
  ): JsonObject & { readonly approval: JsonObject } {
    const { by = this.owner, kind = 'group.application.approval', facts = {} } = options;
    const members = people.map(({ account }) => ({
      account: account.id,
      member_encryption_public_key: this.keys.candidate(account.id).publicKey,
    }));
    const boxes = people.map((person) => {
      const key = this.keys.candidate(person.account.id);
      return [person.account.id, this.box(person, { key })] as const;
    });
    return {
      approval: this.chainBody(kind, { members, ...facts }, by),
      client_secret_commitment: this.commitment,
      client_secret_boxes: Object.fromEntries(boxes),
    };
  }

  /** A request for a new member key, which becomes the candidate of its account. */
  recoveryRequest(by: TestAccount, facts: JsonObject = {}): JsonObject {
    const { publicKey } = this.keys.propose(by.account.id);
    const body = {
      $type: this.context.network.type('group.member.recovery'),
      account: by.account.id,
      group_id: this.groupId,
      member_encryption_public_key: publicKey,
      ...facts,
    };
    return this.sign(body, by);
  }

  /** Parameters that prepare a secret with a box for each of these people. */
  prepareParams(
    secret: Uint8Array,
    people: readonly Pick<TestAccount, 'account'>[],
    { ownerKey, facts = {} }: { readonly ownerKey?: MemberKey; readonly facts?: JsonObject } = {},
  ): JsonObject {
    const boxes = people.map((person) => {
      const key = person.account === this.owner.account ? ownerKey : undefined;
      return [person.account.id, this.box(person, { key, secret })] as const;
    });
    return {
      group_id: this.groupId,
      base_commitment: this.commitment,
      client_secret_commitment: this.commitmentTo(secret),
      client_secret_boxes: Object.fromEntries(boxes),
      ...facts,
    };
  }

  /** A rotation to a secret. */
  rotationBody(
    secret: Uint8Array,
    {
      ownerKey,
      by = this.owner,
    }: { readonly ownerKey?: MemberKey; readonly by?: TestAccount } = {},
  ): JsonObject {
    const facts = {
      client_secret_commitment: this.commitmentTo(secret),
      ...(ownerKey && { owner_encryption_public_key: ownerKey.publicKey }),
    };
    return this.chainBody('group.secret.rotation', facts, by);
  }

  /** A message in an epoch that nobody can open: the host does not look inside. */
  message(by: TestAccount, epoch: number, facts: JsonObject = {}): JsonObject {
    const body = {
      $type: this.context.network.type('group.message'),
      message_id: newMessageId(nodeRandom),
      group_id: this.groupId,
      epoch,
      created_at: unixSeconds(),
      payload: {
        alg: 'AES-256-GCM',
        nonce: encodeBase64url(nodeRandom(12)),
        ciphertext: encodeBase64url(nodeRandom(48)),
      },
      ...facts,
    };
    return this.sign(body, by);
  }

  /** A message with a text, sealed for all who have the secrets of its epoch. */
  sealedMessage(
    by: TestAccount,
    { epoch, applicationSecret }: EpochSecret,
    text: string,
  ): JsonObject {
    const { network } = this.context;
    return sealGroupMessage(network, {
      group_id: this.groupId,
      from: signerOf(by.device),
      epoch,
      applicationSecret,
      createdAt: unixSeconds(),
      content: {
        $type: network.type('group.message.content'),
        body: { content_type: 'text/plain', text },
      },
      random: nodeRandom,
    });
  }
}

/** The two approvals have the same form. */
export type ApprovalKind = 'group.application.approval' | 'group.member.recovery.approval';

export function idsOf(people: readonly Pick<TestAccount, 'account'>[]): string[] {
  return people.map(({ account }) => account.id);
}

/** Parameters that name an invitation of a group. */
export function namedInvite(
  { groupId }: Pick<GroupObjects, 'groupId'>,
  { invite_id }: Pick<GroupInvite, 'invite_id'>,
): JsonObject {
  return { group_id: groupId, invite_id };
}
