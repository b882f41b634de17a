/** The operator's list of blocked relays. A running relay reads it by itself. */
import { ProtocolError } from '@posthouse/protocol';
import {
  addBlock,
  type BlockOptions,
  blockWrites,
  deleteBlock,
  type NewBlock,
  readBlock,
} from '../blocks/index.ts';
import { readBoundRelay } from '../storage/identity.ts';
import type { Reader, Storage } from '../storage/types.ts';
import { endPause } from './health-store.ts';
import { knownRelays } from './store.ts';

/**
 * Blocks a relay; if it is blocked already, a reason replaces the one it has.
 *
 * @returns whether it was not blocked before
 * @throws ProtocolError `bad_request` if the relay is the one that the database belongs to,
 *   `state_conflict` if the list is full
 */
export async function blockRelay(
  storage: Storage,
  block: NewBlock,
  options: BlockOptions,
): Promise<boolean> {
  return await storage.write(blockWrites, async (tx) => {
    if (block.id === (await readBoundRelay(tx))) {
      throw new ProtocolError(
        'bad_request',
        `${block.id} is this relay itself: give the ID of another relay`,
      );
    }
    return await addBlock(tx, { kind: 'relay', ...block }, options);
  });
}

/**
 * Ends the block of a relay, and the pause that failed dials of the blocked relay began.
 *
 * @param now Unix seconds
 * @returns whether it was blocked
 */
export async function unblockRelay(
  storage: Storage,
  relayId: string,
  now: number,
): Promise<boolean> {
  return await storage.write([blockWrites, knownRelays], async (tx) => {
    const wasBlocked = await deleteBlock(tx, { kind: 'relay', id: relayId }, now);
    if (wasBlocked) await endPause(tx, relayId, now);
    return wasBlocked;
  });
}

/** Tells whether the operator blocks a relay now. */
export async function isBlocked(tx: Reader, relayId: string, now: number): Promise<boolean> {
  return (await readBlock(tx, { kind: 'relay', id: relayId }, now)) !== undefined;
}

/** Reads the IDs of all relays that are blocked now; the operator enters them one by one. */
export async function readBlocked(tx: Reader, now: number): Promise<ReadonlySet<string>> {
  const rows = await tx.all<{ id: string }>(
    "SELECT id FROM blocks WHERE kind = 'relay' AND (ends_at IS NULL OR ends_at > ?)",
    now,
  );
  return new Set(rows.map(({ id }) => id));
}
