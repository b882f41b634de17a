/** Channels of a backup: their descriptors and events, verified as a reader does. */
import { type ChannelDescriptor, type Network, verifyChannelPage } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import type { Reader, Row } from '../storage/types.ts';
import { type RowCheck, requireHead, requireText, wrong } from './row-check.ts';

/** Events that are read at once. */
const batch = 100;

/** Returns the check of hosted channels. */
export function channelChecks(network: Network, relayId: string): RowCheck[] {
  return [
    {
      kind: 'channels',
      table: 'channels',
      verify: (row, tx) => verifyChannel(network, { row, relayId }, tx),
    },
  ];
}

async function verifyChannel(
  network: Network,
  { row, relayId }: { readonly row: Row; readonly relayId: string },
  tx: Reader,
): Promise<void> {
  const channelId = String(row.channel_id);
  for (const table of ['channel_events', 'channel_posts']) {
    await requireHead(tx, Number(row.head), [
      `SELECT MAX(sequence) AS highest FROM ${table} WHERE channel_id = ?`,
      channelId,
    ]);
  }
  let descriptors: ReadonlyMap<number, ChannelDescriptor> = new Map();
  for (let after = -1; ; ) {
    const rows = await tx.all(
      `SELECT sequence, descriptor_rev, accepted_at, signer_device_id, payload FROM channel_events
        WHERE channel_id = ? AND sequence > ? ORDER BY sequence LIMIT ${batch}`,
      channelId,
      after,
    );
    if (rows.length === 0) break;
    const page = await pageOf(rows, channelId, tx);
    const verified = verifyChannelPage(network, page, { channelId, relayId, descriptors });
    const [refused] = verified.refused;
    if (refused !== undefined) throw wrong(`event ${refused.sequence}: ${refused.error.message}`);
    const [missing] = verified.missing;
    if (missing !== undefined) throw wrong(`the descriptor of revision ${missing} is missing`);
    descriptors = verified.descriptors;
    after = Number(rows.at(-1)?.sequence);
  }
  if (descriptors.has(Number(row.revision))) return;
  throw wrong(`its current descriptor, of revision ${row.revision}, is missing`);
}

async function pageOf(rows: readonly Row[], channelId: string, tx: Reader): Promise<unknown> {
  const certificates: unknown[] = [];
  for (const deviceId of new Set(rows.map((row) => String(row.signer_device_id)))) {
    const text = await requireText(tx, `the certificate of ${deviceId}`, [
      `SELECT certificate AS text FROM channel_certificates
        WHERE channel_id = ? AND device_id = ?`,
      channelId,
      deviceId,
    ]);
    certificates.push(parseJson(text));
  }
  const events = rows.map((row) => ({ ...row, payload: parseJson(String(row.payload)) }));
  return { events, certificates, has_more: false };
}
