/** Requesting a new member key after the old one was lost (05 §9.3, §13.21, §17.4). */
import {
  checkGroupRecoveryAcceptance,
  type GroupMemberRecoveryRequest,
  signAsDevice,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { checkRelayAnswer, isRefusal } from '../../errors.ts';
import { listRecoveries } from '../membership/requests.ts';
import { refreshGroup, requireGroupRow } from '../timeline/read-group.ts';
import { recoveryCandidates } from './key-candidates.ts';
import { newMemberKey, putMemberKey } from './key-rows.ts';

/**
 * Requests a new member key. The key is stored before the request leaves and never removed: the
 * chain may name it long after the host stopped listing the request. A pending request is sent
 * again with the same key.
 *
 * @returns Unix seconds until which the owner or an administrator can approve it
 */
export async function requestRecovery(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<number> {
  const { network, account, device, store, clock } = core;
  await refreshGroup(core, groupId, signal);
  const { relay_id: relayId } = await requireGroupRow(core, groupId);
  const stored = await store.read((tx) => recoveryCandidates.get(tx, groupId));
  const isOver = (stored?.expires_at ?? Number.POSITIVE_INFINITY) * 1_000 <= clock.milliseconds();
  let candidate = isOver ? undefined : stored;
  if (candidate === undefined) {
    const { publicKey, privateKey } = newMemberKey(core);
    const unsigned = {
      $type: network.type('group.member.recovery'),
      account,
      group_id: groupId,
      member_encryption_public_key: publicKey,
    };
    const request: GroupMemberRecoveryRequest = signAsDevice(network, unsigned, device);
    const made = { request };
    candidate = made;
    await store.write(async (tx) => {
      await putMemberKey(tx, { groupId, publicKey }, { privateKey, isOwn: true });
      await recoveryCandidates.put(tx, groupId, made);
    });
  }
  const method = 'group.member.recovery.submit';
  const { request } = candidate;
  const answer = await core.relay(relayId).call(method, request, { signal });
  checkRelayAnswer('invalid_group_answer', method, () => checkGroupRecoveryAcceptance(answer));
  const { expires_at } = answer;
  await store.write((tx) => recoveryCandidates.put(tx, groupId, { request, expires_at }));
  return expires_at;
}

/**
 * Removes a request that the host no longer lists, after reading the group: either its key is
 * active now, or the request was not approved (05 §17.4).
 */
export async function removeSettledRecovery(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): Promise<void> {
  const { store } = core;
  const candidate = await store.read((tx) => recoveryCandidates.get(tx, groupId));
  // Without an answer, the host may never have received the request.
  if (candidate?.expires_at === undefined) return;
  const { request } = candidate;
  if (await isListed(core, { groupId, request }, signal)) return;
  await refreshGroup(core, groupId, signal);
  await store.write(async (tx) => {
    const latest = await recoveryCandidates.get(tx, groupId);
    if (latest?.request.device_signature !== request.device_signature) return;
    await recoveryCandidates.delete(tx, groupId);
  });
}

async function isListed(
  core: AccountCore,
  own: { readonly groupId: string; readonly request: GroupMemberRecoveryRequest },
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const listed = await listRecoveries(core, own.groupId, signal);
    return listed.some(({ request }) => request.device_signature === own.request.device_signature);
  } catch (error) {
    if (isRefusal(error, 'forbidden', 'not_found')) return false;
    throw error;
  }
}
