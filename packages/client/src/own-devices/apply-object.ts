/**
 * Applies objects of other own devices, in the transaction of their record (decision 0039). They
 * change no protocol state: nothing is trusted in them but where a channel is, and what a person read.
 */
import type { checkSchema as CheckSchema } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { AccountCore } from '../core.ts';
import type { AccountEvent } from '../events.ts';
import type { StoreWriter } from '../store/index.ts';
import {
  accountStateType,
  channelRow,
  channelRows,
  checkSchema as check,
  historyType,
  ProtocolError,
  readBatchSize,
  recordEvents,
  sharedChannels,
  waitingObjects,
} from '../taken.ts';
import { AccountState, channelLimit, type SharedChannel } from './account-state.ts';
import { applyHistory } from './apply-history.ts';
import { applyMark, type Capacity } from './apply-marks.ts';
import { History } from './history-object.ts';

/**
 * Milliseconds by which a time may be ahead of this device's clock: clocks differ, and who decides
 * here is later than what is known in any case.
 */
const clockTolerance = 86_400_000;

/** Declared with its type, as every assertion must be. */
const checkSchema: typeof CheckSchema = check;

/**
 * Applies an object whose sender is a current device of the account.
 *
 * @returns the events; `undefined` for an object of a version that this client does not know
 * @throws ProtocolError if the object breaks its rules
 */
export async function applyOwnDeviceObject(
  core: AccountCore,
  tx: StoreWriter,
  { content, deviceId }: { readonly content: JsonObject; readonly deviceId: string },
): Promise<readonly AccountEvent[] | undefined> {
  if (content.$type === historyType) {
    checkSchema(History, content);
    return await applyHistory(core, tx, { history: content, deviceId });
  }
  if (content.$type !== accountStateType) return undefined;
  checkSchema(AccountState, content);
  const capacity = { channels: await channelCapacity(tx), messages: readBatchSize };
  for (const channel of content.channels ?? []) await applyChannel(core, tx, { channel, capacity });
  const events: AccountEvent[] = [];
  for (const mark of content.read ?? []) {
    if (!(await applyMark(core, tx, { mark, capacity }))) continue;
    const conversation = { kind: mark.kind, id: mark.id };
    events.push({ kind: 'conversation-read', conversation });
  }
  return events;
}

/** Applies what came while this part could not be loaded, each object in its own transaction. */
export async function applyWaitingObjects(core: AccountCore): Promise<void> {
  const applyFirst = async (tx: StoreWriter) => {
    const [first] = await waitingObjects.list(tx, { limit: 1 });
    if (first === undefined) return false;
    await waitingObjects.delete(tx, first.key);
    try {
      await recordEvents(tx, (await applyOwnDeviceObject(core, tx, first.value)) ?? []);
    } catch (error) {
      // It breaks its rules, and nothing of it is used.
      if (!(error instanceof ProtocolError)) throw error;
    }
    return true;
  };
  while (await core.store.write(applyFirst));
}

/** Stores the later decision of two devices, to be adopted after the page. */
async function applyChannel(
  core: AccountCore,
  tx: StoreWriter,
  { channel, capacity }: { readonly channel: SharedChannel; readonly capacity: Capacity },
): Promise<void> {
  const { channel_id, relay_id, followed: isFollowed, changed_at } = channel;
  // A clock that is far ahead must not win for good.
  const changedAt = Math.min(changed_at, core.clock.milliseconds() + clockTolerance);
  const row = await channelRow(tx, channel_id);
  const pending = await sharedChannels.get(tx, channel_id);
  if (row === undefined ? !isFollowed && pending === undefined : (row.changedAt ?? 0) >= changedAt)
    return;
  if (pending !== undefined && pending.changedAt >= changedAt) return;
  if (pending === undefined && row === undefined) {
    if (capacity.channels <= 0) return;
    capacity.channels -= 1;
  }
  const address = { channel_id, relay_id: row?.relay_id ?? relay_id };
  await sharedChannels.put(tx, channel_id, { ...address, isFollowed, changedAt });
}

/** Returns how many more channels are taken from own devices. */
async function channelCapacity(tx: StoreWriter): Promise<number> {
  const [known, pending] = [await channelRows(tx), await sharedChannels.list(tx)];
  return channelLimit - known.length - pending.length;
}
