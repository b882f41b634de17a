/** Creating, listing, resolving and revoking invitations (05 §8.1, §13.9 to §13.12). */
import {
  checkGroupInvite,
  createGroupInviteId,
  type GroupInvite,
  type GroupInviteList,
  mayCreateInvite,
  signAsDevice,
  verifyGroupInviteList,
  verifyGroupInviteResolution,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { ClientError, checkInput, checkRelayAnswer, isRefusal } from '../../errors.ts';
import { refreshGroup, requireGroup, requireGroupRow } from '../timeline/read-group.ts';
import { type GroupList, readGroupList } from './group-lists.ts';
import { encodeInviteAddress } from './join-group.ts';

/** An invitation with its link and its uses so far. */
export interface IssuedInvite {
  readonly invite: GroupInvite;
  /** The invitation's link, as one word of text. */
  readonly text: string;
  readonly uses: number;
}

export interface InviteTerms {
  /** The one account that may use it, once; without it, anyone who has the link. */
  readonly invitee?: string | undefined;
  /** Limit of accounts admitted by a public invitation; without it, unlimited until it expires. */
  readonly maxUses?: number | undefined;
  /** Seconds until it expires; by default a week, or the host's limit if that is shorter. */
  readonly lifetime?: number | undefined;
}

const week = 604_800;

/** Creates an invitation. @throws ClientError `not_a_member`, `not_permitted`, `invalid_input` */
export async function createInvite(
  core: AccountCore,
  { groupId, terms }: { readonly groupId: string; readonly terms: InviteTerms },
  signal: AbortSignal,
): Promise<IssuedInvite> {
  const { network, account, device, random } = core;
  await refreshGroup(core, groupId, signal);
  const { row, group } = await requireGroup(core, groupId);
  const form = terms.invitee === undefined ? 'public' : 'targeted';
  const role = group.members.get(account)?.role ?? 'member';
  if (!mayCreateInvite(role, group.invite_policy, form)) {
    throw new ClientError(
      'not_permitted',
      `a ${role} may not create ${form} invitations here: ask an administrator`,
    );
  }
  const relay = core.relay(row.relay_id);
  const { limits } = await relay.call('relay.info', {}, { signal });
  const lifetime = Math.min(terms.lifetime ?? week, limits.max_group_invite_ttl ?? week);
  const make = () => {
    const created_at = relay.relayClock.now();
    const unsigned = {
      $type: network.type('group.invite'),
      invite_id: createGroupInviteId(random),
      group_id: groupId,
      inviter: account,
      ...(terms.invitee !== undefined && { invitee: terms.invitee }),
      ...(terms.maxUses !== undefined && { max_uses: terms.maxUses }),
      created_at,
      expires_at: created_at + lifetime,
    };
    const signed = signAsDevice(network, unsigned, device);
    checkInput('invitation', () => checkGroupInvite(network, signed));
    return signed;
  };
  let invite = make();
  try {
    await submitInvite(core, row.relay_id, { invite, signal });
  } catch (error) {
    if (!isRefusal(error, 'clock_skew')) throw error;
    relay.relayClock.adopt();
    invite = make();
    await submitInvite(core, row.relay_id, { invite, signal });
  }
  return { invite, text: textOf(core, row.relay_id, invite), uses: 0 };
}

async function submitInvite(
  core: AccountCore,
  relayId: string,
  { invite, signal }: { readonly invite: GroupInvite; readonly signal: AbortSignal },
): Promise<void> {
  try {
    await core.relay(relayId).call('group.invite.create', invite, { signal });
  } catch (error) {
    if (!isRefusal(error, 'state_conflict')) throw error;
    // The ID is taken, by this invitation if an earlier answer was lost.
    const id = { groupId: invite.group_id, inviteId: invite.invite_id };
    const taken = await resolveInvite(core, id, signal).catch(() => undefined);
    if (taken?.invite.device_signature !== invite.device_signature) throw error;
  }
}

function textOf(core: AccountCore, relay_id: string, invite: GroupInvite): string {
  const { group_id, invite_id } = invite;
  return encodeInviteAddress(core, { relay_id, group_id, invite_id });
}

/** Lists the valid invitations this account may see, each verified. */
export async function listInvites(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<IssuedInvite[]> {
  const entries = await readGroupList(core, invitations, { groupId, signal });
  const { relay_id: relayId } = await requireGroupRow(core, groupId);
  return entries.map(({ invite, uses }) => ({ invite, uses, text: textOf(core, relayId, invite) }));
}

const invitations: GroupList<GroupInviteList, GroupInviteList['invites'][number]> = {
  method: 'group.invite.list',
  verify: (network, page, request) => {
    verifyGroupInviteList(network, page, request);
    return page;
  },
  entriesOf: ({ invites }) => invites,
  signatureOf: ({ invite }) => invite.device_signature,
};

/** Reads one invitation by its ID, verified. */
export async function resolveInvite(
  core: AccountCore,
  { groupId, inviteId }: { readonly groupId: string; readonly inviteId: string },
  signal: AbortSignal,
): Promise<IssuedInvite> {
  const { relay_id: relayId } = await requireGroupRow(core, groupId);
  const method = 'group.invite.resolve';
  const params = { group_id: groupId, invite_id: inviteId };
  const answer = await core.relay(relayId).call(method, params, { signal });
  checkRelayAnswer('invalid_group_record', method, () =>
    verifyGroupInviteResolution(core.network, answer, params),
  );
  const { invite, uses } = answer;
  return { invite, uses, text: textOf(core, relayId, invite) };
}

/** Revokes an invitation. Revoking it twice, or in a closed group, is a no-op. */
export async function revokeInvite(
  core: AccountCore,
  { groupId, inviteId }: { readonly groupId: string; readonly inviteId: string },
  signal: AbortSignal,
): Promise<void> {
  const { relay_id: relayId } = await requireGroupRow(core, groupId);
  const params = { group_id: groupId, invite_id: inviteId };
  try {
    await core.relay(relayId).call('group.invite.revoke', params, { signal });
  } catch (error) {
    // Revoked before, perhaps by a call whose answer was lost; or the group is closed.
    if (!isRefusal(error, 'state_conflict')) throw error;
  }
}
