/** One page of a timeline, of accounts, groups and channels alike. */
import { JsonText } from '../dispatch/handler.ts';
import type { RelayLimits } from '../limits.ts';

/** What one page may hold. */
export interface PageSize {
  /** Number of rows. */
  readonly limit: number;
  /** Bytes of rows and certificates together. */
  readonly maxBytes: number;
}

/** Returns the size of a page for the `limit` that a client asked for. */
export function pageSize(limits: RelayLimits, requested: number = limits.pageSize): PageSize {
  return { limit: Math.min(requested, limits.maxPageSize), maxBytes: limits.pageBytes };
}

/**
 * Returns up to how many bytes a text is read in the statement that finds its row. Larger ones are
 * read once it is known that they fit: so no more than the bytes of one page are read in vain.
 *
 * @example
 * const rows = await readRows(tx, { limit: limit + 1, inline: inlineBytes({ limit, maxBytes }) });
 */
export function inlineBytes({ limit, maxBytes }: PageSize): number {
  return Math.floor(maxBytes / (limit + 1));
}

/** A signer's certificate; `text` is needed for the signer's first row in the page only. */
export interface RowSigner {
  readonly deviceId: string;
  /** Canonical JSON. */
  readonly text: string | undefined;
}

/** The rows that fit into a page, with their certificates. */
export interface FilledPage<R> {
  readonly rows: R[];
  readonly certificates: readonly JsonText[];
  readonly has_more: boolean;
}

/**
 * Fills a page with as many rows as fit, at least one if there is one. Each device's certificate
 * comes once, in the version of its first row.
 *
 * @param rows one more than `limit` if there are more
 * @param options.bytesOf bytes of a row in the page without its certificate
 * @param options.signerOf the signer of a row, or `undefined` for a row that has none
 *
 * @example
 * const { rows, certificates, has_more } = fillPage(await readRows(tx, { limit: limit + 1 }), {
 *   ...{ limit, maxBytes },
 *   bytesOf: ({ bytes }) => bytes + overhead,
 *   signerOf: ({ deviceId }) => ({ deviceId, text: texts.get(deviceId) }),
 * });
 */
export function fillPage<R>(
  rows: readonly R[],
  {
    limit,
    maxBytes,
    bytesOf,
    signerOf,
  }: PageSize & {
    readonly bytesOf: (row: R) => number;
    readonly signerOf: (row: R) => RowSigner | undefined;
  },
): FilledPage<R> {
  const fitting: R[] = [];
  const certificates = new Map<string, string>();
  let bytes = 0;
  for (const row of rows.slice(0, limit)) {
    const signer = signerOf(row);
    const isNew = signer !== undefined && !certificates.has(signer.deviceId);
    const certificate = isNew ? certificateOf(signer) : '';
    bytes += bytesOf(row) + Buffer.byteLength(certificate);
    if (fitting.length > 0 && bytes > maxBytes) break;
    if (isNew) certificates.set(signer.deviceId, certificate);
    fitting.push(row);
  }
  return {
    rows: fitting,
    certificates: [...certificates.values()].map((text) => new JsonText(text)),
    has_more: fitting.length < rows.length,
  };
}

function certificateOf({ deviceId, text }: RowSigner): string {
  if (text === undefined) throw new Error(`device ${deviceId} lacks its certificate`);
  return text;
}
