/** What this device has to share with the account's other devices, and to adopt from them. */
import type { JsonObject } from '@posthouse/protocol/json';
import type { ConversationKey } from '../conversations/conversation-rows.ts';
import { Collection } from '../store/collection.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { handOvers } from './hand-over-rows.ts';

/**
 * What changed since it was shared last, with the number of changes: `follow/<channel>` or
 * `read/<kind>/<id>`.
 */
export const changeRows = new Collection<number>('own-device-changes');

/** A follow state of another own device that is not adopted yet, by channel. */
export interface SharedChannelRow {
  readonly channel_id: string;
  readonly relay_id: string;
  readonly isFollowed: boolean;
  /** Unix milliseconds of the change. */
  readonly changedAt: number;
  /** Failed tries, and Unix milliseconds before which there is no other. */
  readonly failures?: number;
  readonly retryAt?: number;
}
export const sharedChannels = new Collection<SharedChannelRow>('shared-channels');

/**
 * Positions through which messages are still to be marked as read, because another own device read
 * them: by kind and ID of the conversation.
 */
export const waitingMarks = new Collection<number>('own-device-marks');

/** Objects of own devices that came while the part that applies them could not be loaded, by message ID. */
export const waitingObjects = new Collection<{
  readonly content: JsonObject;
  readonly deviceId: string;
}>('own-device-objects');

/** Which devices were sent the account's state: key `own`. */
export interface SeenDevices {
  /** Revision of the device state that was compared last. */
  readonly revision: number;
  /** Unix seconds at which each device's certificate ends, by device ID. */
  readonly ends: Readonly<Record<string, number>>;
}
export const seenDevices = new Collection<SeenDevices>('own-devices-seen');

/** Unix milliseconds at which changes were sent last: key `own`. */
export const sentChanges = new Collection<number>('own-device-changes-sent');

/** Stores that this device followed or unfollowed a channel. */
export async function noteFollowChange(tx: StoreWriter, channelId: string): Promise<void> {
  await noteChange(tx, `follow/${channelId}`);
}

/** Stores that messages of a conversation were marked as read. */
export async function noteReadChange(
  tx: StoreWriter,
  { kind, id }: ConversationKey,
): Promise<void> {
  await noteChange(tx, `read/${kind}/${id}`);
}

async function noteChange(tx: StoreWriter, key: string): Promise<void> {
  await changeRows.put(tx, key, ((await changeRows.get(tx, key)) ?? 0) + 1);
}

/**
 * Returns what is left to be done: sending changes to other devices, handing over history to one of
 * them, applying or adopting what they sent.
 */
export async function openWork(tx: StoreReader): Promise<{
  readonly toSend: boolean;
  readonly toHandOver: boolean;
  readonly toAdopt: boolean;
  readonly toApply: boolean;
}> {
  const [change] = await changeRows.list(tx, { limit: 1 });
  const [handOver] = await handOvers.list(tx, { limit: 1 });
  const [shared] = await sharedChannels.list(tx, { limit: 1 });
  const [mark] = await waitingMarks.list(tx, { limit: 1 });
  return {
    toSend: change !== undefined,
    toHandOver: handOver !== undefined,
    toAdopt: (shared ?? mark) !== undefined,
    toApply: (await waitingObjects.list(tx, { limit: 1 })).length > 0,
  };
}

/** Removes one batch of changes, of an account without other devices. */
export async function dropChanges(tx: StoreWriter): Promise<void> {
  for (const { key } of await changeRows.list(tx, { limit: 500 })) await changeRows.delete(tx, key);
}
