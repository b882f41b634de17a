/** The state a host serves for display (05 §4.1). */
import { badRequest } from '../errors.ts';
import { checkAccountId } from '../identity/account-id.ts';
import type { Network } from '../identity/network.ts';
import { isJsonObject } from '../json/types.ts';
import {
  AccountId,
  checkNoNull,
  checkPart,
  checkSchema,
  memberPath,
  type Static,
  Type,
} from '../schema.ts';
import {
  checkGroupDescription,
  checkGroupName,
  GroupCapacity,
  GroupInvitePolicy,
  GroupStatus,
} from './fields.ts';
import { GroupId } from './ids.ts';
import type { GroupView } from './projection.ts';

/** The result of `group.resolve`; it never replaces the verified chain and moves no position. */
export const GroupState = Type.Object({
  group_id: GroupId,
  name: Type.String(),
  /** Empty if the group has none. */
  description: Type.String(),
  status: GroupStatus,
  owner: AccountId,
  /** May lie below `member_count`: members stay, admissions fail. */
  member_capacity: GroupCapacity,
  /** Owner and administrators included. */
  member_count: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  invite_policy: GroupInvitePolicy,
});
export type GroupState = Static<typeof GroupState>;

/**
 * Checks a served state.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupState(network, value);
 * console.log(value.member_count);
 */
export function checkGroupState(
  network: Network,
  value: unknown,
  path = '',
): asserts value is GroupState {
  if (!isJsonObject(value)) throw badRequest(path, 'expected an object');
  checkPart(value, path);
  checkSchema(GroupState, value, path);
  checkNoNull(value, path);
  checkGroupName(value.name, memberPath(path, 'name'));
  checkGroupDescription(value.description, memberPath(path, 'description'));
  checkAccountId(network, value.owner, memberPath(path, 'owner'));
}

/**
 * Returns the state to serve of a projection.
 *
 * @example
 * const state = groupStateOf(group);
 */
export function groupStateOf(group: GroupView): GroupState {
  return {
    group_id: group.group_id,
    name: group.name,
    description: group.description,
    status: group.status,
    owner: group.owner,
    member_capacity: group.member_capacity,
    member_count: group.members.size,
    invite_policy: group.invite_policy,
  };
}
