/** All SQL of the relays that this relay knows. */
import type { RelayEntry } from '@posthouse/protocol';
import { forEach } from '../storage/in-lists.ts';
import type { Reader, Row, Writer } from '../storage/types.ts';

/** The aggregate of all writes here: they are few. */
export const knownRelays = 'relays';

/** A descriptor as stored: it was verified before. */
export interface StoredDescriptor {
  /** Canonical JSON. */
  readonly text: string;
  /** base58btc. */
  readonly peerId: string;
  /** Unix second at which it expires. */
  readonly until: number;
  /** Unix second at which the registered endpoint gave it; absent if only a handshake did. */
  readonly fetchedAt?: number | undefined;
}

/** Seconds by which a stored reading may be ahead: further ahead, a clock was set back since. */
const maxAhead = 3_600;

/**
 * Stores records as the registry had them at `seenAt`, Unix seconds. Another process may have read
 * later and stored before: its reading stays.
 */
export async function storeRecords(
  tx: Writer,
  entries: readonly RelayEntry[],
  seenAt: number,
): Promise<void> {
  await forEach(entries, (entry) =>
    tx.run(
      `INSERT INTO relays (relay_id, endpoint, status, updated_at, seen_at, failures)
        VALUES (?, ?, ?, ?, ?, 0)
        ON CONFLICT (relay_id) DO UPDATE SET endpoint = excluded.endpoint,
          status = excluded.status, updated_at = excluded.updated_at, seen_at = excluded.seen_at
        WHERE relays.seen_at <= excluded.seen_at OR relays.seen_at > ?`,
      entry.relay_id,
      entry.endpoint,
      entry.status,
      entry.updated_at,
      seenAt,
      seenAt + maxAhead,
    ),
  );
}

/** Deletes relays that no reading of the registry has had since `before`, Unix seconds. */
export async function deleteUnlisted(tx: Writer, before: number): Promise<void> {
  await tx.run('DELETE FROM relays WHERE seen_at < ?', before);
}

interface RecordRow extends Row {
  relay_id: string;
  endpoint: string;
  status: string;
  updated_at: number;
  seen_at: number;
}

/** Reads the records that the registry had after `since`, Unix seconds. */
export async function readRecords(
  tx: Reader,
  since: number,
): Promise<{ readonly entry: RelayEntry; readonly seenAt: number }[]> {
  const rows = await tx.all<RecordRow>(
    'SELECT relay_id, endpoint, status, updated_at, seen_at FROM relays WHERE seen_at > ?',
    since,
  );
  return rows.map(({ seen_at: seenAt, ...entry }) => ({ entry: entry as RelayEntry, seenAt }));
}

/** Stores a relay's descriptor; when its record was read is for {@link storeRecords} to say. */
export async function storeDescriptor(
  tx: Writer,
  { relay_id: relayId, endpoint, status, updated_at: updatedAt }: RelayEntry,
  { text, peerId, until, fetchedAt }: StoredDescriptor,
): Promise<void> {
  await tx.run(
    `INSERT INTO relays (relay_id, endpoint, status, updated_at, seen_at, failures,
        peer_id, descriptor, descriptor_until, fetched_at)
      VALUES (?, ?, ?, ?, 0, 0, ?, ?, ?, ?)
      ON CONFLICT (relay_id) DO UPDATE SET peer_id = excluded.peer_id,
        descriptor = excluded.descriptor, descriptor_until = excluded.descriptor_until,
        fetched_at = excluded.fetched_at`,
    relayId,
    endpoint,
    status,
    updatedAt,
    peerId,
    text,
    until,
    fetchedAt ?? null,
  );
}

interface DescriptorRow extends Row {
  descriptor: string;
  peer_id: string;
  descriptor_until: number;
  fetched_at: number | null;
}

export async function readDescriptor(
  tx: Reader,
  relayId: string,
): Promise<StoredDescriptor | undefined> {
  const row = await tx.get<DescriptorRow>(
    `SELECT descriptor, peer_id, descriptor_until, fetched_at FROM relays
      WHERE relay_id = ? AND descriptor IS NOT NULL`,
    relayId,
  );
  if (row === undefined) return undefined;
  return {
    text: row.descriptor,
    peerId: row.peer_id,
    until: row.descriptor_until,
    fetchedAt: row.fetched_at ?? undefined,
  };
}
