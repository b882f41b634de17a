/** The objects of a group, and what is needed to sign them: secret, head of the chain, keys. */

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

/** Makes a new client secret. */
export const newSecret = (): Uint8Array => createGroupSecret(nodeRandom);

/** The kinds of chain events except `group.create`. */
export type ChainBodyKind = Exclude<keyof GroupChainBodies, 'group.create'>;
/** The members of a chain event apart from `$type`, group and head; valid or not. */
export type ChainBodyMembers = { readonly [name: string]: JsonValue };

/** An epoch, and the application secret from which message keys are derived. */
export interface EpochSecret {
  readonly epoch: number;
  readonly applicationSecret: Uint8Array;
}

/**
 * Makes and signs the objects of one group without sending them. By default the owner signs.
 * `overrides` replace members of the usual object and may be invalid.
 */
export class GroupObjects {
  readonly context: TestContext;
  readonly create: GroupCreate;
  readonly keys = new KeyRing();
  /** Digest of the last chain event that was written through this object. */
  head: string;
  /** The current client secret. */
  secret: Uint8Array;
  owner: TestAccount;

  protected constructor(context: TestContext, owner: TestAccount, overrides: JsonObject) {
    this.context = context;
    this.owner = owner;
    this.secret = newSecret();
    this.keys.activate(owner.account.id, this.keys.make());
    this.create = this.#signCreation(overrides);
    this.head = managementHash(context.network, this.create);
  }

  #signCreation(overrides: JsonObject): GroupCreate {
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
      ...overrides,
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

  /** Seals the current secret for an account's member key, or another secret or key. */
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

  /** Signs an object as a device, in place of any signature it has. */
  sign<T extends JsonObject>(object: T, by: { readonly device: Device } = this.owner) {
    return signAsDevice(this.context.network, object, by.device.signer);
  }

  /** Signs a chain event on the current head. */
  chainBody(
    kind: ChainBodyKind,
    overrides: ChainBodyMembers = {},
    by: TestAccount = this.owner,
  ): JsonObject {
    const $type = this.context.network.type(kind);
    const body = { $type, group_id: this.groupId, prev_hash: this.head, ...overrides };
    return this.sign(body, by);
  }

  /** Signs an invitation; by default for any account, for an hour. */
  invitation(overrides: JsonObject = {}, by: TestAccount = this.owner): GroupInvite {
    const now = unixSeconds();
    const body = {
      $type: this.context.network.type('group.invite'),
      invite_id: createGroupInviteId(nodeRandom),
      group_id: this.groupId,
      inviter: by.account.id,
      created_at: now,
      expires_at: now + 3_600,
      ...overrides,
    };
    return this.sign(body, by) as unknown as GroupInvite;
  }

  /** Signs an application with a new member key, which becomes the account's candidate key. */
  application(
    by: TestAccount,
    { invite_id }: Pick<GroupInvite, 'invite_id'>,
    overrides: JsonObject = {},
  ): JsonObject {
    const { publicKey } = this.keys.propose(by.account.id);
    const body = {
      $type: this.context.network.type('group.application'),
      account: by.account.id,
      group_id: this.groupId,
      invite_id,
      member_encryption_public_key: publicKey,
      ...overrides,
    };
    return this.sign(body, by);
  }

  /** Builds the parameters of an approval: of applications by default, or of recoveries. */
  approvalParams(
    accounts: readonly Pick<TestAccount, 'account'>[],
    options: {
      readonly by?: TestAccount;
      readonly kind?: ApprovalKind;
      readonly overrides?: ChainBodyMembers;
    } = {},
  ): JsonObject & { readonly approval: JsonObject } {
    const { by = this.owner, kind = 'group.application.approval', overrides = {} } = options;
    const members = accounts.map(({ account }) => ({
      account: account.id,
      member_encryption_public_key: this.keys.candidate(account.id).publicKey,
    }));
    const boxes = accounts.map((person) => {
      const key = this.keys.candidate(person.account.id);
      return [person.account.id, this.box(person, { key })] as const;
    });
    return {
      approval: this.chainBody(kind, { members, ...overrides }, by),
      client_secret_commitment: this.commitment,
      client_secret_boxes: Object.fromEntries(boxes),
    };
  }

  /** Signs a recovery request with a new member key, which becomes the candidate key. */
  recoveryRequest(by: TestAccount, overrides: JsonObject = {}): JsonObject {
    const { publicKey } = this.keys.propose(by.account.id);
    const body = {
      $type: this.context.network.type('group.member.recovery'),
      account: by.account.id,
      group_id: this.groupId,
      member_encryption_public_key: publicKey,
      ...overrides,
    };
    return this.sign(body, by);
  }

  /** Builds the parameters of a rotation's preparation, with a box for each account. */
  prepareParams(
    secret: Uint8Array,
    accounts: readonly Pick<TestAccount, 'account'>[],
    {
      ownerKey,
      overrides = {},
    }: { readonly ownerKey?: MemberKey; readonly overrides?: JsonObject } = {},
  ): JsonObject {
    const boxes = accounts.map((person) => {
      const key = person.account === this.owner.account ? ownerKey : undefined;
      return [person.account.id, this.box(person, { key, secret })] as const;
    });
    return {
      group_id: this.groupId,
      base_commitment: this.commitment,
      client_secret_commitment: this.commitmentTo(secret),
      client_secret_boxes: Object.fromEntries(boxes),
      ...overrides,
    };
  }

  /** Signs the rotation to a secret. */
  rotationBody(
    secret: Uint8Array,
    {
      ownerKey,
      by = this.owner,
    }: { readonly ownerKey?: MemberKey; readonly by?: TestAccount } = {},
  ): JsonObject {
    const overrides = {
      client_secret_commitment: this.commitmentTo(secret),
      ...(ownerKey && { owner_encryption_public_key: ownerKey.publicKey }),
    };
    return this.chainBody('group.secret.rotation', overrides, by);
  }

  /** Signs a message with a random ciphertext: the host cannot open messages. */
  message(by: TestAccount, epoch: number, overrides: JsonObject = {}): JsonObject {
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
      ...overrides,
    };
    return this.sign(body, by);
  }

  /** Seals and signs a text message with the secret of an epoch. */
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

/** The two kinds of approvals, which have the same form. */
export type ApprovalKind = 'group.application.approval' | 'group.member.recovery.approval';

/** Lists the account IDs. */
export function idsOf(accounts: readonly Pick<TestAccount, 'account'>[]): string[] {
  return accounts.map(({ account }) => account.id);
}

/** Builds the parameters that name an invitation of a group. */
export function namedInvite(
  { groupId }: Pick<GroupObjects, 'groupId'>,
  { invite_id }: Pick<GroupInvite, 'invite_id'>,
): JsonObject {
  return { group_id: groupId, invite_id };
}
