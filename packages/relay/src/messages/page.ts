import { JsonText } from '../dispatch/handler.ts';
import type { Reader } from '../storage/types.ts';
import {
  type PageRow,
  readCertificate,
  readEnvelope,
  readPage,
  type StoredCertificate,
} from './store.ts';

/** Names, marks and numbers of an entry, generously. */
const entryOverhead = 128;

interface TimelinePage {
  readonly items: {
    readonly sequence: number;
    readonly accepted_at: number;
    readonly envelope: JsonText;
    readonly key_box: JsonText;
  }[];
  readonly certificates: JsonText[];
  readonly has_more: boolean;
}

/**
 * The records visible to a device after a sequence, with the certificates of their senders, as
 * many as fit into `maxBytes`; at least one where there is one. Stored texts leave as they are.
 */
export async function readTimelinePage(
  tx: Reader,
  reader: { readonly account: string; readonly deviceId: string },
  { after, most, maxBytes }: { after: number; most: number; maxBytes: number },
): Promise<TimelinePage> {
  // One more than asked for tells whether there is more.
  const rows = await readPage(tx, reader, { after, most: most + 1 });
  const items: TimelinePage['items'] = [];
  const senders = new Senders(tx);
  let bytes = 0;
  for (const row of rows.slice(0, most)) {
    const sender = await senders.of(row);
    bytes += row.bytes + Buffer.byteLength(row.key_box) + entryOverhead + sender.newBytes;
    if (items.length > 0 && bytes > maxBytes) break;
    sender.add();
    items.push({
      sequence: row.sequence,
      accepted_at: row.accepted_at,
      envelope: new JsonText(await envelopeOf(tx, row)),
      key_box: new JsonText(row.key_box),
    });
  }
  return { items, certificates: senders.texts(), has_more: items.length < rows.length };
}

async function envelopeOf(tx: Reader, row: PageRow): Promise<string> {
  const text = await readEnvelope(tx, row.envelope_id);
  if (text === undefined) throw new Error(`record ${row.sequence} lacks its envelope`);
  return text;
}

/** Certificates of a page: each device's once, whichever of its versions came first (04 §18). */
class Senders {
  readonly #tx: Reader;
  readonly #read = new Map<string, StoredCertificate>();
  readonly #byDevice = new Map<string, string>();

  constructor(tx: Reader) {
    this.#tx = tx;
  }

  /** What a record's certificate adds to the page, and how to add it. */
  async of(row: PageRow): Promise<{ readonly newBytes: number; add(): void }> {
    const { deviceId, text } = await this.#certificate(row);
    if (this.#byDevice.has(deviceId)) return { newBytes: 0, add: () => {} };
    return {
      newBytes: Buffer.byteLength(text),
      add: () => this.#byDevice.set(deviceId, text),
    };
  }

  texts(): JsonText[] {
    return [...this.#byDevice.values()].map((text) => new JsonText(text));
  }

  async #certificate(row: PageRow): Promise<StoredCertificate> {
    const known = this.#read.get(row.certificate_id);
    if (known !== undefined) return known;
    const read = await readCertificate(this.#tx, row.certificate_id);
    if (read === undefined) throw new Error(`record ${row.sequence} lacks its certificate`);
    this.#read.set(row.certificate_id, read);
    return read;
  }
}
