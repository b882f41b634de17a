/**
 * Handing back the changes of a group that its host lost, as the owner (05 §5.6): an entry of its own,
 * because few apps need it.
 */
import {
  type GroupClose,
  type GroupMemberKey,
  type GroupProjection,
  signAsDevice,
} from '@posthouse/protocol';
import { Account } from '../account.ts';
import { type Abortable, signalOf } from '../api/options.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import type { StoreReader } from '../store/index.ts';
import { callHost } from '../sync/host-calls.ts';
import { restoredAtOf } from '../sync/reach-relay.ts';
import { type GroupRow, groupRow, loadGroup, putGroup } from './group-rows.ts';
import { clientSecret, secretBytes } from './keys/key-rows.ts';
import { sealBoxes } from './keys/secret-boxes.ts';
import { type ChainProof, chainProof } from './timeline/chain-proofs.ts';
import { listGroupEntries } from './timeline/group-entries.ts';
import type { GroupChangeRow } from './timeline/group-entry.ts';
import { readGroupBuffered } from './timeline/read-group.ts';

/** Changes that are asked for at once, newest first. */
const batchSize = 100;

/**
 * Hands back the changes of a group that its host lost when it was put back to an earlier state. Then
 * accounts that were removed are no members any more, and those that were admitted are members again. A
 * group that was closed is closed again.
 *
 * @returns how many changes the host had lost; 0 if none
 * @throws ClientError `not_a_member`, `not_permitted` if the account is not the owner; `invalid_input`
 *   if this device has no copy of a change: try another device of the owner
 * @throws RelayRefused: `state_conflict` if the group was changed at the host since it was restored, or
 *   the host cannot take changes back: create another group; RelayUnreachable, RelayMisbehaviour
 * @example
 * import { handBackGroup } from '@posthouse/client/hand-back';
 *
 * const count = await handBackGroup(account, groupId);
 * console.log(`${count} changes`);
 */
export async function handBackGroup(
  account: Account,
  groupId: string,
  options: Abortable = {},
): Promise<number> {
  const core = Account.coreOf(account);
  const signal = signalOf(options);
  await readGroupBuffered(core, groupId, signal);
  const { row, group } = await core.store.read((tx) => loadGroup(tx, groupId));
  if (group?.members.get(core.account) === undefined) {
    throw new ClientError('not_a_member', `the account is no member of ${groupId}`);
  }
  if (group.owner !== core.account) {
    throw new ClientError('not_permitted', 'only the owner can hand changes back: ask the owner');
  }
  const changes = await lostChanges(core, row, signal);
  const [newest] = changes.slice(-1);
  if (newest === undefined) return 0;
  if (newest.type === 'group.close' && (await isClosedThere(core, row, signal))) return 0;
  const closing = newest.type === 'group.close' ? newest : undefined;
  const lost = closing === undefined ? changes : changes.slice(0, -1);
  const $type = core.network.type(closing === undefined ? 'group.update' : 'group.close');
  const prev_hash = closing === undefined ? group.head : await headBefore(core, closing);
  const unsigned = {
    ...{ $type, group_id: groupId, prev_hash },
    ...(closing === undefined && { name: group.name }),
    ...(lost.length > 0 && { restore: await restoreOf(core, group, lost) }),
  };
  const params = signAsDevice(core.network, unsigned, core.device);
  const method = closing === undefined ? 'group.update' : 'group.close';
  await callHost(core, row.relay_id, { method, params: params as never, signal });
  // The state of a closed group is final here: what the host appends to it is not read.
  if (closing !== undefined) await markHandedBack(core, row, signal);
  else await readGroupBuffered(core, groupId, signal);
  return changes.length;
}

/** Seals and collects what the host lost. @throws ClientError `invalid_input` */
async function restoreOf(
  core: AccountCore,
  group: GroupProjection,
  lost: readonly GroupChangeRow[],
) {
  const { group_id, client_secret_commitment } = group;
  const proofs = await core.store.read((tx) => proofsOf(tx, lost));
  const secret = await core.store.read((tx) =>
    clientSecret(tx, group_id, client_secret_commitment),
  );
  if (secret === undefined) {
    throw new ClientError('invalid_input', 'this device lacks the secret: try another device');
  }
  const bound = { group_id, client_secret_commitment, secret: secretBytes(secret) };
  const certificates = new Map(
    proofs.flatMap(({ event, certificate }) =>
      certificate === undefined ? [] : [[event.signer_device_id, certificate]],
    ),
  );
  return {
    events: proofs.map(({ event }) => event),
    certificates: [...certificates.values()],
    client_secret_boxes: sealBoxes(core, bound, membersToSeal(group, lost)),
  };
}

/** Returns the head before a change. @throws ClientError `invalid_input` */
async function headBefore(core: AccountCore, change: GroupChangeRow): Promise<string> {
  const [proof] = (await core.store.read((tx) => proofsOf(tx, [change]))) as [ChainProof];
  return (proof.event.payload as unknown as GroupClose).prev_hash;
}

/** Whether a group is closed at its host, by another device of the owner or an earlier command. */
async function isClosedThere(
  core: AccountCore,
  row: GroupRow,
  signal: AbortSignal,
): Promise<boolean> {
  const { group_id, relay_id } = row;
  const call = { method: 'group.resolve', params: { group_id }, signal } as const;
  if ((await callHost(core, relay_id, call)).status !== 'closed') return false;
  await markHandedBack(core, row, signal);
  return true;
}

async function markHandedBack(
  core: AccountCore,
  { group_id, relay_id }: GroupRow,
  signal: AbortSignal,
): Promise<void> {
  const restoredAt = await restoredAtOf(core, relay_id, signal);
  await core.store.write(async (tx) => {
    const latest = await groupRow(tx, group_id);
    if (latest === undefined) return;
    const { blocked: _over, ...row } = latest;
    await putGroup(tx, { ...row, restoredAt });
  });
}

/**
 * Returns the stored changes after the last one that the host has, oldest first. Of rotations that the host
 * made, those whose epoch is the one of a change.
 */
async function lostChanges(
  core: AccountCore,
  address: { readonly group_id: string; readonly relay_id: string },
  signal: AbortSignal,
): Promise<GroupChangeRow[]> {
  const { hasChange } = await core.later();
  const has = (change: GroupChangeRow) => hasChange(core, address, { ...change, signal });
  const found: GroupChangeRow[] = [];
  for (let before: number | undefined; ; ) {
    const range = { ...(before !== undefined && { before }), limit: batchSize, newestFirst: true };
    const entries = await core.store.read((tx) => listGroupEntries(tx, address.group_id, range));
    const changes = entries.filter((entry) => entry.kind === 'change');
    const count = await countLost(changes, has);
    found.push(...changes.slice(0, count));
    if (count < changes.length || entries.length < batchSize) break;
    before = entries.at(-1)?.sequence;
  }
  found.reverse();
  const lost = found.filter(({ signature }, index) => signature ?? found[index + 1]?.signature);
  const [first] = lost;
  const isThere = first !== undefined && (await has(first));
  return isThere ? lost.slice(1) : lost;
}

/**
 * Counts the newest changes that the host lacks, with few questions: it has the older ones.
 * @param changes newest first
 */
async function countLost(
  changes: readonly GroupChangeRow[],
  has: (change: GroupChangeRow) => Promise<boolean>,
): Promise<number> {
  const signed = changes.filter(({ signature }) => signature !== undefined);
  let [least, most] = [0, signed.length];
  while (least < most) {
    const middle = (least + most) >>> 1;
    if (await has(signed[middle] as GroupChangeRow)) most = middle;
    else least = middle + 1;
  }
  const newestThere = signed[least];
  return newestThere === undefined ? changes.length : changes.indexOf(newestThere);
}

/** @throws ClientError `invalid_input` */
async function proofsOf(
  tx: StoreReader,
  changes: readonly GroupChangeRow[],
): Promise<readonly ChainProof[]> {
  const proofs: ChainProof[] = [];
  for (const { group_id, sequence } of changes) {
    const proof = await chainProof(tx, group_id, sequence);
    if (proof === undefined) {
      throw new ClientError(
        'invalid_input',
        `this device has no copy of change ${sequence}: try another device of the owner, or create ` +
          'another group',
      );
    }
    proofs.push(proof);
  }
  return proofs;
}

/** Members for whom the host has no box: all after a rotation, else those with a key that is new. */
function membersToSeal(
  group: GroupProjection,
  changes: readonly GroupChangeRow[],
): GroupMemberKey[] {
  const isRotated = changes.some(({ type }) => type === 'group.secret.rotation');
  const changed = new Set(
    changes.flatMap(({ joined = [], rekeyed = [] }) => [...joined, ...rekeyed]),
  );
  return [...group.members.values()].filter(({ account }) => isRotated || changed.has(account));
}
