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

/** What one page may be. */
export interface PageBounds {
  readonly after: number;
  readonly most: number;
  readonly maxBytes: number;
}

interface GroupPage {
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
 * The events a device may read behind a sequence (05 §10.4, §13.4): management events all, messages
 * within its intervals; as many as fit, at least one where there is one.
 */
export async function readGroupEvents(
  tx: Reader,
  reader: GroupReader,
  bounds: PageBounds,
): Promise<GroupPage> {
  const { group_id: groupId } = reader.group.stored;
  // One more than asked for tells whether there is more.
  const rows = await readable(tx, reader, { ...bounds, most: bounds.most + 1 });
  const { fitting, certificates } = await takeFitting(tx, rows, { ...bounds, groupId });
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

/** As many as one page may be, with the certificates they refer to. */
async function takeFitting(
  tx: Reader,
  rows: readonly ReadableRow[],
  { groupId, most, maxBytes }: PageBounds & { readonly groupId: string },
): Promise<{
  readonly fitting: readonly ReadableRow[];
  readonly certificates: readonly string[];
}> {
  const wanted = rows.slice(0, most);
  const ofDevices = certificatesOf(wanted);
  const texts = await readCertificates(tx, groupId, [...ofDevices.values()]);
  const fitting: ReadableRow[] = [];
  const certificates: string[] = [];
  let bytes = 0;
  for (const each of wanted) {
    const { bytes: own, signer_device_id: deviceId } = each.row;
    // A device's certificate comes with its first event.
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

/** The certificate each device's first event refers to: one version of it is enough. */
function certificatesOf(rows: readonly ReadableRow[]): Map<string, string> {
  const ids = new Map<string, string>();
  for (const { row } of rows) {
    const { signer_device_id: deviceId, certificate_id: id } = row;
    if (deviceId !== null && id !== null && !ids.has(deviceId)) ids.set(deviceId, id);
  }
  return ids;
}

/** By sequence; read only of those that fit, for each may be large. */
async function payloadsOf(
  tx: Reader,
  groupId: string,
  rows: readonly ReadableRow[],
): Promise<ReadonlyMap<number, JsonText>> {
  const payloads = new Map<number, JsonText>();
  for (const [areMessages, some] of Map.groupBy(rows, ({ isMessage }) => isMessage)) {
    const sequences = some.map(({ row }) => row.sequence);
    const texts = await readPayloads(tx, groupId, { sequences, areMessages });
    for (const [sequence, text] of texts) payloads.set(sequence, new JsonText(text));
  }
  return payloads;
}

interface ReadableRow {
  readonly row: EventRow;
  readonly isMessage: boolean;
}

/** Both kinds in the order of the timeline. */
async function readable(
  tx: Reader,
  { group, intervals }: GroupReader,
  { after, most }: PageBounds,
): Promise<ReadableRow[]> {
  const { group_id: groupId, sequence: highest } = group.stored;
  const events = await readEvents(tx, groupId, { after, most });
  const rows: ReadableRow[] = events.map((row) => ({ row, isMessage: false }));
  let left = most;
  for (const range of permittedRanges(intervals, 'messages', { after, highest })) {
    if (left === 0) break;
    const messages = await readMessages(tx, groupId, { ...range, most: left });
    left -= messages.length;
    rows.push(...messages.map((row) => ({ row, isMessage: true })));
  }
  return rows.sort((a, b) => a.row.sequence - b.row.sequence).slice(0, most);
}
