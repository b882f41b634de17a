import { JsonText } from '../dispatch/handler.ts';
import { fillPage, inlineBytes, type PageSize } from '../pages/fill-page.ts';
import type { Reader } from '../storage/types.ts';
import { readAfter, readCertificates, readPayloads, readUpTo } from './event-store.ts';

/** Upper bound of the bytes of an event's member names and numbers. */
const eventOverhead = 192;

/** Events forwards after a sequence, or backwards from `last`, that one included. */
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

/** Reads readable events of a range with the certificates they refer to (06 §8.11). */
export async function readChannelPage(
  tx: Reader,
  channelId: string,
  { limit, maxBytes, ...range }: PageSize & PageRange,
): Promise<ChannelPage> {
  // One row more than the limit shows whether there are more.
  const size = { limit: limit + 1, inline: inlineBytes({ limit, maxBytes }) };
  const found =
    'after' in range
      ? await readAfter(tx, channelId, { after: range.after, ...size })
      : await readUpTo(tx, channelId, { last: range.last, ...size });
  const signers = new Set(found.map((row) => row.signer_device_id));
  const texts = await readCertificates(tx, channelId, [...signers]);
  const { rows, certificates, has_more } = fillPage(found, {
    ...{ limit, maxBytes },
    bytesOf: ({ bytes }) => bytes + eventOverhead,
    signerOf: ({ signer_device_id: deviceId }) => ({ deviceId, text: texts.get(deviceId) }),
  });
  // Rows are counted in the direction of reading; the answer ascends.
  if (!('after' in range)) rows.reverse();
  // Of the large payloads, only those that fit are read.
  const large = rows.filter(({ payload }) => payload === null).map(({ sequence }) => sequence);
  const payloads = await readPayloads(tx, channelId, large);
  const events = rows.map((row) => {
    const { sequence, descriptor_rev, accepted_at, signer_device_id } = row;
    const text = row.payload ?? payloads.get(sequence);
    if (text === undefined) throw new Error(`event ${sequence} lacks its payload`);
    return { sequence, descriptor_rev, payload: new JsonText(text), accepted_at, signer_device_id };
  });
  return { events, certificates, has_more };
}
