import { JsonText } from '../../dispatch/handler.ts';
import type { Reader } from '../../storage/types.ts';
import {
  type EventRow,
  readCertificates,
  readEvents,
  readMessages,
  readPayloads,
} from '../chain/event-store.ts';
import { type GroupReader, permittedRanges } from './read-access.ts';

/** Names and numbers of an event, generously. */
const eventOverhead = 192;

/** Where a page begins, and how much it may hold. */
export interface PageBounds {
  readonly after: number;
  readonly limit: number;
  readonly maxBytes: number;
}

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
  bounds: PageBounds,
): Promise<EventPage> {
  const { group_id: groupId } = reader.group.stored;
  // One more than requested shows whether there is more.
  const rows = await readRows(tx, reader, { ...bounds, limit: bounds.limit + 1 });
  const { fitting, certificates } = await selectFitting(tx, rows, { ...bounds, groupId });
  const payloads = await payloadsOf(tx, groupId, fitting);
  return {
    events: fitting.map(({ row: { sequence, epoch, accepted_at, signer_device_id } }) => {
      const payload = payloads.get(sequence);
      if (payload === undefined) throw new Error(`event ${sequence} lacks its payload`);
      const signer = signer_device_id ?? undefined;
      return { sequence, epoch, payload, accepted_at, signer_device_id: signer };
    }),
    certificates: certificates.map((text) => new JsonText(text)),
    has_more: fitting.length < rows.length,
  };
}

/** Selects as many as fit the page, with the certificates they refer to. */
async function selectFitting(
  tx: Reader,
  rows: readonly EventOrMessage[],
  { groupId, limit, maxBytes }: PageBounds & { readonly groupId: string },
): Promise<{
  readonly fitting: readonly EventOrMessage[];
  readonly certificates: readonly string[];
}> {
  const wanted = rows.slice(0, limit);
  const ofDevices = certificatesOf(wanted);
  const texts = await readCertificates(tx, groupId, [...ofDevices.values()]);
  const fitting: EventOrMessage[] = [];
  const certificates: string[] = [];
  let bytes = 0;
  for (const each of wanted) {
    const { bytes: own, signer_device_id: deviceId } = each.row;
    // A device's certificate is sent with its first event.
    const id = deviceId === null ? undefined : ofDevices.get(deviceId);
    const certificate = id && texts.get(id);
    if (id !== undefined && certificate === undefined) {
      throw new Error('an event lacks its certificate');
    }
    bytes += own + eventOverhead + Buffer.byteLength(certificate ?? '');
    if (fitting.length > 0 && bytes > maxBytes) break;
    if (deviceId !== null) ofDevices.delete(deviceId);
    if (certificate !== undefined) certificates.push(certificate);
    fitting.push(each);
  }
  return { fitting, certificates };
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

/** Reads the payloads of the selected rows, by sequence: each may be large. */
async function payloadsOf(
  tx: Reader,
  groupId: string,
  rows: readonly EventOrMessage[],
): Promise<ReadonlyMap<number, JsonText>> {
  const payloads = new Map<number, JsonText>();
  for (const [areMessages, batch] of Map.groupBy(rows, ({ isMessage }) => isMessage)) {
    const sequences = batch.map(({ row }) => row.sequence);
    const texts = await readPayloads(tx, groupId, { sequences, areMessages });
    for (const [sequence, text] of texts) payloads.set(sequence, new JsonText(text));
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
  { after, limit }: PageBounds,
): Promise<EventOrMessage[]> {
  const { group_id: groupId, sequence: highest } = group.stored;
  const events = await readEvents(tx, groupId, { after, limit });
  const rows: EventOrMessage[] = events.map((row) => ({ row, isMessage: false }));
  let left = limit;
  for (const range of permittedRanges(intervals, 'messages', { after, highest })) {
    if (left === 0) break;
    const messages = await readMessages(tx, groupId, { ...range, limit: left });
    left -= messages.length;
    rows.push(...messages.map((row) => ({ row, isMessage: true })));
  }
  return rows.sort((a, b) => a.row.sequence - b.row.sequence).slice(0, limit);
}
