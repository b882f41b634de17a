import { JsonText } from '../../dispatch/handler.ts';
import { fillPage, inlineBytes, type PageSize } from '../../pages/fill-page.ts';
import type { Reader } from '../../storage/types.ts';
import {
  type EventRow,
  readCertificates,
  readEvents,
  readMessages,
  readPayloads,
} from '../chain/event-store.ts';
import { type GroupReader, permittedRanges } from './read-access.ts';

/** Upper bound of the bytes of an event's member names and numbers. */
const eventOverhead = 192;

interface EventPage {
  readonly events: readonly {
    readonly sequence: number;
    readonly epoch: number;
    readonly payload: JsonText;
    readonly accepted_at: number;
    readonly signer_device_id: string | undefined;
  }[];
  readonly certificates: readonly JsonText[];
  readonly has_more: boolean;
}

/**
 * Reads the events that a device may read after a sequence (05 §10.4, §13.4): all management events,
 * and messages within its intervals; as many as fit, at least one if there is one.
 */
export async function readEventPage(
  tx: Reader,
  reader: GroupReader,
  { after, limit, maxBytes }: PageSize & { readonly after: number },
): Promise<EventPage> {
  const { group_id: groupId } = reader.group.stored;
  // One row more than the limit shows whether there are more.
  const inline = inlineBytes({ limit, maxBytes });
  const found = await readRows(tx, reader, { after, limit: limit + 1, inline });
  const ids = certificatesOf(found);
  const texts = await readCertificates(tx, groupId, [...ids.values()]);
  const { rows, certificates, has_more } = fillPage(found, {
    ...{ limit, maxBytes },
    bytesOf: ({ row }) => row.bytes + eventOverhead,
    signerOf: ({ row: { signer_device_id: deviceId } }) => {
      const id = deviceId === null ? undefined : ids.get(deviceId);
      return deviceId === null || id === undefined ? undefined : { deviceId, text: texts.get(id) };
    },
  });
  const payloads = await largePayloads(tx, groupId, rows);
  const events = rows.map(({ row }) => {
    const { sequence, epoch, accepted_at } = row;
    const text = row.payload ?? payloads.get(sequence);
    if (text === undefined) throw new Error(`event ${sequence} lacks its payload`);
    const signer_device_id = row.signer_device_id ?? undefined;
    return { sequence, epoch, payload: new JsonText(text), accepted_at, signer_device_id };
  });
  return { events, certificates, has_more };
}

/** Maps each device to the certificate of its first event: one version is enough. */
function certificatesOf(rows: readonly EventOrMessage[]): Map<string, string> {
  const ids = new Map<string, string>();
  for (const { row } of rows) {
    const { signer_device_id: deviceId, certificate_id: id } = row;
    if (deviceId !== null && id !== null && !ids.has(deviceId)) ids.set(deviceId, id);
  }
  return ids;
}

/** Reads the payloads that were too large to be read with their rows, by sequence. */
async function largePayloads(
  tx: Reader,
  groupId: string,
  rows: readonly EventOrMessage[],
): Promise<ReadonlyMap<number, string>> {
  const payloads = new Map<number, string>();
  const large = rows.filter(({ row }) => row.payload === null);
  for (const [areMessages, batch] of Map.groupBy(large, ({ isMessage }) => isMessage)) {
    const sequences = batch.map(({ row }) => row.sequence);
    const texts = await readPayloads(tx, groupId, { sequences, areMessages });
    for (const [sequence, text] of texts) payloads.set(sequence, text);
  }
  return payloads;
}

interface EventOrMessage {
  readonly row: EventRow;
  readonly isMessage: boolean;
}

/** Reads events and messages in the order of the timeline. */
async function readRows(
  tx: Reader,
  { group, intervals }: GroupReader,
  { after, limit, inline }: Record<'after' | 'limit' | 'inline', number>,
): Promise<EventOrMessage[]> {
  const { group_id: groupId, sequence: highest } = group.stored;
  const events = await readEvents(tx, groupId, { after, limit, inline });
  const rows: EventOrMessage[] = events.map((row) => ({ row, isMessage: false }));
  let left = limit;
  for (const range of permittedRanges(intervals, 'messages', { after, highest })) {
    if (left === 0) break;
    const messages = await readMessages(tx, groupId, { ...range, limit: left, inline });
    left -= messages.length;
    rows.push(...messages.map((row) => ({ row, isMessage: true })));
  }
  return rows.sort((a, b) => a.row.sequence - b.row.sequence).slice(0, limit);
}
