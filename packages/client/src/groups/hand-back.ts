/**
 * Handing back the changes of a group that its host lost, as the owner (05 §5.6): an entry of its own,
 * because few apps need it.
 */
import { type GroupMemberKey, type GroupProjection, signAsDevice } from '@posthouse/protocol';
import { Account } from '../account.ts';
import { type Abortable, signalOf } from '../api/options.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import type { StoreReader } from '../store/index.ts';
import { callHost } from '../sync/host-calls.ts';
import { loadGroup } from './group-rows.ts';
import { clientSecret, secretBytes } from './keys/key-rows.ts';
import { sealBoxes } from './keys/secret-boxes.ts';
import { type ChainProof, chainProof } from './timeline/chain-proofs.ts';
import { hasChange } from './timeline/check-restored.ts';
import { listGroupEntries } from './timeline/group-entries.ts';
import type { GroupChangeRow } from './timeline/group-entry.ts';
import { readGroupBuffered } from './timeline/read-group.ts';

/** Changes that are asked for at once, newest first. */
const batchSize = 100;

/**
 * Hands back the changes of a group that its host lost when it was put back to an earlier state. Then
 * accounts that were removed are no members any more, and those that were admitted are members again.
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
  if (changes.length === 0) return 0;
  const proofs = await core.store.read((tx) => proofsOf(tx, changes));
  const secret = await core.store.read((tx) =>
    clientSecret(tx, groupId, group.client_secret_commitment),
  );
  if (secret === undefined) {
    throw new ClientError('invalid_input', 'this device lacks the secret: try another device');
  }
  const bound = {
    group_id: groupId,
    client_secret_commitment: group.client_secret_commitment,
    secret: secretBytes(secret),
  };
  const certificates = new Map(
    proofs.flatMap(({ event, certificate }) =>
      certificate === undefined ? [] : [[event.signer_device_id, certificate]],
    ),
  );
  const unsigned = {
    $type: core.network.type('group.update'),
    group_id: groupId,
    prev_hash: group.head,
    name: group.name,
    restore: {
      events: proofs.map(({ event }) => event),
      certificates: [...certificates.values()],
      client_secret_boxes: sealBoxes(core, bound, membersToSeal(group, changes)),
    },
  };
  const params = signAsDevice(core.network, unsigned, core.device);
  await callHost(core, row.relay_id, { method: 'group.update', params, signal });
  await readGroupBuffered(core, groupId, signal);
  return changes.length;
}

/** Returns the stored changes after the last one that the host has, oldest first. */
async function lostChanges(
  core: AccountCore,
  address: { readonly group_id: string; readonly relay_id: string },
  signal: AbortSignal,
): Promise<GroupChangeRow[]> {
  const lost: GroupChangeRow[] = [];
  let before: number | undefined;
  for (;;) {
    const range = { ...(before !== undefined && { before }), limit: batchSize, newestFirst: true };
    const entries = await core.store.read((tx) => listGroupEntries(tx, address.group_id, range));
    for (const entry of entries) {
      if (entry.kind !== 'change') continue;
      if (await hasChange(core, address, { ...entry, signal })) return lost.reverse();
      lost.push(entry);
    }
    if (entries.length < batchSize) return lost.reverse();
    before = entries.at(-1)?.sequence;
  }
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
