import { badRequest, ProtocolError } from '../../errors.ts';
import type {
  GroupApplicationApproval,
  GroupClientSecretRotation,
  GroupCreate,
  GroupMemberRecoveryApproval,
  GroupUpdate,
} from '../bodies.ts';
import type { GroupMemberKey, GroupRole } from '../fields.ts';
import type { GroupView } from '../projection.ts';
import { type ChainEvent, checkGroupAuthority } from './authority.ts';

/** Properties that a creation sets and an update replaces. */
export type GroupProperties = Pick<
  GroupView,
  'name' | 'description' | 'member_capacity' | 'invite_policy'
>;

/**
 * Everything an event changes, one list per kind of change, so that a relay can write exactly
 * this to its tables and a client can react to it.
 */
export interface GroupEffects {
  /** Whether the event needs a new relay secret and a greater epoch (05 §7.2). */
  readonly advancesEpoch: boolean;
  readonly properties: Partial<GroupProperties>;
  readonly closes: boolean;
  readonly client_secret_commitment?: string;
  /** New owner; the roles of both accounts are among `roles`. */
  readonly owner?: string;
  readonly roles: readonly { readonly account: string; readonly role: GroupRole }[];
  /** Admitted accounts, with role `member` unless `roles` has another. */
  readonly joined: readonly GroupMemberKey[];
  /** Members whose key was replaced. */
  readonly rekeyed: readonly GroupMemberKey[];
  /** Ended memberships, of whatever reason. */
  readonly left: readonly string[];
  /** Accounts that were not banned before. */
  readonly banned: readonly string[];
  /** Accounts that were banned before. */
  readonly unbanned: readonly string[];
}

/** An event without effects on the projection. */
export const noGroupEffects: GroupEffects = {
  advancesEpoch: false,
  properties: {},
  closes: false,
  roles: [],
  joined: [],
  rekeyed: [],
  left: [],
  banned: [],
  unbanned: [],
};

/**
 * Decides on a chain body: the rights of its signer, an open group, the current head, and the state
 * its kind asks for, in this order (05 §5.4, §12.4). The relay calls it inside the commit, the
 * client on every verified event.
 *
 * @param account that of the verified certificate
 * @returns what the event will change; nothing is changed here
 * @throws ProtocolError `forbidden`, `state_conflict`, `bad_request`
 * @example
 * const effects = decideChainEvent(group, chainEvent, account);
 * const { sequence, epoch } = nextGroupPosition(group, effects);
 */
export function decideChainEvent(
  group: GroupView,
  link: ChainEvent,
  account: string,
): GroupEffects {
  checkChainEvent(group, link, account);
  return { ...noGroupEffects, ...effectsOf(group, link) };
}

/**
 * Checks the part of {@link decideChainEvent} that comes before the objects that the body refers
 * to: the rights of its signer, an open group, the current head. Between this and the rest,
 * approvals check their requests (05 §13.15).
 *
 * @throws ProtocolError `forbidden`, `state_conflict`, `bad_request`
 * @example
 * checkChainEvent(group, chainEvent, account);
 */
export function checkChainEvent(group: GroupView, link: ChainEvent, account: string): void {
  checkGroupAuthority(group, link, account);
  checkGroupOpen(group);
  if (link.body.prev_hash !== group.head) throw conflict('prev_hash is not the current head');
}

/**
 * Refuses every write to a closed group.
 *
 * @throws ProtocolError `state_conflict`
 * @example
 * checkGroupOpen(group);
 */
export function checkGroupOpen(group: Pick<GroupView, 'status'>): void {
  if (group.status !== 'active') throw conflict('the group is closed');
}

/**
 * Returns the position of the event to append: the next sequence, and the next epoch if the effects
 * need one.
 *
 * @throws ProtocolError `state_conflict` if no safe integer follows (05 §7.2)
 * @example
 * const { sequence, epoch } = nextGroupPosition(group, effects);
 */
export function nextGroupPosition(
  group: Pick<GroupView, 'sequence' | 'epoch'>,
  effects: Pick<GroupEffects, 'advancesEpoch'>,
): { readonly sequence: number; readonly epoch: number } {
  const sequence = group.sequence + 1;
  const epoch = effects.advancesEpoch ? group.epoch + 1 : group.epoch;
  if (!Number.isSafeInteger(sequence) || !Number.isSafeInteger(epoch)) {
    throw conflict('sequence or epoch is exhausted');
  }
  return { sequence, epoch };
}

/**
 * Returns the effects of a creation: the first relay secret, properties, commitment, and the owner
 * as the one that joined. No description and an empty one are the same state (05 §4.1).
 */
export function creationEffects(create: GroupCreate) {
  const { name, description = '', member_capacity, invite_policy } = create;
  const { account } = create.owner;
  return {
    ...noGroupEffects,
    advancesEpoch: true,
    properties: { name, description, member_capacity, invite_policy },
    client_secret_commitment: create.client_secret_commitment,
    owner: account,
    joined: [keyOnly(create.owner)],
    roles: [{ account, role: 'owner' }],
  } as const satisfies GroupEffects;
}

function effectsOf(group: GroupView, { kind, body }: ChainEvent): Partial<GroupEffects> {
  switch (kind) {
    case 'group.update':
      return { properties: updatedProperties(body) };
    case 'group.role.update': {
      const role = group.members.get(body.account)?.role;
      if (role === undefined || role === 'owner') throw conflict('no current non-owner member');
      return { roles: [{ account: body.account, role: body.role }] };
    }
    case 'group.owner.transfer':
      return transfer(group.owner, body.new_owner_account);
    case 'group.close':
      return { closes: true };
    case 'group.application.approval':
      return admit(group, body);
    case 'group.member.leave':
      return { advancesEpoch: true, left: [body.account] };
    case 'group.member.removal':
      requireMembers(group, body.accounts);
      return { advancesEpoch: true, left: body.accounts };
    case 'group.member.recovery.approval':
      return replaceKeys(group, body);
    case 'group.member.ban': {
      const left = body.accounts.filter((account) => group.members.get(account) !== undefined);
      const banned = body.accounts.filter((account) => !group.bans.has(account));
      return { advancesEpoch: left.length > 0, left, banned };
    }
    case 'group.member.unban':
      return { unbanned: body.accounts.filter((account) => group.bans.has(account)) };
    case 'group.secret.rotation':
      return rotate(group, body);
  }
}

/** Unknown members of the body are signed and stored, and change nothing (05 §13.6). */
function updatedProperties(body: GroupUpdate): Partial<GroupProperties> {
  const { name, description, member_capacity, invite_policy } = body;
  return {
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    ...(member_capacity !== undefined && { member_capacity }),
    ...(invite_policy !== undefined && { invite_policy }),
  };
}

function transfer(from: string, to: string): Partial<GroupEffects> {
  const roles = [
    { account: from, role: 'member' },
    { account: to, role: 'owner' },
  ] as const;
  return { owner: to, roles };
}

function admit(group: GroupView, { members }: GroupApplicationApproval): Partial<GroupEffects> {
  for (const { account } of members) {
    if (group.members.get(account) !== undefined) throw conflict('an account is a member already');
    if (group.bans.has(account)) throw conflict('an account is banned');
  }
  if (group.members.size + members.length > group.member_capacity) {
    throw conflict('the group has no room');
  }
  return { advancesEpoch: true, joined: members.map(keyOnly) };
}

function replaceKeys(
  group: GroupView,
  { members }: GroupMemberRecoveryApproval,
): Partial<GroupEffects> {
  requireMembers(
    group,
    members.map((member) => member.account),
  );
  return { advancesEpoch: true, rekeyed: members.map(keyOnly) };
}

function rotate(group: GroupView, body: GroupClientSecretRotation): Partial<GroupEffects> {
  const { client_secret_commitment, owner_encryption_public_key: key } = body;
  if (client_secret_commitment === group.client_secret_commitment) {
    throw conflict('the commitment is the current one');
  }
  if (key === undefined) return { advancesEpoch: true, client_secret_commitment };
  if (key === group.members.get(group.owner)?.member_encryption_public_key) {
    throw badRequest('owner_encryption_public_key', 'is the current key');
  }
  const rekeyed = [{ account: group.owner, member_encryption_public_key: key }];
  return { advancesEpoch: true, client_secret_commitment, rekeyed };
}

function requireMembers(group: GroupView, accounts: readonly string[]): void {
  if (accounts.some((account) => group.members.get(account) === undefined)) {
    throw conflict('a target is no current member');
  }
}

/** Without the unknown members an approval may carry in its elements. */
function keyOnly({ account, member_encryption_public_key }: GroupMemberKey): GroupMemberKey {
  return { account, member_encryption_public_key };
}

function conflict(reason: string): ProtocolError {
  return new ProtocolError('state_conflict', reason);
}
