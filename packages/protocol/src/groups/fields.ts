/** Members that several group objects share, and their rules (05 §2, §4.1, §4.4). */
import { badRequest } from '../errors.ts';
import { checkAccountId } from '../identity/account-id.ts';
import type { Network } from '../identity/network.ts';
import { limits } from '../limits.ts';
import {
  AccountId,
  checkPart,
  checkText,
  memberPath,
  type Static,
  Type,
  X25519PublicKey,
} from '../schema.ts';

/** Roles of members (05 §6). */
export const GroupRole = Type.Union([
  Type.Literal('owner'),
  Type.Literal('administrator'),
  Type.Literal('member'),
]);
export type GroupRole = Static<typeof GroupRole>;

/** Roles that a role update can set (05 §4.4). */
export const AssignableGroupRole = Type.Union([
  Type.Literal('administrator'),
  Type.Literal('member'),
]);

/** What ordinary members may create; owner and administrators may create all (05 §4.1). */
export const GroupInvitePolicy = Type.Union([
  Type.Literal('administrators'),
  Type.Literal('members_targeted'),
  Type.Literal('members_shareable'),
]);
export type GroupInvitePolicy = Static<typeof GroupInvitePolicy>;

/** `closed` is permanent (05 §4.1). */
export const GroupStatus = Type.Union([Type.Literal('active'), Type.Literal('closed')]);
export type GroupStatus = Static<typeof GroupStatus>;

/** How many members a group takes in; may lie below the present count (05 §4.1). */
export const GroupCapacity = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

/** An account with its member key, as approvals and the creation name it (05 §4.4, §4.5). */
export const GroupMemberKey = Type.Object({
  account: AccountId,
  member_encryption_public_key: X25519PublicKey,
});
export type GroupMemberKey = Static<typeof GroupMemberKey>;

/** Accounts as batches name them: nonempty; {@link checkAccounts} refuses repetition. */
export const AccountBatch = Type.Array(AccountId, { minItems: 1 });

/**
 * Checks a group's name: not empty, size (05 §4.1).
 * @throws ProtocolError `bad_request`
 */
export function checkGroupName(name: string, path: string): void {
  checkText(name, { maxBytes: limits.groupNameBytes, allowEmpty: false }, path);
}

/**
 * Checks a group's description: size, not white space alone (05 §4.1).
 * @throws ProtocolError `bad_request`
 */
export function checkGroupDescription(description: string, path: string): void {
  checkText(description, { maxBytes: limits.groupDescriptionBytes, allowEmpty: true }, path);
}

/**
 * Checks a batch of accounts: each one of this network, none twice (05 §4.4).
 * @throws ProtocolError `bad_request`
 */
export function checkAccounts(network: Network, accounts: readonly string[], path: string): void {
  if (checkedLists.get(accounts) === network) return;
  checkDistinct(accounts, path);
  for (const [index, account] of accounts.entries()) {
    checkAccountId(network, account, `${path}.${index}`);
  }
}

/** Lists whose accounts were checked in steps, with the network. */
const checkedLists = new WeakMap<object, Network>();

/** Accounts that one step checks. */
const stepAccounts = 50;
/** Accounts that one step compares with those before them. */
const stepDistinct = 500;

/**
 * Checks the accounts of a large list in steps, so that {@link checkAccounts} and
 * {@link checkMemberKeys} of the same list are fast afterwards.
 *
 * @throws ProtocolError `bad_request`
 */
export function* checkAccountsInSteps(
  network: Network,
  list: readonly (string | GroupMemberKey)[],
  path: string,
): Generator<undefined, void> {
  if (list.length < stepAccounts) return;
  const accountOf = (item: string | GroupMemberKey) =>
    typeof item === 'string' ? item : item.account;
  yield* checkDistinctInSteps(list, accountOf, path);
  for (const [index, item] of list.entries()) {
    const at = `${path}.${index}`;
    if (typeof item !== 'string') checkPart(item, at);
    checkAccountId(
      network,
      accountOf(item),
      typeof item === 'string' ? at : memberPath(at, 'account'),
    );
    if (index % stepAccounts === stepAccounts - 1) yield;
  }
  checkedLists.set(list, network);
}

function* checkDistinctInSteps<T>(
  list: readonly T[],
  accountOf: (item: T) => string,
  path: string,
): Generator<undefined, void> {
  const accounts = new Set<string>();
  for (const [index, item] of list.entries()) {
    accounts.add(accountOf(item));
    if (accounts.size <= index) throw namedTwice(path);
    if (index % stepDistinct === stepDistinct - 1) yield;
  }
}

/** Cheaper than all that is asked of each account, so it comes before. */
function checkDistinct(accounts: readonly string[], path: string): void {
  if (new Set(accounts).size !== accounts.length) throw namedTwice(path);
}

const namedTwice = (path: string) => badRequest(path, 'names an account twice');

/**
 * Checks the `members` of an approval: accounts as in {@link checkAccounts} (05 §4.4).
 * @throws ProtocolError `bad_request`
 */
export function checkMemberKeys(
  network: Network,
  members: readonly GroupMemberKey[],
  path: string,
): void {
  if (checkedLists.get(members) === network) return;
  checkDistinct(
    members.map(({ account }) => account),
    path,
  );
  for (const [index, member] of members.entries()) {
    const at = `${path}.${index}`;
    checkPart(member, at);
    checkAccountId(network, member.account, memberPath(at, 'account'));
  }
}
