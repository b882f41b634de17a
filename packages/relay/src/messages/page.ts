import { JsonText } from '../dispatch/handler.ts';
import { fillPage, inlineBytes, type PageSize } from '../pages/fill-page.ts';
import type { Reader } from '../storage/types.ts';
import { readCertificates, readEnvelopes, readPage, type TimelineReader } from './page-store.ts';

/** Upper bound of the bytes of an entry's member names and numbers. */
const entryOverhead = 128;

interface TimelinePage {
  readonly items: readonly {
    readonly sequence: number;
    readonly accepted_at: number;
    readonly envelope: JsonText;
    readonly key_box: JsonText;
  }[];
  readonly certificates: readonly JsonText[];
  readonly has_more: boolean;
}

/** Reads the records visible to a device after a sequence, with their senders' certificates. */
export async function readTimelinePage(
  tx: Reader,
  reader: TimelineReader,
  { after, limit, maxBytes }: PageSize & { readonly after: number },
): Promise<TimelinePage> {
  // One row more than the limit shows whether there are more.
  const inline = inlineBytes({ limit, maxBytes });
  const found = await readPage(tx, reader, { after, limit: limit + 1, inline });
  const senders = await readCertificates(tx, [...new Set(found.map((row) => row.certificate_id))]);
  const { rows, certificates, has_more } = fillPage(found, {
    ...{ limit, maxBytes },
    bytesOf: ({ bytes, key_box }) => bytes + Buffer.byteLength(key_box) + entryOverhead,
    signerOf: ({ sequence, certificate_id }) =>
      senders.get(certificate_id) ?? missing(sequence, 'certificate'),
  });
  // Of the large envelopes, only those that fit are read.
  const large = rows.filter(({ envelope }) => envelope === null).map((row) => row.envelope_id);
  const envelopes = await readEnvelopes(tx, [...new Set(large)]);
  const items = rows.map(({ sequence, accepted_at, envelope_id, envelope, key_box }) => {
    const text = envelope ?? envelopes.get(envelope_id) ?? missing(sequence, 'envelope');
    const texts = { envelope: new JsonText(text), key_box: new JsonText(key_box) };
    return { sequence, accepted_at, ...texts };
  });
  return { items, certificates, has_more };
}

function missing(sequence: number, part: 'certificate' | 'envelope'): never {
  throw new Error(`record ${sequence} lacks its ${part}`);
}
