/** Parameters of the group methods and what a relay checks of them without state (05 §13). */
import { badRequest } from '../errors.ts';
import type { Network } from '../identity/network.ts';
import { isJsonObject, type JsonObject } from '../json/types.ts';
import { limits } from '../limits.ts';
import { checkNoNull, checkObjectSize, checkSchema, Sha256, type Static, Type } from '../schema.ts';
import {
  checkGroupBody,
  GroupApplicationApproval,
  type GroupChainKind,
  GroupClientSecretRotation,
  GroupClose,
  GroupCreate,
  GroupMemberBan,
  GroupMemberLeave,
  GroupMemberRecoveryApproval,
  GroupMemberRemoval,
  GroupMemberUnban,
  GroupOwnerTransfer,
  GroupRoleUpdate,
  GroupUpdate,
} from './bodies.ts';
import { checkGroupSecretBox, GroupSecretBox } from './boxes.ts';
import { AccountBatch, checkAccounts, checkAccountsInSteps } from './fields.ts';
import { GroupId, GroupInviteId } from './ids.ts';
import { checkGroupMessageEnvelope, GroupMessageEnvelope } from './message.ts';
import {
  checkGroupApplication,
  checkGroupInvite,
  checkGroupMemberRecoveryRequest,
  GroupApplication,
  GroupInvite,
  GroupMemberRecoveryRequest,
} from './records.ts';

/** Sealed client secrets by the account each is for. */
export const ClientSecretBoxes = Type.Members('^.*$', GroupSecretBox);
export type ClientSecretBoxes = Static<typeof ClientSecretBoxes>;

const Limit = Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }));
/** Opaque, bound to one group, list and scope (05 §2, §12.7). */
export const GroupCursor = Type.String({ pattern: '^[A-Za-z0-9._~-]+$' });

const OfGroup = Type.Object({ group_id: GroupId });
const OfInvite = Type.Object({ group_id: GroupId, invite_id: GroupInviteId });
const ListOf = Type.Object({
  group_id: GroupId,
  cursor: Type.Optional(GroupCursor),
  limit: Limit,
});
const PageOf = Type.Object({
  group_id: GroupId,
  /** Sequence or epoch already held; -1 by default. */
  after: Type.Optional(Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER })),
  limit: Limit,
});
const RejectionOf = Type.Object({ group_id: GroupId, accounts: AccountBatch });

/** The parameters of every method of chapter 05, section 13, by its name. */
export const groupParams = {
  'group.create': Type.Object({ create: GroupCreate, client_secret_box: GroupSecretBox }),
  'group.resolve': Type.Object({ ...OfGroup.properties, invite_id: Type.Optional(GroupInviteId) }),
  'group.sync': PageOf,
  'group.close': GroupClose,
  'group.update': GroupUpdate,
  'group.role.update': GroupRoleUpdate,
  'group.owner.transfer': GroupOwnerTransfer,
  'group.invite.create': GroupInvite,
  'group.invite.resolve': OfInvite,
  'group.invite.list': ListOf,
  'group.invite.revoke': OfInvite,
  'group.application.submit': GroupApplication,
  'group.application.list': ListOf,
  'group.application.approve': Type.Object({
    approval: GroupApplicationApproval,
    /** Of the secret in the boxes; still the current one when the approval takes effect. */
    client_secret_commitment: Sha256,
    client_secret_boxes: ClientSecretBoxes,
  }),
  'group.application.reject': RejectionOf,
  'group.member.leave': GroupMemberLeave,
  'group.member.remove': GroupMemberRemoval,
  'group.member.ban': GroupMemberBan,
  'group.member.unban': GroupMemberUnban,
  'group.member.recovery.submit': GroupMemberRecoveryRequest,
  'group.member.recovery.list': ListOf,
  'group.member.recovery.approve': Type.Object({
    approval: GroupMemberRecoveryApproval,
    client_secret_commitment: Sha256,
    client_secret_boxes: ClientSecretBoxes,
  }),
  'group.member.recovery.reject': RejectionOf,
  'group.key.sync': PageOf,
  'group.secret.rotation.prepare': Type.Object({
    group_id: GroupId,
    base_commitment: Sha256,
    client_secret_commitment: Sha256,
    client_secret_boxes: ClientSecretBoxes,
  }),
  'group.secret.rotation.commit': GroupClientSecretRotation,
  'group.message.send': GroupMessageEnvelope,
  'group.subscribe': Type.Object({ group_ids: Type.Array(GroupId) }),
} as const;

/** Name of a group method. */
export type GroupMethodName = keyof typeof groupParams;
/** Parameters of a group method. */
export type GroupParams<N extends GroupMethodName> = Static<(typeof groupParams)[N]>;

/** Methods whose parameters are a chain body as such. */
const bodyMethods: { readonly [N in GroupMethodName]?: GroupChainKind } = {
  'group.close': 'group.close',
  'group.update': 'group.update',
  'group.role.update': 'group.role.update',
  'group.owner.transfer': 'group.owner.transfer',
  'group.member.leave': 'group.member.leave',
  'group.member.remove': 'group.member.removal',
  'group.member.ban': 'group.member.ban',
  'group.member.unban': 'group.member.unban',
  'group.secret.rotation.commit': 'group.secret.rotation',
};

/** Methods that change nothing of the group; their parameters have no limit of their own. */
const reads: ReadonlySet<GroupMethodName> = new Set([
  'group.resolve',
  'group.sync',
  'group.invite.resolve',
  'group.invite.list',
  'group.application.list',
  'group.member.recovery.list',
  'group.key.sync',
  'group.subscribe',
]);

/**
 * Checks everything about the parameters of a group method that needs neither state nor
 * cryptography: shape, size, encodings, accounts, batches, boxes. If several are wrong, any of the
 * errors may be answered (05 §12.4).
 *
 * @throws ProtocolError `bad_request`; `request_too_large` for parameters over 1 MiB of Canonical
 *   JSON or a message over its limit
 * @example
 * checkGroupParams(network, 'group.application.reject', params);
 */
export function checkGroupParams<N extends GroupMethodName>(
  network: Network,
  name: N,
  value: unknown,
): asserts value is GroupParams<N> {
  checkSchema(groupParams[name], value);
  // Before the costly checks of each account and box: no other limit applies to batches (05 §12.2).
  if (!reads.has(name)) checkObjectSize(value as JsonObject, limits.groupWriteBytes, 'params');
  checkNoNull(value as JsonObject);
  checkMethodRules(network, name, value);
}

/**
 * Does the long part of {@link checkGroupParams} in steps, for large parameters that
 * `parseJsonInSteps` parsed: after each step, the caller may do other work, and
 * {@link checkGroupParams} of the same value is fast afterwards.
 *
 * @throws ProtocolError as {@link checkGroupParams} does
 * @example
 * const request = { group_id: 'grp_AAAAAAAAAAAAAAAAAAAAAA', accounts: [] };
 * const steps = checkGroupParamsInSteps(network, 'group.application.reject', request);
 * while (steps.next().done !== true) console.log('other work');
 */
export function* checkGroupParamsInSteps(
  network: Network,
  name: GroupMethodName,
  params: JsonObject,
): Generator<undefined, void> {
  const { accounts, approval, client_secret_boxes: boxes } = params;
  checkSchema(groupParams[name], params);
  yield;
  if (!reads.has(name)) checkObjectSize(params as JsonObject, limits.groupWriteBytes, 'params');
  yield;
  if (Array.isArray(accounts)) yield* checkAccountsInSteps(network, accounts, 'accounts');
  const members = isJsonObject(approval) ? approval.members : undefined;
  if (Array.isArray(members)) yield* checkAccountsInSteps(network, members, 'approval.members');
  if (isJsonObject(boxes)) yield* checkBoxesInSteps(network, boxes as ClientSecretBoxes);
}

/** Boxes whose accounts and shapes were checked in steps, with the network. */
const checkedBoxes = new WeakMap<object, Network>();

/** Boxes that one step checks. */
const stepBoxes = 50;

function* checkBoxesInSteps(
  network: Network,
  boxes: ClientSecretBoxes,
): Generator<undefined, void> {
  const accounts = Object.keys(boxes);
  if (accounts.length < stepBoxes) return;
  yield* checkAccountsInSteps(network, accounts, 'client_secret_boxes');
  for (const [index, account] of accounts.entries()) {
    checkGroupSecretBox(boxes[account], `client_secret_boxes.${account}`);
    if (index % stepBoxes === stepBoxes - 1) yield;
  }
  checkedBoxes.set(boxes, network);
}

function checkMethodRules(network: Network, name: GroupMethodName, value: unknown): void {
  const kind = bodyMethods[name];
  if (kind !== undefined) {
    checkGroupBody(network, kind, value);
    return;
  }
  switch (name) {
    case 'group.create': {
      const { create, client_secret_box } = value as GroupParams<'group.create'>;
      checkGroupBody(network, 'group.create', create, 'create');
      checkGroupSecretBox(client_secret_box, 'client_secret_box');
      return;
    }
    case 'group.invite.create':
      checkGroupInvite(network, value);
      return;
    case 'group.application.submit':
      checkGroupApplication(network, value);
      return;
    case 'group.member.recovery.submit':
      checkGroupMemberRecoveryRequest(network, value);
      return;
    case 'group.application.approve':
      checkApproval(network, 'group.application.approval', value as GroupParams<typeof name>);
      return;
    case 'group.member.recovery.approve':
      checkApproval(network, 'group.member.recovery.approval', value as GroupParams<typeof name>);
      return;
    case 'group.application.reject':
    case 'group.member.recovery.reject':
      checkAccounts(network, (value as GroupParams<typeof name>).accounts, 'accounts');
      return;
    case 'group.secret.rotation.prepare':
      checkPreparation(network, value as GroupParams<typeof name>);
      return;
    case 'group.message.send':
      checkGroupMessageEnvelope(network, value);
      return;
    case 'group.subscribe':
      checkSubscription(value as GroupParams<typeof name>);
      return;
  }
}

/** Checks that the boxes are those of the approved accounts, no more (05 §13.15, §13.23). */
function checkApproval(
  network: Network,
  kind: 'group.application.approval' | 'group.member.recovery.approval',
  params: GroupParams<'group.application.approve'>,
): void {
  checkGroupBody(network, kind, params.approval, 'approval');
  const boxed = Object.keys(params.client_secret_boxes);
  const approved = new Set(params.approval.members.map((member) => member.account));
  if (boxed.length !== approved.size || !boxed.every((account) => approved.has(account))) {
    throw badRequest('client_secret_boxes', 'accounts are not those of the approval');
  }
  checkBoxes(network, params.client_secret_boxes);
}

function checkPreparation(
  network: Network,
  params: GroupParams<'group.secret.rotation.prepare'>,
): void {
  const { base_commitment, client_secret_commitment, client_secret_boxes: boxes } = params;
  const accounts = Object.keys(boxes);
  if (accounts.length === 0) throw badRequest('client_secret_boxes', 'is empty');
  if (checkedBoxes.get(boxes) !== network) {
    checkAccounts(network, accounts, 'client_secret_boxes');
    checkBoxes(network, boxes);
  }
  if (base_commitment === client_secret_commitment) {
    throw badRequest('client_secret_commitment', 'is the base commitment');
  }
}

function checkBoxes(network: Network, boxes: ClientSecretBoxes): void {
  if (checkedBoxes.get(boxes) === network) return;
  for (const [account, box] of Object.entries(boxes)) {
    checkGroupSecretBox(box, `client_secret_boxes.${account}`);
  }
}

/** The relay checks the number of groups, which needs the connection's set (02 §13.1). */
function checkSubscription({ group_ids }: GroupParams<'group.subscribe'>): void {
  if (new Set(group_ids).size !== group_ids.length) {
    throw badRequest('group_ids', 'names a group twice');
  }
}
