/** Sharing group keys and secrets between the account's own devices, by messages (05 §16). */
import {
  type AccountGroupHistorySecretSync,
  type AccountGroupPrivateStateRequest,
  type AccountGroupPrivateStateSync,
  encodeBase64url,
  type GroupHistorySecret,
  type GroupMemberPrivateState,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { sendToOwnDevices } from '../../messages/send-to-own-devices.ts';
import type { StoreReader, StoreWriter } from '../../store/index.ts';
import { enqueueTask, type PendingTask } from '../../sync/tasks.ts';
import { emptyGroupRow, type GroupRow, groupRow, groupRows, putGroup } from '../group-rows.ts';
import {
  memberKeysOf,
  putMemberKey,
  secretBytes,
  stageEpochSecret,
  verifiedSecrets,
} from './key-rows.ts';

export type GroupTask = Extract<
  PendingTask,
  {
    kind: 'request-groups' | 'request-group' | 'send-group' | 'send-groups' | 'send-group-history';
  }
>;

/** Whether a pending task is about groups. */
export function isGroupTask(task: PendingTask): task is GroupTask {
  return 'group' in task || task.kind === 'request-groups' || task.kind === 'send-groups';
}

/** Items in one message; an envelope has room for many more. */
const batchSize = 500;
/** Limit of epochs of a group whose secrets are sent, the newest ones. */
const historyEpochs = 1_000;

/** Runs a group task: sends its contents to the own devices, and removes the task. */
export async function runGroupTask(
  core: AccountCore,
  task: GroupTask,
  signal: AbortSignal,
): Promise<void> {
  const { name, contents } = await contentsOf(core, task);
  for (const [index, content] of contents.entries()) {
    const tasks = index === contents.length - 1 ? [task] : [];
    await sendToOwnDevices(core, { name, content, tasks, signal });
  }
  if (contents.length === 0) await sendToOwnDevices(core, { name, tasks: [task], signal });
}

async function contentsOf(core: AccountCore, task: GroupTask) {
  switch (task.kind) {
    case 'request-groups':
      return { name: 'account.group.state.request', contents: [{}] };
    case 'request-group':
      return { name: 'account.group.state.request', contents: [{ group_id: task.group }] };
    case 'send-group-history': {
      const secrets = await historyOf(core, task.group);
      const contents = inBatches(secrets).map((each) => ({ secrets: each }));
      return { name: 'account.group.history_secret.sync', contents };
    }
    default: {
      const only = 'group' in task ? task.group : undefined;
      const states = await core.store.read((tx) => statesOf(tx, only));
      const contents = inBatches(states).map((each) => ({ states: each }));
      return { name: 'account.group.state.sync', contents };
    }
  }
}

function inBatches<T>(items: readonly T[]): T[][] {
  const batches: T[][] = [];
  for (let withHost = 0; withHost < items.length; withHost += batchSize)
    batches.push(items.slice(withHost, withHost + batchSize));
  return batches;
}

/** Lists the active member keys of one group or of all. */
async function statesOf(
  tx: StoreReader,
  only: string | undefined,
): Promise<GroupMemberPrivateState[]> {
  const states: GroupMemberPrivateState[] = [];
  const rows = only === undefined ? await groupRows(tx) : [await groupRow(tx, only)];
  for (const row of rows) {
    if (row?.standing !== 'member' || row.activeKey === undefined) continue;
    const { group_id, relay_id, activeKey } = row;
    const key = (await memberKeysOf(tx, group_id)).get(activeKey);
    if (key === undefined) continue;
    states.push({ group_id, relay_id, member_encryption_private_key: key.privateKey });
  }
  return states;
}

/** Lists the secrets of a group that this device verified itself; staged ones are not sent. */
async function historyOf(core: AccountCore, groupId: string): Promise<GroupHistorySecret[]> {
  const rows = await core.store.read((tx) => verifiedSecrets(tx, groupId, historyEpochs));
  return rows.map(({ epoch, secret }) => ({
    group_id: groupId,
    epoch,
    application_secret: secret,
  }));
}

/** Applies a request of another own device: enqueues the tasks that answer it. */
export async function applyStateRequest(
  tx: StoreWriter,
  { group_id }: AccountGroupPrivateStateRequest,
): Promise<void> {
  const asked = group_id === undefined ? await groupRows(tx) : [await groupRow(tx, group_id)];
  const held = asked.filter((row) => row?.standing === 'member' && row.activeKey !== undefined);
  if (held.length === 0) return;
  if (group_id === undefined) await enqueueTask(tx, { kind: 'send-groups' });
  else await enqueueTask(tx, { kind: 'send-group', group: group_id });
  for (const row of held)
    await enqueueTask(tx, { kind: 'send-group-history', group: (row as GroupRow).group_id });
}

/**
 * Stores hosts and keys from another own device. Only the verified chain decides which key is
 * active, in whatever order messages arrive (05 §16).
 */
export async function applyStateSync(
  core: AccountCore,
  tx: StoreWriter,
  { states }: AccountGroupPrivateStateSync,
): Promise<void> {
  for (const { group_id, relay_id, member_encryption_private_key: privateKey } of states) {
    const bytes = secretBytes(privateKey);
    const publicKey = encodeBase64url(core.network.primitives.x25519.publicKey(bytes));
    const known = await groupRow(tx, group_id);
    const isNew = !(await memberKeysOf(tx, group_id)).has(publicKey);
    await putMemberKey(tx, { groupId: group_id, publicKey }, { privateKey, isOwn: false });
    if (known === undefined) {
      await putGroup(tx, { ...emptyGroupRow({ group_id, relay_id }), standing: 'known' });
    } else if (known.standing === 'ended' || known.standing === 'applied') {
      // The other device can read the group: this one tries again.
      const { isForgotten: _again, ...rest } = known;
      await putGroup(tx, { ...at(rest, relay_id), standing: 'known', keysThrough: -1 });
    } else if (isNew) {
      // Boxes that could not be opened without this key may open now.
      await putGroup(tx, { ...at(known, relay_id), keysThrough: -1 });
    }
  }
}

/** Returns the row with this host, unless verified state has bound the group to one. */
function at(row: GroupRow, relay_id: string): GroupRow {
  return row.facts === undefined ? { ...row, relay_id } : row;
}

/** Stages application secrets from another own device until history confirms their epochs. */
export async function applyHistorySync(
  tx: StoreWriter,
  { secrets }: AccountGroupHistorySecretSync,
): Promise<void> {
  for (const { group_id: groupId, epoch, application_secret } of secrets) {
    await stageEpochSecret(tx, { groupId, epoch }, application_secret);
  }
}
