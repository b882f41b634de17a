/** Joining a group: invitation link, application, adding and forgetting (05 §13.13, §17.3). */
import {
  checkGroupResolution,
  checkSchema,
  GroupId,
  GroupInviteId,
  type GroupState,
  RelayId,
  type Static,
  signAsDevice,
  Type,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../../core.ts';
import { ClientError, checkRelayAnswer, isClientError, isRefusal } from '../../errors.ts';
import { decodeLink, encodeLink } from '../../link-text.ts';
import type { StoreWriter } from '../../store/index.ts';
import {
  asEnded,
  emptyGroupRow,
  type GroupRow,
  groupRow,
  groups,
  putGroup,
} from '../group-rows.ts';
import { newMemberKey, putMemberKey } from '../keys/key-rows.ts';
import { readGroupBuffered } from '../timeline/read-group.ts';

/** What an invitation's link holds: enough to find the group and to apply. */
const InviteAddress = Type.Object({
  relay_id: RelayId,
  group_id: GroupId,
  invite_id: GroupInviteId,
});
export type InviteAddress = Static<typeof InviteAddress>;

/**
 * Encodes an invitation's address as one word of text, for links and QR codes. Only the ID of a
 * public invitation is secret, and nothing in it is trusted: the group's ID is bound to host and
 * creator, and the host checks the invitation.
 */
export function encodeInviteAddress(core: AccountCore, address: InviteAddress): string {
  const { relay_id, group_id, invite_id } = address;
  return encodeLink(core.network, 'group', { relay_id, group_id, invite_id });
}

/** Decodes an invitation's link. @throws ClientError `verification_failed` */
export function decodeInviteAddress(core: AccountCore, text: string): InviteAddress {
  try {
    const address = decodeLink(core.network, 'group', text);
    checkSchema(InviteAddress, address, 'invitation');
    return address;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'invalid';
    throw new ClientError('verification_failed', `invitation: ${reason}`, { cause });
  }
}

/**
 * Reads the host's description of a group, for display only (05 §13.3): nothing of it is verified.
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function previewGroup(
  core: AccountCore,
  address: InviteAddress,
  signal: AbortSignal,
): Promise<GroupState> {
  const { relay_id, group_id, invite_id } = address;
  const method = 'group.resolve';
  const params = { group_id, invite_id };
  const answer = await core.relay(relay_id).call(method, params, { signal });
  checkRelayAnswer('invalid_group_state', method, () =>
    checkGroupResolution(core.network, answer, params),
  );
  return answer;
}

/**
 * Adds a group by its ID and host, and reads it. If the host has no such group, or refuses this
 * account to read it, the stored row is restored.
 *
 * @throws ClientError `invalid_input`, `not_a_member`, `no_relay`
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function addGroup(
  core: AccountCore,
  { groupId, relayId }: { readonly groupId: string; readonly relayId: string },
  signal: AbortSignal,
): Promise<void> {
  const { store } = core;
  checkAddress(groupId, relayId);
  const before = await store.write(async (tx) => {
    const known = await groupRow(tx, groupId);
    const fresh = emptyGroupRow({ group_id: groupId, relay_id: relayId });
    // Verified state is bound to its host by the group's ID; anything else may be a wrong address.
    const isUnread = known?.standing === 'known' || known?.standing === 'ended';
    if (known === undefined || (isUnread && known.facts === undefined)) {
      await putGroup(tx, { ...fresh, standing: 'known' });
    } else if (known.standing === 'ended') {
      const { isForgotten: _again, ...row } = known;
      await putGroup(tx, { ...row, standing: 'known' });
    }
    return known;
  });
  try {
    await readGroupBuffered(core, groupId, signal);
    const row = await store.read((tx) => groupRow(tx, groupId));
    if (row?.standing === 'ended') {
      throw new ClientError(
        'not_a_member',
        `the host of ${groupId} refuses this account: check the ID, or apply by an invitation`,
      );
    }
    core.wakeSignal.wake();
  } catch (error) {
    const isWrong =
      isRefusal(error, 'not_found') ||
      isClientError(error, 'not_a_member') ||
      isClientError(error, 'no_relay');
    if (isWrong) await store.write((tx) => restoreGroupRow(tx, groupId, before));
    throw error;
  }
}

/** Restores a row as it was before; deletes it if there was none. */
async function restoreGroupRow(
  tx: StoreWriter,
  groupId: string,
  before: GroupRow | undefined,
): Promise<void> {
  await (before === undefined ? groups.delete(tx, groupId) : putGroup(tx, before));
}

/** @throws ClientError `invalid_input` */
function checkAddress(groupId: string, relayId: string): void {
  const parts = [
    [GroupId, groupId, 'group'],
    [RelayId, relayId, 'relay'],
  ] as const;
  for (const [schema, value, what] of parts) {
    try {
      checkSchema(schema, value, what);
    } catch (cause) {
      throw new ClientError('invalid_input', `${value} is not a ${what} ID: check the address`, {
        cause,
      });
    }
  }
}

/**
 * Hides a group and stops reading it.
 *
 * @param options.evenAsMember also forgets a group that the account is a member of, as far as this
 *   device knows: a group whose host is gone cannot be left. Closed and blocked groups do not need
 *   it.
 * @throws ClientError `invalid_input` for a member
 */
export async function forgetGroup(
  core: AccountCore,
  groupId: string,
  { evenAsMember = false }: { readonly evenAsMember?: boolean } = {},
): Promise<void> {
  await core.store.write(async (tx) => {
    const row = await groupRow(tx, groupId);
    if (row === undefined) return;
    const isOver = row.facts?.status === 'closed' || row.blocked !== undefined;
    if (row.standing === 'member' && !isOver && !evenAsMember) {
      throw new ClientError(
        'invalid_input',
        'the account is a member: leave the group before forgetting it',
      );
    }
    const { application: _withdrawn, creation: _given, ...rest } = row;
    await putGroup(tx, { ...asEnded(rest), isForgotten: true });
  });
}

/**
 * Applies for membership with a new member key, stored before the application leaves. The group is
 * read as soon as its host permits it; only then the key is activated (05 §17.3).
 *
 * @throws ClientError `invalid_input` if the account is a member already
 */
export async function applyToGroup(
  core: AccountCore,
  address: InviteAddress,
  signal: AbortSignal,
): Promise<void> {
  const { network, account, device, store } = core;
  const { relay_id, group_id, invite_id } = address;
  const presumed = await store.read((tx) => groupRow(tx, group_id));
  // The account may have been removed and invited again before this device read that.
  if (presumed?.standing === 'member') await readGroupBuffered(core, group_id, signal);
  const { publicKey: member_encryption_public_key, privateKey } = newMemberKey(core);
  const unsigned: JsonObject = {
    $type: network.type('group.application'),
    account,
    group_id,
    invite_id,
    member_encryption_public_key,
  };
  const application = signAsDevice(network, unsigned, device) as Required<GroupRow>['application'];
  const before = await store.write(async (tx) => {
    const known = await groupRow(tx, group_id);
    if (known?.standing === 'member' || known?.standing === 'creating') {
      throw new ClientError('invalid_input', `the account is a member of ${group_id} already`);
    }
    // Verified state is bound to its host by the group's ID; anything else may be a wrong address.
    const fresh: GroupRow = { ...emptyGroupRow({ group_id, relay_id }), standing: 'applied' };
    const { isForgotten: _again, ...row } = known?.facts === undefined ? fresh : known;
    const appliedAt = core.clock.milliseconds();
    await putGroup(tx, { ...row, standing: 'applied', application, appliedAt });
    const id = { groupId: group_id, publicKey: member_encryption_public_key };
    await putMemberKey(tx, id, { privateKey, isOwn: true });
    return known;
  });
  try {
    await submitApplication(core, { group_id, relay_id, application }, signal);
    core.wakeSignal.wake();
  } catch (error) {
    // Refused for good: restore the row.
    const isFinal =
      isRefusal(error, 'forbidden', 'not_found', 'bad_request', 'state_conflict') ||
      isClientError(error, 'no_relay');
    if (isFinal) await store.write((tx) => restoreGroupRow(tx, group_id, before));
    throw error;
  }
}

/** Submits an application, unchanged in a repeat after a lost answer. */
export async function submitApplication(
  core: AccountCore,
  row: Pick<GroupRow, 'group_id' | 'relay_id' | 'application'>,
  signal: AbortSignal,
): Promise<void> {
  if (row.application === undefined) return;
  const method = 'group.application.submit';
  await core.relay(row.relay_id).call(method, row.application, { signal });
  await core.store.write(async (tx) => {
    const latest = await groupRow(tx, row.group_id);
    if (latest === undefined) return;
    const { application: _submitted, ...rest } = latest;
    await putGroup(tx, rest);
  });
}
