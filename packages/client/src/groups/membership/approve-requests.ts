/**
 * Admitting applicants and giving members new keys. Nothing is sealed before every check of the
 * request has passed (05 §3.6, §13.15, §13.23).
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
  ProtocolError,
  verifyGroupApplicationList,
  verifyGroupRecoveryList,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../../core.ts';
import { unixSeconds } from '../../environment.ts';
import { ClientError, isRefusal } from '../../errors.ts';
import { clientSecret, secretBytes } from '../keys/key-rows.ts';
import { sealBoxes } from '../keys/secret-boxes.ts';
import { refreshGroup, requireGroup, requireGroupRow } from '../timeline/read-group.ts';
import { writeChainEvent } from '../timeline/write-chain-event.ts';
import { resolveInvite } from './invitations.ts';
import { readListPages } from './list-pages.ts';

/** An application as it was verified. */
export type PendingApplication = GroupApplicationList['applications'][number];
/** A key recovery request as it was verified. */
export type PendingRecovery = GroupRecoveryList['requests'][number];

/** Accounts in one change: with their boxes they stay well below what one call may carry. */
export const accountsAtOnce = 1_000;

interface RequestSelection {
  readonly groupId: string;
  readonly accounts: readonly string[];
}

/** Applications that wait, each verified with the certificate it was accepted with. */
export async function listApplications(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<PendingApplication[]> {
  const { relay_id: relayId } = await requireGroupRow(core, groupId);
  const pages = await readListPages(core, {
    relayId,
    method: 'group.application.list',
    groupId,
    signal,
    verify: (page, request) => {
      verifyGroupApplicationList(core.network, page, request);
      return page;
    },
    signatures: ({ applications }) =>
      applications.map(({ application }) => application.device_signature),
  });
  return pages.flatMap(({ applications }) => applications);
}

/**
 * Admits applicants: reads and verifies their applications and the invitations these name, then
 * seals the client secret to the key of each and signs.
 *
 * @throws ClientError `invalid_input` for an account that did not apply, or by an invitation that
 *   is not for it; `not_permitted`, `group_key_missing`
 */
export async function approveApplications(
  core: AccountCore,
  { groupId, accounts }: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  await refreshGroup(core, groupId, signal);
  await requireManager(core, groupId);
  const pending = await listApplications(core, groupId, signal);
  const invites = new Map<string, GroupInvite>();
  const chosen: GroupApplication[] = [];
  for (const account of new Set(accounts)) {
    const found = pending.find(({ application }) => application.account === account);
    if (found === undefined) throw new ClientError('invalid_input', `${account} did not apply`);
    const { application } = found;
    const inviteId = application.invite_id;
    const invite =
      invites.get(inviteId) ?? (await resolveInvite(core, { groupId, inviteId }, signal)).invite;
    invites.set(inviteId, invite);
    checkInvitation(core, application, invite);
    chosen.push(application);
  }
  for (let at = 0; at < chosen.length; at += accountsAtOnce) {
    await admit(core, { groupId, requests: chosen.slice(at, at + accountsAtOnce) }, signal);
  }
}

/** @throws ClientError `invalid_input` */
function checkInvitation(
  core: AccountCore,
  application: GroupApplication,
  invite: GroupInvite,
): void {
  try {
    checkApplicationInvite(application, invite);
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ClientError('invalid_input', `${application.account}: ${cause.message}`, { cause });
  }
  if (invite.expires_at <= unixSeconds(core.clock)) {
    throw new ClientError('invalid_input', `${application.account}: the invitation has expired`);
  }
}

async function admit(
  core: AccountCore,
  { groupId, requests }: { readonly groupId: string; readonly requests: GroupApplication[] },
  signal: AbortSignal,
): Promise<void> {
  const members = requests.map(memberKeyOf);
  await writeChainEvent(core, groupId, {
    kind: 'group.application.approval',
    method: 'group.application.approve',
    signal,
    fields: () => ({ members }),
    params: (approval, group) => approvalParams(core, { approval, group, members }),
  });
}

/** Account and key as the verified request has them, and nothing else of it. */
function memberKeyOf({ account, member_encryption_public_key }: GroupMemberKey): GroupMemberKey {
  return { account, member_encryption_public_key };
}

/**
 * Rejects applications.
 * @throws ClientError `invalid_input` for an account that did not apply
 */
export async function rejectApplications(
  core: AccountCore,
  { groupId, accounts }: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  await reject(
    core,
    { groupId, accounts },
    {
      method: 'group.application.reject',
      isMissing: 'did not apply',
      pending: async () => {
        const pending = await listApplications(core, groupId, signal);
        return pending.map(({ application }) => application.account);
      },
      signal,
    },
  );
}

async function reject(
  core: AccountCore,
  { groupId, accounts }: RequestSelection,
  what: {
    readonly method: 'group.application.reject' | 'group.member.recovery.reject';
    readonly isMissing: string;
    readonly pending: () => Promise<readonly string[]>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { method, isMissing, pending, signal } = what;
  const { relay_id: relayId } = await requireGroupRow(core, groupId);
  const chosen = [...new Set(accounts)];
  const before = await pending();
  const missing = chosen.find((account) => !before.includes(account));
  if (missing !== undefined) throw new ClientError('invalid_input', `${missing} ${isMissing}`);
  try {
    const params = { group_id: groupId, accounts: chosen };
    await core.relay(relayId).call(method, params, { signal });
  } catch (error) {
    if (!isRefusal(error, 'not_found')) throw error;
    // Done, where none is there any more: by the call whose answer was lost, or by somebody else.
    const left = await pending();
    if (chosen.some((account) => left.includes(account))) throw error;
  }
}

/** Key recovery requests this account may see, each verified. */
export async function listRecoveries(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<PendingRecovery[]> {
  const { relay_id: relayId } = await requireGroupRow(core, groupId);
  const pages = await readListPages(core, {
    relayId,
    method: 'group.member.recovery.list',
    groupId,
    signal,
    verify: (page, request) => {
      verifyGroupRecoveryList(core.network, page, request);
      return page;
    },
    signatures: ({ requests }) => requests.map(({ request }) => request.device_signature),
  });
  return pages.flatMap(({ requests }) => requests);
}

/**
 * Gives members the keys they asked for.
 * @throws ClientError `invalid_input` for an account that asked for none; `not_permitted`
 */
export async function approveRecoveries(
  core: AccountCore,
  { groupId, accounts }: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  await refreshGroup(core, groupId, signal);
  const pending = await listRecoveries(core, groupId, signal);
  const requests = [...new Set(accounts)].map((account) => {
    const found = pending.find(({ request }) => request.account === account);
    if (found !== undefined) return found.request;
    throw new ClientError('invalid_input', `${account} did not ask for a new key`);
  });
  for (let at = 0; at < requests.length; at += accountsAtOnce) {
    await rekey(core, { groupId, requests: requests.slice(at, at + accountsAtOnce) }, signal);
  }
}

async function rekey(
  core: AccountCore,
  {
    groupId,
    requests,
  }: { readonly groupId: string; readonly requests: GroupMemberRecoveryRequest[] },
  signal: AbortSignal,
): Promise<void> {
  const members = requests.map(memberKeyOf);
  await writeChainEvent(core, groupId, {
    kind: 'group.member.recovery.approval',
    method: 'group.member.recovery.approve',
    signal,
    fields: (group) => {
      for (const member of members) requireNewKey(group, member);
      return { members };
    },
    params: (approval, group) => approvalParams(core, { approval, group, members }),
  });
}

/** What no rule of the chain repeats: the key is a new one (05 §4.8). */
function requireNewKey(group: GroupProjection, member: GroupMemberKey): void {
  const key = group.members.get(member.account)?.member_encryption_public_key;
  if (key === member.member_encryption_public_key) {
    throw new ClientError('invalid_input', `${member.account} has this key already`);
  }
}

/**
 * Rejects requests of others, or withdraws the own one.
 * @throws ClientError `invalid_input` for an account that asked for nothing
 */
export async function rejectRecoveries(
  core: AccountCore,
  { groupId, accounts }: RequestSelection,
  signal: AbortSignal,
): Promise<void> {
  await reject(
    core,
    { groupId, accounts },
    {
      method: 'group.member.recovery.reject',
      isMissing: 'did not ask for a new key',
      pending: async () => {
        const pending = await listRecoveries(core, groupId, signal);
        return pending.map(({ request }) => request.account);
      },
      signal,
    },
  );
}

/** The client secret in a box for each account, for the commitment of the state it is sealed on. */
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
    throw new ClientError('group_key_missing', 'the present client secret is not here');
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
    throw new ClientError('not_permitted', 'only owner and administrators decide about this');
  }
}
