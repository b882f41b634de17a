/** A group's key material: requesting, verifying and activating it (05 §7.5, §17.3-17.5). */
import {
  checkGroupKeyPage,
  encodeBase64url,
  type GroupKeyHistory,
  type GroupKeyPage,
  type GroupKeyResult,
  openGroupKeys,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { checkRelayAnswer, isRefusal } from '../../errors.ts';
import { recordEvents } from '../../events/event-log.ts';
import type { GroupAccountEvent } from '../../events.ts';
import type { StoreReader, StoreWriter } from '../../store/index.ts';
import { asRollback } from '../../sync/host-calls.ts';
import { enqueueTask } from '../../sync/tasks.ts';
import { type GroupRow, groupRow, memberOf, putGroup } from '../group-rows.ts';
import { recoveryCandidates, rotationCandidates } from './key-candidates.ts';
import {
  clientSecret,
  epochKeys,
  epochSecret,
  type MemberKey,
  memberKeysOf,
  putClientSecret,
  putEpochSecret,
  secretBytes,
} from './key-rows.ts';

const method = 'group.key.sync';

/** Epochs per request. */
const pageSize = 50;

/**
 * Requests the material of epochs that this device lacks, and verifies it against the verified
 * chain. An entry that fails is not used, and blocks neither later entries nor the chain.
 *
 * @returns `isAhead` if the host returned an epoch whose event is not read yet
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function* readKeys(
  core: AccountCore,
  groupId: string,
  signal: AbortSignal,
): AsyncGenerator<readonly GroupAccountEvent[], { readonly isAhead: boolean }> {
  const { store } = core;
  let after = await store.read((tx) => firstMissing(core, tx, groupId));
  while (after !== undefined) {
    signal.throwIfAborted();
    const page = await readKeyPage(core, { groupId, after, signal });
    if (page === undefined) return { isAhead: false };
    const taken = await store.write((tx) => applyKeyPage(core, tx, { groupId, page }));
    yield taken.events;
    if (taken.isAhead) return { isAhead: true };
    after = page.has_more ? page.keys.at(-1)?.epoch : undefined;
  }
  await store.write((tx) => removeSettledCandidates(core, tx, groupId));
  return { isAhead: false };
}

/** Returns the epoch after which material is missing; `undefined` if none is missing. */
async function firstMissing(
  core: AccountCore,
  tx: StoreReader,
  groupId: string,
): Promise<number | undefined> {
  const row = await groupRow(tx, groupId);
  if (row?.facts === undefined || row.standing !== 'member') return undefined;
  if ((await memberOf(tx, groupId, core.account)) === undefined) return undefined;
  const { epoch } = row.facts;
  if (row.keysThrough < epoch) return row.keysThrough;
  // The current epoch is needed for sending: it is requested until it verifies.
  const current = await epochSecret(tx, groupId, epoch);
  return current?.isVerified === true ? undefined : epoch - 1;
}

/** @returns `undefined` if the host refuses key material to this device */
async function readKeyPage(
  core: AccountCore,
  request: { readonly groupId: string; readonly after: number; readonly signal: AbortSignal },
): Promise<GroupKeyPage | undefined> {
  const { groupId, after, signal } = request;
  const row = await core.store.read((tx) => groupRow(tx, groupId));
  if (row === undefined) return undefined;
  const params = { group_id: groupId, after, limit: pageSize };
  try {
    const page = await core.relay(row.relay_id).call(method, params, { signal });
    checkRelayAnswer('invalid_group_keys', method, () => checkGroupKeyPage(page, params));
    return page;
  } catch (error) {
    if (isRefusal(error, 'forbidden')) return undefined;
    throw asRollback(error, 'group_rollback', { method, lost: 'an epoch' });
  }
}

async function applyKeyPage(
  core: AccountCore,
  tx: StoreWriter,
  { groupId, page }: { readonly groupId: string; readonly page: GroupKeyPage },
): Promise<{ readonly events: readonly GroupAccountEvent[]; readonly isAhead: boolean }> {
  const row = await groupRow(tx, groupId);
  const member = await memberOf(tx, groupId, core.account);
  if (row?.facts === undefined || member === undefined) return { events: [], isAhead: false };
  const present = row.facts.epoch;
  const publicKey = member.member_encryption_public_key;
  const history = await historyOf(tx, groupId, page);
  const privateKeys = await memberKeysOf(tx, groupId);
  const results = openGroupKeys(core.network, page, {
    group_id: groupId,
    account: core.account,
    deviceId: core.device.deviceId,
    history,
    devicePrivateKey: core.encryptionKey,
    memberPrivateKey: (publicKey) => {
      const held = privateKeys.get(publicKey);
      return held === undefined ? undefined : secretBytes(held.privateKey);
    },
  });
  const known = results.filter(({ status }) => status !== 'unknown_epoch');
  const isAhead = known.length < results.length;
  const events: GroupAccountEvent[] = [];
  for (const result of known) events.push(...(await storeKey(tx, { groupId, result, history })));
  // After the last page, all material up to the current epoch was requested.
  const asked = page.has_more || isAhead ? known.at(-1)?.epoch : present;
  let next: GroupRow = { ...row, keysThrough: Math.max(row.keysThrough, asked ?? -1) };
  const current = results.find(({ epoch }) => epoch === present);
  if (current?.status === 'verified') {
    const activated = await activate(tx, { row: next, publicKey, privateKeys });
    next = activated.row;
    events.push(...activated.events);
  } else if (current?.status === 'missing_private_key') {
    next = await requestKeyOnce(tx, { row: next, publicKey });
  }
  await putGroup(tx, next);
  await recordEvents(tx, events);
  return { events, isAhead };
}

/** Reads the key history of the epochs of one page. */
async function historyOf(
  tx: StoreReader,
  groupId: string,
  { keys }: GroupKeyPage,
): Promise<GroupKeyHistory> {
  const periods: GroupKeyHistory[number][] = [];
  for (const { epoch } of keys) {
    const found = await epochKeys(tx, groupId, epoch);
    if (found !== undefined) periods.push({ ...found, epochs: [epoch] });
  }
  return periods;
}

async function storeKey(
  tx: StoreWriter,
  {
    groupId,
    result,
    history,
  }: {
    readonly groupId: string;
    readonly result: GroupKeyResult;
    readonly history: GroupKeyHistory;
  },
): Promise<GroupAccountEvent[]> {
  const { epoch, status } = result;
  if (status === 'rejected' || status === 'missing_box') {
    return [{ kind: 'group-key-rejected', groupId, epoch, status }];
  }
  if (status !== 'verified') return [];
  await putEpochSecret(tx, { groupId, epoch }, encodeBase64url(result.applicationSecret));
  const keys = history.find(({ epochs }) => epochs.includes(epoch));
  if (keys !== undefined) {
    const id = { groupId, commitment: keys.client_secret_commitment };
    await putClientSecret(tx, id, encodeBase64url(result.clientSecret));
  }
  return [];
}

/**
 * Activates the member key whose box was just opened: an event of the verified chain names it, it
 * is the current one, and its secret matches the commitment (05 §17.3, §17.4).
 */
async function activate(
  tx: StoreWriter,
  {
    row,
    publicKey,
    privateKeys,
  }: {
    readonly row: GroupRow;
    readonly publicKey: string;
    readonly privateKeys: ReadonlyMap<string, MemberKey>;
  },
): Promise<{ readonly row: GroupRow; readonly events: GroupAccountEvent[] }> {
  const { group_id: groupId } = row;
  const held = privateKeys.get(publicKey);
  if (held === undefined || row.activeKey === publicKey) return { row, events: [] };
  if (held.isOwn) await enqueueTask(tx, { kind: 'send-group', group: groupId });
  const events: GroupAccountEvent[] =
    row.activeKey === undefined ? [{ kind: 'group-joined', groupId }] : [];
  const { askedFor: _asked, ...rest } = row;
  return { row: { ...rest, activeKey: publicKey }, events };
}

/** Requests a member key from the other own devices, once per key. */
async function requestKeyOnce(
  tx: StoreWriter,
  { row, publicKey }: { readonly row: GroupRow; readonly publicKey: string },
): Promise<GroupRow> {
  if (row.askedFor === publicKey) return row;
  await enqueueTask(tx, { kind: 'request-group', group: row.group_id });
  return { ...row, askedFor: publicKey };
}

/** Removes candidates that are active now or were superseded. */
async function removeSettledCandidates(
  core: AccountCore,
  tx: StoreWriter,
  groupId: string,
): Promise<void> {
  const row = await groupRow(tx, groupId);
  if (row?.facts === undefined) return;
  const recovery = await recoveryCandidates.get(tx, groupId);
  if (recovery?.request.member_encryption_public_key === row.activeKey) {
    await recoveryCandidates.delete(tx, groupId);
  }
  const rotation = await rotationCandidates.get(tx, groupId);
  if (rotation === undefined) return;
  const { client_secret_commitment: commitment, owner } = row.facts;
  const isInUse =
    rotation.landed &&
    (await clientSecret(tx, groupId, rotation.client_secret_commitment)) !== undefined &&
    (rotation.ownerKey === undefined || row.activeKey === rotation.ownerKey);
  const isSuperseded =
    ![rotation.base_commitment, rotation.client_secret_commitment].includes(commitment) ||
    owner !== core.account;
  if (isInUse || isSuperseded) await rotationCandidates.delete(tx, groupId);
}
