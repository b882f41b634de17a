/**
 * The state that the chain leads to: members, roles, keys, bans, properties, head (05 §1.1, §4.2).
 * Rules read it through {@link GroupView}, which a relay can fill from tables with just the
 * accounts a body names; a client keeps all of it as {@link GroupProjection}.
 */
import { badRequest } from '../errors.ts';
import {
  AccountId,
  Counter,
  checkSchema,
  Sha256,
  type Static,
  Type,
  X25519PublicKey,
} from '../schema.ts';
import { GroupCapacity, GroupInvitePolicy, GroupRole, GroupStatus } from './fields.ts';
import { GroupId } from './ids.ts';

/** A member as the chain makes it. Nicknames are no part of it. */
export const GroupMember = Type.Object({
  account: AccountId,
  role: GroupRole,
  member_encryption_public_key: X25519PublicKey,
  /** Sequence of the event that began this membership. */
  since: Counter,
});
export type GroupMember = Static<typeof GroupMember>;

const fields = {
  group_id: GroupId,
  status: GroupStatus,
  owner: AccountId,
  name: Type.String(),
  description: Type.String(),
  member_capacity: GroupCapacity,
  invite_policy: GroupInvitePolicy,
  client_secret_commitment: Sha256,
  /** Digest of the last chain event, the `prev_hash` of the next. */
  head: Sha256,
  /** Sequence of the last event of any category that was applied. */
  sequence: Counter,
  /** Key epoch after that event. */
  epoch: Counter,
};

const GroupFields = Type.Object(fields);
type GroupFields = Readonly<Static<typeof GroupFields>>;

/** What the rules of the chain need to see of a group. A `Map` and a `Set` fit. */
export interface GroupView extends GroupFields {
  readonly members: {
    /** The number of all members, even if `get` knows only some. */
    readonly size: number;
    get(account: string): GroupMember | undefined;
  };
  readonly bans: { has(account: string): boolean };
}

/** The whole state of a group; never changed, replaced by the next. */
export interface GroupProjection extends GroupFields {
  readonly members: ReadonlyMap<string, GroupMember>;
  readonly bans: ReadonlySet<string>;
}

/** A projection as JSON, for storing; members and bans in the order of their accounts. */
export const SavedGroup = Type.Object({
  ...fields,
  members: Type.Array(GroupMember, { minItems: 1 }),
  bans: Type.Array(AccountId),
});
export type SavedGroup = Static<typeof SavedGroup>;

/**
 * Converts a projection to JSON. Equal projections give equal JSON.
 *
 * @example
 * const text = JSON.stringify(saveGroup(group));
 */
export function saveGroup(group: GroupProjection): SavedGroup {
  const members = [...group.members.values()].sort(byAccount);
  return { ...group, members, bans: [...group.bans].sort() };
}

/**
 * Restores the projection that {@link saveGroup} stored.
 *
 * @throws ProtocolError `bad_request` for JSON that is no consistent state (05 §5.5)
 * @example
 * const group = restoreGroup(JSON.parse(text));
 */
export function restoreGroup(saved: unknown): GroupProjection {
  checkSchema(SavedGroup, saved, 'group');
  const members = new Map(saved.members.map((member) => [member.account, member]));
  const bans = new Set(saved.bans);
  const owners = saved.members.filter((member) => member.role === 'owner');
  const consistent =
    members.size === saved.members.length &&
    bans.size === saved.bans.length &&
    owners.length === 1 &&
    owners[0]?.account === saved.owner &&
    saved.bans.every((account) => !members.has(account));
  if (!consistent) throw badRequest('group', 'members, owner and bans do not agree');
  return { ...saved, members, bans };
}

function byAccount(a: GroupMember, b: GroupMember): number {
  return a.account < b.account ? -1 : 1;
}
