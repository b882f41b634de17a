/**
 * The twelve client-signed bodies of the management chain (05 §4.4, §4.5, §4.9, §4.10). They are
 * the requests of their methods and the payloads of their events, unchanged.
 */
import { badRequest } from '../errors.ts';
import { checkAccountId } from '../identity/account-id.ts';
import type { Network } from '../identity/network.ts';
import {
  AccountId,
  checkNoNull,
  checkObject,
  checkPart,
  memberPath,
  Sha256,
  Signature,
  type Static,
  Type,
  TypeName,
  X25519PublicKey,
} from '../schema.ts';
import {
  AccountBatch,
  AssignableGroupRole,
  checkAccounts,
  checkGroupDescription,
  checkGroupName,
  checkMemberKeys,
  GroupCapacity,
  GroupInvitePolicy,
  GroupMemberKey,
} from './fields.ts';
import { GroupId, GroupNonce } from './ids.ts';

const signed = { $type: TypeName, group_id: GroupId, device_signature: Signature };
/** `prev_hash` is the digest of the chain event before (05 §3.3, §5.1). */
const chained = { ...signed, prev_hash: Sha256 };

/** Starts the chain; the only body without `prev_hash` (05 §4.5). */
export const GroupCreate = Type.Object({
  ...signed,
  nonce: GroupNonce,
  name: Type.String(),
  description: Type.Optional(Type.String()),
  member_capacity: GroupCapacity,
  invite_policy: GroupInvitePolicy,
  owner: GroupMemberKey,
  client_secret_commitment: Sha256,
});
export type GroupCreate = Static<typeof GroupCreate>;

/** Changes properties; at least one of the four is present (05 §13.6). */
export const GroupUpdate = Type.Object({
  ...chained,
  name: Type.Optional(Type.String()),
  description: Type.Optional(Type.String()),
  member_capacity: Type.Optional(GroupCapacity),
  invite_policy: Type.Optional(GroupInvitePolicy),
});
export type GroupUpdate = Static<typeof GroupUpdate>;

/** Sets a non-owner's role (05 §13.7). */
export const GroupRoleUpdate = Type.Object({
  ...chained,
  account: AccountId,
  role: AssignableGroupRole,
});
export type GroupRoleUpdate = Static<typeof GroupRoleUpdate>;

/** Makes another member the owner (05 §13.8). */
export const GroupOwnerTransfer = Type.Object({ ...chained, new_owner_account: AccountId });
export type GroupOwnerTransfer = Static<typeof GroupOwnerTransfer>;

/** Closes the group permanently (05 §13.5). */
export const GroupClose = Type.Object(chained);
export type GroupClose = Static<typeof GroupClose>;

/** Admits applicants as ordinary members (05 §4.9). */
export const GroupApplicationApproval = Type.Object({
  ...chained,
  members: Type.Array(GroupMemberKey, { minItems: 1 }),
});
export type GroupApplicationApproval = Static<typeof GroupApplicationApproval>;

/** The signing account leaves (05 §13.17). */
export const GroupMemberLeave = Type.Object({ ...chained, account: AccountId });
export type GroupMemberLeave = Static<typeof GroupMemberLeave>;

/** Removes members (05 §13.18). */
export const GroupMemberRemoval = Type.Object({ ...chained, accounts: AccountBatch });
export type GroupMemberRemoval = Static<typeof GroupMemberRemoval>;

/** Replaces member keys (05 §4.9). */
export const GroupMemberRecoveryApproval = Type.Object({
  ...chained,
  members: Type.Array(GroupMemberKey, { minItems: 1 }),
});
export type GroupMemberRecoveryApproval = Static<typeof GroupMemberRecoveryApproval>;

/** Bans accounts and removes those that are members (05 §13.19). */
export const GroupMemberBan = Type.Object({ ...chained, accounts: AccountBatch });
export type GroupMemberBan = Static<typeof GroupMemberBan>;

/** Lifts bans (05 §13.20). */
export const GroupMemberUnban = Type.Object({ ...chained, accounts: AccountBatch });
export type GroupMemberUnban = Static<typeof GroupMemberUnban>;

/** Activates a new client secret, and a new owner key if one is given (05 §4.10). */
export const GroupClientSecretRotation = Type.Object({
  ...chained,
  client_secret_commitment: Sha256,
  owner_encryption_public_key: Type.Optional(X25519PublicKey),
});
export type GroupClientSecretRotation = Static<typeof GroupClientSecretRotation>;

/** Every body of the chain by its kind, the `$type` without the service word. */
export interface GroupChainBodies {
  'group.create': GroupCreate;
  'group.update': GroupUpdate;
  'group.role.update': GroupRoleUpdate;
  'group.owner.transfer': GroupOwnerTransfer;
  'group.close': GroupClose;
  'group.application.approval': GroupApplicationApproval;
  'group.member.leave': GroupMemberLeave;
  'group.member.removal': GroupMemberRemoval;
  'group.member.recovery.approval': GroupMemberRecoveryApproval;
  'group.member.ban': GroupMemberBan;
  'group.member.unban': GroupMemberUnban;
  'group.secret.rotation': GroupClientSecretRotation;
}
export type GroupChainKind = keyof GroupChainBodies;

/** A checked body with its kind, for a `switch`. */
export type GroupChainBody<K extends GroupChainKind = GroupChainKind> = {
  readonly [Kind in K]: { readonly kind: Kind; readonly body: GroupChainBodies[Kind] };
}[K];

const schemas = {
  'group.create': GroupCreate,
  'group.update': GroupUpdate,
  'group.role.update': GroupRoleUpdate,
  'group.owner.transfer': GroupOwnerTransfer,
  'group.close': GroupClose,
  'group.application.approval': GroupApplicationApproval,
  'group.member.leave': GroupMemberLeave,
  'group.member.removal': GroupMemberRemoval,
  'group.member.recovery.approval': GroupMemberRecoveryApproval,
  'group.member.ban': GroupMemberBan,
  'group.member.unban': GroupMemberUnban,
  'group.secret.rotation': GroupClientSecretRotation,
} as const;

/** The kinds of chain bodies. */
export const groupChainKinds = Object.keys(schemas) as readonly GroupChainKind[];

/** Returns whether a kind, a `$type` without the service word, is one of the chain. */
export function isGroupChainKind(kind: string): kind is GroupChainKind {
  return Object.hasOwn(schemas, kind);
}

/**
 * Checks a chain body: shape and every rule that needs neither state nor cryptography.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * const { body } = checkGroupBody(network, 'group.close', params);
 */
export function checkGroupBody<K extends GroupChainKind>(
  network: Network,
  kind: K,
  value: unknown,
  path = '',
): GroupChainBody<K> {
  checkObject(network, { type: kind, schema: schemas[kind] }, value, path);
  checkNoNull(value, path);
  const checked = { kind, body: value } as unknown as GroupChainBody;
  checkRules(network, checked, path);
  return checked as GroupChainBody<K>;
}

/** Checks the rules that the schemas cannot express. */
function checkRules(network: Network, { kind, body }: GroupChainBody, path: string): void {
  const at = (name: string) => memberPath(path, name);
  switch (kind) {
    case 'group.create':
      if (Object.hasOwn(body, 'prev_hash')) throw badRequest(at('prev_hash'), 'not allowed here');
      checkPart(body.owner, at('owner'));
      checkAccountId(network, body.owner.account, at('owner.account'));
      checkProperties(body, at);
      return;
    case 'group.update':
      if (!modifiable.some((name) => Object.hasOwn(body, name))) {
        throw badRequest(path, 'has no modifiable member');
      }
      checkProperties(body, at);
      return;
    case 'group.role.update':
    case 'group.member.leave':
      checkAccountId(network, body.account, at('account'));
      return;
    case 'group.owner.transfer':
      checkAccountId(network, body.new_owner_account, at('new_owner_account'));
      return;
    case 'group.application.approval':
    case 'group.member.recovery.approval':
      checkMemberKeys(network, body.members, at('members'));
      return;
    case 'group.member.removal':
    case 'group.member.ban':
    case 'group.member.unban':
      checkAccounts(network, body.accounts, at('accounts'));
      return;
    case 'group.close':
    case 'group.secret.rotation':
      return;
  }
}

/** Members that `group.update` can change (05 §13.6). */
const modifiable = ['name', 'description', 'member_capacity', 'invite_policy'] as const;

function checkProperties(
  body: { readonly name?: string; readonly description?: string },
  at: (name: string) => string,
): void {
  if (body.name !== undefined) checkGroupName(body.name, at('name'));
  if (body.description !== undefined) checkGroupDescription(body.description, at('description'));
}
