/** A group's timeline as this device keeps it: messages, changes, and what was rejected. */
import type { GroupMessageEnvelope, GroupRole } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { Collection } from '../../store/collection.ts';
import type { StoreReader, StoreWriter } from '../../store/index.ts';
import { keyOf, positionKey } from '../../store/row-keys.ts';
import { type EntryRange, listRange } from '../../sync/timeline-range.ts';

interface EntryPosition {
  readonly group_id: string;
  readonly sequence: number;
  readonly epoch: number;
  /** The host's Unix seconds; never an order. */
  readonly accepted_at: number;
}

/** A message of a member, its envelope verified. */
export interface GroupMessageRow extends EntryPosition {
  readonly kind: 'message';
  readonly message_id: string;
  /** Account and device of the verified certificate. */
  readonly from: string;
  readonly from_device_id: string;
  /** Unix seconds, as its sender wrote. */
  readonly created_at: number;
  /**
   * - `applied`: it took effect, or is a message to show;
   * - `stored`: of an unknown type, kept without any effect;
   * - `pending`: the secret of its epoch is not here yet;
   * - `rejected`: it does not decrypt, or its content breaks the rules.
   */
  readonly outcome: 'applied' | 'stored' | 'pending' | 'rejected';
  /** The business object, decrypted. */
  readonly content?: JsonObject;
  /** Why it was rejected. */
  readonly reason?: string;
  /** Kept while it cannot be decrypted. */
  readonly envelope?: GroupMessageEnvelope;
}

/** A management event that was verified and applied. */
export interface GroupChangeRow extends EntryPosition {
  readonly kind: 'change';
  /** The event's type behind the service word, such as `group.update`. */
  readonly type: string;
  /** Account that signed; absent on rotations the relay made. */
  readonly by?: string;
  /** The event's signature, by which its author knows it again. */
  readonly signature?: string;
  readonly joined?: readonly string[];
  readonly left?: readonly string[];
  readonly banned?: readonly string[];
  readonly unbanned?: readonly string[];
  /** Accounts with a new member key. */
  readonly rekeyed?: readonly string[];
  readonly roles?: readonly { readonly account: string; readonly role: GroupRole }[];
  readonly properties?: JsonObject;
}

/** A message event that no member could have sent; synchronisation went on (05 §14.2). */
export interface GroupRejectedRow extends EntryPosition {
  readonly kind: 'rejected';
  readonly reason: string;
}

export type GroupEntry = GroupMessageRow | GroupChangeRow | GroupRejectedRow;

const timeline = new Collection<GroupEntry>('group-timeline');
/** Messages without their epoch's secret: group, epoch, sequence. */
const undecrypted = new Collection<number>('group-pending');
/** Sequence of a message by sender and message ID: the host cannot show one twice. */
const messageIds = new Collection<number>('group-message-ids');

export async function putGroupEntry(tx: StoreWriter, entry: GroupEntry): Promise<void> {
  await timeline.put(tx, keyOf(entry.group_id, entry.sequence), entry);
}

export async function groupEntry(
  tx: StoreReader,
  groupId: string,
  sequence: number,
): Promise<GroupEntry | undefined> {
  return await timeline.get(tx, keyOf(groupId, sequence));
}

/** Entries behind a sequence, oldest first; with `last` the newest so many. */
export async function listGroupEntries(
  tx: StoreReader,
  groupId: string,
  range: Omit<EntryRange, 'before'> = {},
): Promise<GroupEntry[]> {
  return await listRange(tx, timeline, { ...range, id: groupId });
}

/**
 * Notes the ID of a message. Under an ID that is taken nothing is noted.
 * @returns whether it is the first with this ID
 */
export async function claimMessageId(tx: StoreWriter, row: GroupMessageRow): Promise<boolean> {
  const key = keyOf(row.group_id, row.from, row.message_id);
  if ((await messageIds.get(tx, key)) !== undefined) return false;
  await messageIds.put(tx, key, row.sequence);
  return true;
}

/** Where a message of this sender was read, if it was. */
export async function sequenceOfMessage(
  tx: StoreReader,
  message: { readonly group_id: string; readonly from: string; readonly message_id: string },
): Promise<number | undefined> {
  return await messageIds.get(tx, keyOf(message.group_id, message.from, message.message_id));
}

export async function addUndecrypted(tx: StoreWriter, row: GroupMessageRow): Promise<void> {
  await undecrypted.put(tx, keyOf(row.group_id, row.epoch, row.sequence), row.sequence);
}

export async function removeUndecrypted(tx: StoreWriter, row: GroupMessageRow): Promise<void> {
  await undecrypted.delete(tx, keyOf(row.group_id, row.epoch, row.sequence));
}

/** The first epoch behind another one in which messages wait. */
export async function nextUndecryptedEpoch(
  tx: StoreReader,
  groupId: string,
  after: number,
): Promise<number | undefined> {
  const prefix = `${groupId}/`;
  // `~` is greater than every digit: behind all messages of that epoch.
  const behind = after < 0 ? {} : { after: `${keyOf(groupId, after)}/~` };
  const [first] = await undecrypted.list(tx, { prefix, ...behind, limit: 1 });
  return first === undefined ? undefined : Number(first.key.slice(prefix.length).split('/')[0]);
}

/** Messages of an epoch that wait, behind a sequence, oldest first. */
export async function undecryptedOf(
  tx: StoreReader,
  groupId: string,
  range: { readonly epoch: number; readonly after: number; readonly limit: number },
): Promise<GroupMessageRow[]> {
  const prefix = `${keyOf(groupId, range.epoch)}/`;
  const after = range.after < 0 ? {} : { after: `${prefix}${positionKey(range.after)}` };
  const found: GroupMessageRow[] = [];
  for (const { value } of await undecrypted.list(tx, { prefix, ...after, limit: range.limit })) {
    const entry = await groupEntry(tx, groupId, value);
    if (entry?.kind === 'message') found.push(entry);
  }
  return found;
}
