import { JsonText } from '../dispatch/handler.ts';
import type { Reader } from '../storage/types.ts';
import {
  type EventRow,
  readAfter,
  readCertificates,
  readPayloads,
  readUpTo,
} from './event-store.ts';

/** Names and numbers of an event, generously. */
const eventOverhead = 192;

/** Which part of the timeline, and how much of it. */
export type PageBounds = PageRange & { readonly most: number; readonly maxBytes: number };

/** Forwards behind a sequence, or backwards from one, that one included. */
export type PageRange = { readonly after: number } | { readonly last: number };

interface ChannelPage {
  readonly events: readonly {
    readonly sequence: number;
    readonly descriptor_rev: number;
    readonly payload: JsonText;
    readonly accepted_at: number;
    readonly signer_device_id: string;
  }[];
  readonly certificates: readonly JsonText[];
  readonly has_more: boolean;
}

/**
 * Readable events of a range with the certificates they refer to (06 §8.11): as many as fit, at
 * least one where there is one.
 */
export async function readChannelPage(
  tx: Reader,
  channelId: string,
  bounds: PageBounds,
): Promise<ChannelPage> {
  // One more than asked for tells whether there is more.
  const range = { ...bounds, most: bounds.most + 1 };
  const rows =
    'after' in range ? await readAfter(tx, channelId, range) : await readUpTo(tx, channelId, range);
  const { fitting, certificates } = await takeFitting(tx, channelId, { rows, bounds });
  // What fits is counted in the direction of reading; the answer ascends.
  if (!('after' in bounds)) fitting.reverse();
  const sequences = fitting.map(({ sequence }) => sequence);
  const payloads = await readPayloads(tx, channelId, sequences);
  return {
    events: fitting.map(({ sequence, descriptor_rev, accepted_at, signer_device_id }) => {
      const payload = payloads.get(sequence);
      if (payload === undefined) throw new Error(`event ${sequence} lacks its payload`);
      const text = new JsonText(payload);
      return { sequence, descriptor_rev, payload: text, accepted_at, signer_device_id };
    }),
    certificates: certificates.map((text) => new JsonText(text)),
    has_more: fitting.length < rows.length,
  };
}

/** The first of the rows that one page may hold; each certificate comes with its first event. */
async function takeFitting(
  tx: Reader,
  channelId: string,
  { rows, bounds }: { readonly rows: readonly EventRow[]; readonly bounds: PageBounds },
): Promise<{ readonly fitting: EventRow[]; readonly certificates: readonly string[] }> {
  const wanted = rows.slice(0, bounds.most);
  const devices = new Set(wanted.map(({ signer_device_id }) => signer_device_id));
  const texts = await readCertificates(tx, channelId, [...devices]);
  const fitting: EventRow[] = [];
  const certificates: string[] = [];
  let bytes = 0;
  for (const row of wanted) {
    const deviceId = row.signer_device_id;
    const text = texts.get(deviceId);
    if (text === undefined) throw new Error(`device ${deviceId} lacks its certificate`);
    const isFirst = devices.has(deviceId);
    bytes += row.bytes + eventOverhead + (isFirst ? Buffer.byteLength(text) : 0);
    if (fitting.length > 0 && bytes > bounds.maxBytes) break;
    if (isFirst) certificates.push(text);
    devices.delete(deviceId);
    fitting.push(row);
  }
  return { fitting, certificates };
}
