/**
 * Cursors of a group's lists (05 §12.7). A cursor states only where to continue and which part of
 * the list it shows. The caller's right is checked again before each page, so that an invented
 * cursor shows no more than a new traversal would.
 */
import {
  badRequest,
  decodeBase64url,
  encodeBase64url,
  ProtocolError,
  utf8,
} from '@posthouse/protocol';

/** A list of a group. */
export interface GroupList {
  readonly list: 'invites' | 'applications' | 'recoveries';
  readonly groupId: string;
}

/** A position in a traversal of a list. */
export interface Traversal {
  /** What part of the list it shows; fixed by the first page. */
  readonly scope: string;
  /** The last record shown: as many texts as the order of the list compares. */
  readonly after: readonly string[];
}

/** The form of a scope and of a position; no other text reaches a query. */
const part = /^[A-Za-z0-9:_-]+$/;
const separator = '/';

/**
 * Makes the cursor that continues a traversal.
 *
 * @example
 * writeCursor({ list: 'invites', groupId }, { scope: 'all', after: [inviteId] });
 */
export function writeCursor({ list, groupId }: GroupList, { scope, after }: Traversal): string {
  return encodeBase64url(utf8([list, groupId, scope, ...after].join(separator)));
}

/**
 * Reads a cursor, if there is one.
 *
 * @param parts how many texts a position of the list has
 * @throws ProtocolError `bad_request` if it is not a cursor of this list of this group
 */
export function readCursor(
  cursor: string | undefined,
  { list, groupId }: GroupList,
  parts: number,
): Traversal | undefined {
  if (cursor === undefined) return undefined;
  const [ofList, ofGroup, scope, ...after] = textsOf(cursor);
  const fits = ofList === list && ofGroup === groupId && after.length === parts;
  if (!fits || scope === undefined) throw badRequest('cursor', 'is of another list');
  return { scope, after };
}

function textsOf(cursor: string): readonly string[] {
  const bytes = decodeBase64url(cursor);
  const texts = bytes === undefined ? [] : Buffer.from(bytes).toString('latin1').split(separator);
  if (texts.length === 0 || !texts.every((text) => part.test(text))) {
    throw badRequest('cursor', 'is no cursor of this relay');
  }
  return texts;
}

/**
 * Returns the traversal that a page continues: the cursor's own, if the caller's present right
 * still covers its scope, or a new one of all that the caller may see.
 *
 * @param right `position` is before every record
 * @throws ProtocolError `forbidden`
 */
export function traversalOf(
  cursor: Traversal | undefined,
  right: {
    readonly scope: string;
    readonly position: readonly string[];
    readonly covers: (scope: string) => boolean;
  },
): Traversal {
  if (cursor === undefined) return { scope: right.scope, after: right.position };
  if (right.covers(cursor.scope)) return cursor;
  throw new ProtocolError('forbidden', 'the account may not see this part of the list any more');
}

/**
 * Selects as many rows as fit one page; at least one if there is one.
 *
 * @param rows one more than `limit` if there is more
 * @param bytesOf what a row adds to the page, called once for each row in order
 */
export function fittingRows<R>(
  rows: readonly R[],
  bounds: { readonly limit: number; readonly maxBytes: number },
  bytesOf: (row: R) => number,
): readonly R[] {
  let bytes = 0;
  const limit = Math.min(rows.length, bounds.limit);
  for (let count = 0; count < limit; count += 1) {
    bytes += bytesOf(rows[count] as R);
    if (count > 0 && bytes > bounds.maxBytes) return rows.slice(0, count);
  }
  return rows.slice(0, limit);
}
