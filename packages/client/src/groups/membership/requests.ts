/**
 * Requests to a group: applications for membership, and requests for a new member key. Nothing is
 * sealed before every check of a request has passed (05 §3.6, §13.15, §13.23).
 */
import {
  checkApplicationInvite,
  type GroupApplication,
  type GroupApplicationList,
  type GroupInvite,
  type GroupMemberKey,
  type GroupMemberRecoveryRequest,
  type GroupProjection,
  type GroupRecoveryList,
  isGroupManager,
  verifyGroupApplicationList,
  verifyGroupRecoveryList,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../../core.ts';
import { unixSeconds } from '../../environment.ts';
import { ClientError, checkInput, isRefusal } from '../../errors.ts';
import { clientSecret, secretBytes } from '../keys/key-rows.ts';
import { sealBoxes } from '../keys/secret-boxes.ts';
import { refreshGroup, requireGroup, requireGroupRow } from '../timeline/read-group.ts';
import { writeChainEvent } from '../timeline/write-chain-event.ts';
import { type GroupList, readGroupList } from './group-lists.ts';
import { resolveInvite } from './invitations.ts';

/** A verified application. */
export type PendingApplication = GroupApplicationList['applications'][number];
/** A verified key recovery request. */
export type PendingRecovery = GroupRecoveryList['requests'][number];

/** Limit of accounts in one change: with their boxes they fit into one call. */
export const accountsAtOnce = 1_000;

/** One kind of request: its list, its record, and the methods that decide about it. */
interface RequestKind<P, E, R> extends GroupList<P, E> {
  requestOf(entry: E): R;
  /** Checks what no rule of the chain repeats, for the state that is signed on. */
  checkMember?(group: GroupProjection, member: GroupMemberKey): void;
  readonly approval: 'group.application.approval' | 'group.member.recovery.approval';
  readonly approve: 'group.application.approve' | 'group.member.recovery.approve';
  readonly reject: 'group.application.reject' | 'group.member.recovery.reject';
  /** What is wrong with an account that has no request. */
  readonly missing: string;
}

const applications: RequestKind<GroupApplicationList, PendingApplication, GroupApplication> = {
  method: 'group.application.list',
  verify: (network, page, request) => {
    verifyGroupApplicationList(network, page, request);
    return page;
  },
  entriesOf: (page) => page.applications,
  signatureOf: ({ application }) => application.device_signature,
  requestOf: ({ application }) => application,
  approval: 'group.application.approval',
  approve: 'group.application.approve',
  reject: 'group.application.reject',
  missing: 'did not apply: list the applications again',
};

const recoveries: RequestKind<GroupRecoveryList, PendingRecovery, GroupMemberRecoveryRequest> = {
  method: 'group.member.recovery.list',
  verify: (network, page, request) => {
    verifyGroupRecoveryList(network, page, request);
    return page;
  },
  entriesOf: (page) => page.requests,
  signatureOf: ({ request }) => request.device_signature,
  requestOf: ({ request }) => request,
  checkMember: requireNewKey,
  approval: 'group.member.recovery.approval',
  approve: 'group.member.recovery.approve',
  reject: 'group.member.recovery.reject',
  missing: 'did not ask for a new key: list the recoveries again',
};

interface RequestSelection {
  readonly groupId: string;
  readonly accounts: readonly string[];
}

/** Lists pending applications, each verified with the certificate it was accepted with. */
export async function listApplications(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<PendingApplication[]> {
  return await readGroupList(core, applications, { groupId, signal });
}

/** Lists the key recovery requests this account may see, each verified. */
export async function listRecoveries(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<PendingRecovery[]> {
  return await readGroupList(core, recoveries, { groupId, signal });
}

/**
 * Admits applicants: reads and verifies their applications and the invitations that these name,
 * seals the client secret to each applicant's key, and signs.
 *
 * @throws ClientError `invalid_input` for an account that did not apply, or with an invitation that
 *   is not for it; `not_permitted`, `group_key_missing`
 */
export async function approveApplications(
  core: AccountCore,
  selection: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  const { groupId } = selection;
  await refreshGroup(core, groupId, signal);
  await requireManager(core, groupId);
  const invites = new Map<string, GroupInvite>();
  await approve(core, applications, selection, {
    signal,
    checkRequest: async (application) => {
      const inviteId = application.invite_id;
      const invite =
        invites.get(inviteId) ?? (await resolveInvite(core, { groupId, inviteId }, signal)).invite;
      invites.set(inviteId, invite);
      checkInvitation(core, application, invite);
    },
  });
}

/**
 * Gives members the new keys they asked for.
 *
 * @throws ClientError `invalid_input` for an account that asked for none; `not_permitted`,
 *   `group_key_missing`
 */
export async function approveRecoveries(
  core: AccountCore,
  selection: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  await refreshGroup(core, selection.groupId, signal);
  await approve(core, recoveries, selection, { signal });
}

async function approve<P extends { readonly next?: string }, E, R extends GroupMemberKey>(
  core: AccountCore,
  kind: RequestKind<P, E, R>,
  { groupId, accounts }: RequestSelection,
  options: { readonly signal: AbortSignal; checkRequest?(request: R): Promise<void> },
): Promise<void> {
  const { signal, checkRequest } = options;
  const entries = await readGroupList(core, kind, { groupId, signal });
  const requests = entries.map((entry) => kind.requestOf(entry));
  const members: GroupMemberKey[] = [];
  for (const account of new Set(accounts)) {
    const request = requests.find((each) => each.account === account);
    if (request === undefined) throw new ClientError('invalid_input', `${account} ${kind.missing}`);
    await checkRequest?.(request);
    // Account and key as the verified request has them, and nothing else of it.
    const { member_encryption_public_key } = request;
    members.push({ account, member_encryption_public_key });
  }
  for (let at = 0; at < members.length; at += accountsAtOnce) {
    const batch = members.slice(at, at + accountsAtOnce);
    await writeChainEvent(core, groupId, {
      kind: kind.approval,
      method: kind.approve,
      signal,
      fields: (group) => {
        for (const member of batch) kind.checkMember?.(group, member);
        return { members: batch };
      },
      params: (approval, group) => approvalParams(core, { approval, group, members: batch }),
    });
  }
}

/**
 * Rejects applications.
 * @throws ClientError `invalid_input` for an account that did not apply
 */
export async function rejectApplications(
  core: AccountCore,
  selection: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  await reject(core, applications, selection, signal);
}

/**
 * Rejects requests of other accounts, or withdraws the own one.
 * @throws ClientError `invalid_input` for an account without a request
 */
export async function rejectRecoveries(
  core: AccountCore,
  selection: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  await reject(core, recoveries, selection, signal);
}

async function reject<P extends { readonly next?: string }, E, R extends GroupMemberKey>(
  core: AccountCore,
  kind: RequestKind<P, E, R>,
  { groupId, accounts }: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  const { relay_id: relayId } = await requireGroupRow(core, groupId);
  const selected = [...new Set(accounts)];
  const pending = async () => {
    const entries = await readGroupList(core, kind, { groupId, signal });
    return new Set(entries.map((entry) => kind.requestOf(entry).account));
  };
  const before = await pending();
  const missing = selected.find((account) => !before.has(account));
  if (missing !== undefined) throw new ClientError('invalid_input', `${missing} ${kind.missing}`);
  try {
    const params = { group_id: groupId, accounts: selected };
    await core.relay(relayId).call(kind.reject, params, { signal });
  } catch (error) {
    if (!isRefusal(error, 'not_found')) throw error;
    // None left: rejected by a call whose answer was lost, or by another manager.
    const rest = await pending();
    if (selected.some((account) => rest.has(account))) throw error;
  }
}

/** @throws ClientError `invalid_input` */
function checkInvitation(
  core: AccountCore,
  application: GroupApplication,
  invite: GroupInvite,
): void {
  const { account } = application;
  checkInput(account, () => checkApplicationInvite(application, invite));
  if (invite.expires_at <= unixSeconds(core.clock)) {
    throw new ClientError('invalid_input', `${account}: the invitation has expired`);
  }
}

/** The chain's rules do not check that the key is a new one (05 §4.8). */
function requireNewKey(group: GroupProjection, member: GroupMemberKey): void {
  const key = group.members.get(member.account)?.member_encryption_public_key;
  if (key === member.member_encryption_public_key) {
    throw new ClientError('invalid_input', `${member.account} has this key already`);
  }
}

/** Seals the client secret to each account, for the commitment of the state that is signed on. */
async function approvalParams(
  core: AccountCore,
  {
    approval,
    group,
    members,
  }: {
    readonly approval: JsonObject;
    readonly group: GroupProjection;
    readonly members: readonly GroupMemberKey[];
  },
): Promise<JsonObject> {
  const { group_id, client_secret_commitment } = group;
  const text = await core.store.read((tx) => clientSecret(tx, group_id, client_secret_commitment));
  if (text === undefined) {
    throw new ClientError(
      'group_key_missing',
      'the current client secret is not stored here: synchronize, or ask for a new key',
    );
  }
  const secret = secretBytes(text);
  const sealed = { group_id, client_secret_commitment, secret };
  return {
    approval,
    client_secret_commitment,
    client_secret_boxes: sealBoxes(core, sealed, members),
  };
}

/** @throws ClientError `not_permitted` */
async function requireManager(core: AccountCore, groupId: string): Promise<void> {
  const { group } = await requireGroup(core, groupId);
  const role = group.members.get(core.account)?.role ?? 'member';
  if (!isGroupManager(role)) {
    throw new ClientError(
      'not_permitted',
      'only the owner and administrators decide about requests',
    );
  }
}
