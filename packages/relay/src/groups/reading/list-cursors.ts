/**
 * Cursors of a group's lists (05 §12.7). Whatever one says is only where to go on and with which
 * part of a list: before each page the caller's right is judged anew, so that a made-up cursor
 * shows nobody more than starting over would.
 */
import {
  badRequest,
  decodeBase64url,
  encodeBase64url,
  ProtocolError,
  utf8,
} from '@posthouse/protocol';

/** A list of a group. */
export interface ListPlace {
  readonly list: 'invites' | 'applications' | 'recoveries';
  readonly groupId: string;
}

/** Where a traversal of a list stands. */
export interface Traversal {
  /** What part of the list it shows; fixed by the first page. */
  readonly scope: string;
  /** The last record shown: as many texts as the order of the list compares. */
  readonly after: readonly string[];
}

/** What a scope and a position are made of; no other text ever comes near a query. */
const part = /^[A-Za-z0-9:_-]+$/;
const between = '/';

/**
 * The cursor that goes on with a traversal.
 *
 * @example
 * writeCursor({ list: 'invites', groupId }, { scope: 'all', after: [inviteId] });
 */
export function writeCursor({ list, groupId }: ListPlace, { scope, after }: Traversal): string {
  return encodeBase64url(utf8([list, groupId, scope, ...after].join(between)));
}

/**
 * What a cursor says, where there is one.
 *
 * @param parts how many texts a position of the list is
 * @throws ProtocolError `bad_request` where it is none of this list of this group
 */
export function readCursor(
  cursor: string | undefined,
  { list, groupId }: ListPlace,
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
  const texts = bytes === undefined ? [] : Buffer.from(bytes).toString('latin1').split(between);
  if (texts.length === 0 || !texts.every((text) => part.test(text))) {
    throw badRequest('cursor', 'is no cursor of this relay');
  }
  return texts;
}

/**
 * The traversal a page is of: the cursor's own, where the caller's present right still covers what
 * it shows, or a new one of all that the caller may see.
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
 * As many of the rows as fit one page; at least one where there is one.
 *
 * @param rows one more than `most` where there is more
 * @param bytesOf what a row adds to the page, asked once for each in order
 */
export function fittingRows<R>(
  rows: readonly R[],
  bounds: { readonly most: number; readonly maxBytes: number },
  bytesOf: (row: R) => number,
): readonly R[] {
  let bytes = 0;
  const most = Math.min(rows.length, bounds.most);
  for (let count = 0; count < most; count += 1) {
    bytes += bytesOf(rows[count] as R);
    if (count > 0 && bytes > bounds.maxBytes) return rows.slice(0, count);
  }
  return rows.slice(0, most);
}
