/** A group as the people in it hold it: its secret, the head of its chain, everybody's keys. */

import {
  clientSecretCommitment,
  createGroupInviteId,
  createGroupNonce,
  createGroupSecret,
  deriveGroupId,
  encodeBase64url,
  type GroupApplication,
  type GroupChainBodies,
  type GroupCreate,
  type GroupInvite,
  type GroupMemberKey,
  type GroupMemberRecoveryRequest,
  type GroupMessageEnvelope,
  type GroupParams,
  type GroupRole,
  type GroupSecretBox,
  managementHash,
  sealClientSecret,
  signAsDevice,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import { network } from '../support/modules.ts';
import type { Ground, Person } from '../support/people.ts';

/** An X25519 pair of a member, or of somebody who wants to be one. */
export interface MemberKey {
  /** 32 bytes. */
  readonly privateKey: Uint8Array;
  /** base64url. */
  readonly publicKey: string;
}

/** Every pair made here by its public key: boxes of the past stay to be opened. */
const pairs = new Map<string, MemberKey>();

export function newMemberKey(): MemberKey {
  const privateKey = nodeRandom(32);
  const publicKey = encodeBase64url(nodePrimitives.x25519.publicKey(privateKey));
  const pair = { privateKey, publicKey };
  pairs.set(publicKey, pair);
  return pair;
}

/** The private key of a pair made here. */
export function privateKeyOf(publicKey: string): Uint8Array | undefined {
  return pairs.get(publicKey)?.privateKey;
}

/** Who signs and calls; the owner's phone unless said otherwise. */
export interface By {
  readonly by?: Person;
  readonly device?: string;
}

/** Every chain body but the first. */
type LinkKind = Exclude<keyof GroupChainBodies, 'group.create'>;
/** What is the body's own, and what a test wants to be wrong. */
type LinkFacts<K extends LinkKind> = Omit<
  GroupChainBodies[K],
  '$type' | 'group_id' | 'prev_hash' | 'device_signature'
> & { readonly prev_hash?: string };

const day = 86_400;

/**
 * A group as its people know it. Methods named after an act make the call and keep what follows
 * from it; those named after an object only sign it.
 *
 * @example
 * const group = await TestGroup.found(world, ann);
 * await group.admit(ben, cem);
 * await group.setRole(ben, 'administrator');
 * const body = group.link('group.member.removal', { accounts: [cem.account] }, { by: ben });
 * await world.codeOf('group.member.remove', body, { session: ben.session() });
 */
export class TestGroup {
  readonly groupId: string;
  /** Digest of the last chain event these people wrote. */
  head: string;
  /** The client secret in force. */
  secret: Uint8Array;
  owner: Person;
  readonly create: GroupCreate;
  readonly #world: Ground;
  /** Keys in force, by account; those that left keep theirs until they join again. */
  readonly #keys = new Map<string, MemberKey>();
  readonly #members = new Map<string, Person>();
  /** Keys of pending applications and recovery requests, by account. */
  readonly candidates = new Map<string, MemberKey>();

  private constructor(world: Ground, owner: Person, founding: Founding) {
    this.#world = world;
    this.owner = owner;
    this.create = founding.create;
    this.groupId = founding.create.group_id;
    this.secret = founding.secret;
    this.head = managementHash(network, founding.create);
    this.#keys.set(owner.account, founding.key);
    this.#members.set(owner.account, owner);
  }

  /** Makes a group of which nobody but its owner is a member. */
  static async found(
    world: Ground,
    owner: Person,
    facts: Partial<GroupCreate> = {},
  ): Promise<TestGroup> {
    const { group, params } = TestGroup.draft(world, owner, facts);
    await world.call('group.create', params, { session: owner.session() });
    return group;
  }

  /** A group as it is once `group.create` has been called with these parameters. */
  static draft(world: Ground, owner: Person, facts: Partial<GroupCreate> = {}) {
    const founding = foundingOf(world, owner, facts);
    const group = new TestGroup(world, owner, founding);
    return { group, params: { create: founding.create, client_secret_box: group.box(owner) } };
  }

  /** Parameters that make such a group; nothing is called. */
  static plan(
    world: Ground,
    owner: Person,
    facts: Partial<GroupCreate> = {},
  ): GroupParams<'group.create'> {
    const founding = foundingOf(world, owner, facts);
    const group = new TestGroup(world, owner, founding);
    return { create: founding.create, client_secret_box: group.box(owner) };
  }

  get commitment(): string {
    return clientSecretCommitment(network, this.groupId, this.secret);
  }

  /** Everybody who is a member, the owner first. */
  get members(): Person[] {
    return [...this.#members.values()];
  }

  /** The member key in force of somebody. */
  keyOf(person: Person): MemberKey {
    const key = this.#keys.get(person.account);
    if (key === undefined) throw new Error('no member key');
    return key;
  }

  /** A box of the secret in force for somebody's member key, or for another key or secret. */
  box(
    person: Person,
    { key = this.keyOf(person), secret = this.secret } = {} as {
      readonly key?: MemberKey | undefined;
      readonly secret?: Uint8Array;
    },
  ): GroupSecretBox {
    const context = {
      group_id: this.groupId,
      account: person.account,
      member_encryption_public_key: key.publicKey,
      client_secret_commitment: clientSecretCommitment(network, this.groupId, secret),
    };
    return sealClientSecret(network, context, { secret, random: nodeRandom });
  }

  /** A chain body on the current head, signed. */
  link<K extends LinkKind>(kind: K, facts: LinkFacts<K>, by: By = {}): GroupChainBodies[K] {
    const { prev_hash = this.head, ...rest } = facts;
    const body = { $type: network.type(kind), group_id: this.groupId, prev_hash, ...rest };
    return this.sign(body, by) as unknown as GroupChainBodies[K];
  }

  /** Any object with a device's signature. */
  sign<T extends JsonObject>(object: T, { by = this.owner, device = 'phone' }: By = {}) {
    return signAsDevice(network, object, by.device(device).signer);
  }

  /** Calls a method with a chain body, and moves the head where it was accepted. */
  async write(
    method: string,
    body: object,
    { by = this.owner, device = 'phone', params = body }: By & { readonly params?: object } = {},
  ): Promise<void> {
    await this.#world.call(method, params, { session: by.session(device) });
    this.head = managementHash(network, body as never);
  }

  async update(facts: LinkFacts<'group.update'>, by: By = {}): Promise<void> {
    await this.write('group.update', this.link('group.update', facts, by), by);
  }

  async setRole(person: Person, role: Exclude<GroupRole, 'owner'>): Promise<void> {
    const body = this.link('group.role.update', { account: person.account, role });
    await this.write('group.role.update', body);
  }

  async transfer(to: Person): Promise<void> {
    const body = this.link('group.owner.transfer', { new_owner_account: to.account });
    await this.write('group.owner.transfer', body);
    this.owner = to;
  }

  async close(): Promise<void> {
    await this.write('group.close', this.link('group.close', {}));
  }

  async leave(person: Person): Promise<void> {
    const by = { by: person };
    const body = this.link('group.member.leave', { account: person.account }, by);
    await this.write('group.member.leave', body, by);
    this.#members.delete(person.account);
  }

  async remove(people: readonly Person[], by: By = {}): Promise<void> {
    const accounts = people.map(({ account }) => account);
    const body = this.link('group.member.removal', { accounts }, by);
    await this.write('group.member.remove', body, by);
    for (const account of accounts) this.#members.delete(account);
  }

  async ban(people: readonly Person[], by: By = {}): Promise<void> {
    const accounts = people.map(({ account }) => account);
    await this.write('group.member.ban', this.link('group.member.ban', { accounts }, by), by);
    for (const account of accounts) this.#members.delete(account);
  }

  async unban(people: readonly Person[], by: By = {}): Promise<void> {
    const accounts = people.map(({ account }) => account);
    const body = this.link('group.member.unban', { accounts }, by);
    await this.write('group.member.unban', body, by);
  }

  /** A message in an epoch, with a text that nobody can open: the host does not look inside. */
  message(by: Person, epoch: number, device = 'phone'): GroupMessageEnvelope {
    const body = {
      $type: network.type('group.message'),
      message_id: `msg_${encodeBase64url(nodeRandom(16))}`,
      group_id: this.groupId,
      epoch,
      created_at: this.#world.clock.now(),
      payload: {
        alg: 'AES-256-GCM',
        nonce: encodeBase64url(nodeRandom(12)),
        ciphertext: encodeBase64url(nodeRandom(48)),
      },
    };
    return this.sign(body, { by, device }) as unknown as GroupMessageEnvelope;
  }

  /** Sends a message; says its sequence. */
  async send(by: Person, epoch: number, device = 'phone'): Promise<number> {
    const message = this.message(by, epoch, device);
    const session = by.session(device);
    const answer = await this.#world.call('group.message.send', message, { session });
    return (answer as { sequence: number }).sequence;
  }

  /** An invitation for anybody, for a day, or with what is given. */
  invitation(facts: Partial<GroupInvite> = {}, by: By = {}): GroupInvite {
    const now = this.#world.clock.now();
    const body = {
      $type: network.type('group.invite'),
      invite_id: createGroupInviteId(nodeRandom),
      group_id: this.groupId,
      inviter: (by.by ?? this.owner).account,
      created_at: now,
      expires_at: now + day,
      ...facts,
    };
    return this.sign(body, by) as unknown as GroupInvite;
  }

  /** Creates an invitation. */
  async invite(facts: Partial<GroupInvite> = {}, by: By = {}): Promise<GroupInvite> {
    const invite = this.invitation(facts, by);
    const session = (by.by ?? this.owner).session(by.device);
    await this.#world.call('group.invite.create', invite, { session });
    return invite;
  }

  /** An application with a new key, which is kept as the candidate. */
  application(
    person: Person,
    invite: Pick<GroupInvite, 'invite_id'>,
    { device, ...facts }: Partial<GroupApplication> & { readonly device?: string } = {},
  ): GroupApplication {
    const key = newMemberKey();
    this.candidates.set(person.account, key);
    const body = {
      $type: network.type('group.application'),
      account: person.account,
      group_id: this.groupId,
      invite_id: invite.invite_id,
      member_encryption_public_key: key.publicKey,
      ...facts,
    };
    const by = { by: person, ...(device !== undefined && { device }) };
    return this.sign(body, by) as unknown as GroupApplication;
  }

  /** Submits an application. */
  async apply(
    person: Person,
    invite: Pick<GroupInvite, 'invite_id'>,
    options: Partial<GroupApplication> & { readonly device?: string } = {},
  ): Promise<GroupApplication> {
    const application = this.application(person, invite, options);
    const session = person.session(options.device);
    await this.#world.call('group.application.submit', application, { session });
    return application;
  }

  /** Parameters that approve what these people ask for with their candidate keys. */
  approval(
    people: readonly Person[],
    { kind = 'group.application.approval', ...by }: By & { readonly kind?: ApprovalKind } = {},
  ): GroupParams<'group.application.approve'> {
    const members = people.map((person): GroupMemberKey => {
      const { publicKey } = this.#candidate(person);
      return { account: person.account, member_encryption_public_key: publicKey };
    });
    const boxes = people.map((person) => {
      return [person.account, this.box(person, { key: this.#candidate(person) })] as const;
    });
    return {
      approval: this.link(kind, { members }, by),
      client_secret_commitment: this.commitment,
      client_secret_boxes: Object.fromEntries(boxes),
    };
  }

  /** Admits people who applied. */
  async approve(people: readonly Person[], by: By = {}): Promise<void> {
    const params = this.approval(people, by);
    await this.write('group.application.approve', params.approval, { ...by, params });
    for (const person of people) this.#activate(person);
  }

  /** Invites people, lets them apply and admits them all at once. */
  async admit(...people: Person[]): Promise<void> {
    const invite = await this.invite();
    for (const person of people) await this.apply(person, invite);
    await this.approve(people);
  }

  /** A request for a new member key, which is kept as the candidate. */
  recoveryRequest(
    person: Person,
    { device, ...facts }: Partial<GroupMemberRecoveryRequest> & { readonly device?: string } = {},
  ): GroupMemberRecoveryRequest {
    const key = newMemberKey();
    this.candidates.set(person.account, key);
    const body = {
      $type: network.type('group.member.recovery'),
      account: person.account,
      group_id: this.groupId,
      member_encryption_public_key: key.publicKey,
      ...facts,
    };
    const by = { by: person, ...(device !== undefined && { device }) };
    return this.sign(body, by) as unknown as GroupMemberRecoveryRequest;
  }

  /** Submits a request for a new member key. */
  async requestRecovery(person: Person, device = 'phone'): Promise<GroupMemberRecoveryRequest> {
    const request = this.recoveryRequest(person, { device });
    const session = person.session(device);
    await this.#world.call('group.member.recovery.submit', request, { session });
    return request;
  }

  /** Gives people the member keys they asked for. */
  async recover(people: readonly Person[], by: By = {}): Promise<void> {
    const params = this.approval(people, { kind: 'group.member.recovery.approval', ...by });
    await this.write('group.member.recovery.approve', params.approval, { ...by, params });
    for (const person of people) this.#activate(person);
  }

  /** Parameters of `group.secret.rotation.prepare` with a box for each of these people. */
  preparation(
    secret: Uint8Array,
    people: readonly Person[] = this.members,
    ownerKey?: MemberKey,
  ): GroupParams<'group.secret.rotation.prepare'> {
    const boxes = people.map((person) => {
      const key = person === this.owner ? ownerKey : undefined;
      return [person.account, this.box(person, { key, secret })] as const;
    });
    return {
      group_id: this.groupId,
      base_commitment: this.commitment,
      client_secret_commitment: clientSecretCommitment(network, this.groupId, secret),
      client_secret_boxes: Object.fromEntries(boxes),
    };
  }

  /** A rotation to a secret, signed by the owner. */
  rotation(secret: Uint8Array, ownerKey?: MemberKey): GroupChainBodies['group.secret.rotation'] {
    return this.link('group.secret.rotation', {
      client_secret_commitment: clientSecretCommitment(network, this.groupId, secret),
      ...(ownerKey !== undefined && { owner_encryption_public_key: ownerKey.publicKey }),
    });
  }

  /** Prepares a new client secret for every member and puts it into force. */
  async rotate(ownerKey?: MemberKey): Promise<void> {
    const secret = createGroupSecret(nodeRandom);
    const preparation = this.preparation(secret, this.members, ownerKey);
    const session = this.owner.session();
    await this.#world.call('group.secret.rotation.prepare', preparation, { session });
    await this.write('group.secret.rotation.commit', this.rotation(secret, ownerKey));
    this.secret = secret;
    if (ownerKey !== undefined) this.#keys.set(this.owner.account, ownerKey);
  }

  #candidate(person: Person): MemberKey {
    const key = this.candidates.get(person.account);
    if (key === undefined) throw new Error('nothing is asked for');
    return key;
  }

  #activate(person: Person): void {
    this.#keys.set(person.account, this.#candidate(person));
    this.#members.set(person.account, person);
    this.candidates.delete(person.account);
  }
}

/** The two approvals have the same form. */
type ApprovalKind = 'group.application.approval' | 'group.member.recovery.approval';

interface Founding {
  readonly create: GroupCreate;
  readonly secret: Uint8Array;
  readonly key: MemberKey;
}

function foundingOf(world: Ground, owner: Person, facts: Partial<GroupCreate>): Founding {
  const key = newMemberKey();
  const secret = createGroupSecret(nodeRandom);
  const { nonce = createGroupNonce(nodeRandom) } = facts;
  const { account } = owner;
  const identity = { creator: account, nonce, relay_id: world.relayId };
  const group_id = deriveGroupId(network, identity);
  const body = {
    $type: network.type('group.create'),
    group_id,
    nonce,
    name: 'club',
    member_capacity: 100,
    invite_policy: 'administrators',
    owner: { account, member_encryption_public_key: key.publicKey },
    client_secret_commitment: clientSecretCommitment(network, group_id, secret),
    ...facts,
  };
  const create = signAsDevice(network, body, owner.device().signer) as unknown as GroupCreate;
  return { create, secret, key };
}
