/** Pages of the verbs that list: their parameters, and the cursor between two of them. */
import { badRequest, decodeBase64url, encodeBase64url, Type } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';

/** Rows of a page. */
const maxRowsOfPage = 1_000;
const defaultRows = 100;
/** Characters of a cursor: IDs and times of one row. */
const maxCursor = 1_024;

/** Parameters of every verb that lists. */
export const pageParams = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxRowsOfPage })),
  cursor: Type.Optional(Type.String({ maxLength: maxCursor })),
};

/** Values by which rows are ordered, of the last row of a page. */
export type Position = readonly (string | number)[];

/** Before the first row of a list that is ordered by a time and an ID. */
export const firstByTime: readonly [time: number, id: string] = [-1, ''];

interface Page<Row, P extends Position | []> {
  /** As the caller gave it. */
  readonly params: { readonly limit?: number; readonly cursor?: string };
  /** Before the first row. Each value of a cursor has the type of the one here. */
  readonly start: P;
  /** Reads rows after a position, at most `limit`. */
  readonly read: (after: P, limit: number) => Promise<readonly Row[]>;
  readonly positionOf: (row: Row) => P;
  readonly wireOf: (row: Row) => JsonObject;
}

/**
 * Reads one page of a list that is ordered by `positionOf`.
 *
 * @throws ProtocolError `bad_request` for a cursor that no page of the list gave
 */
export async function readPage<Row, P extends Position | []>({
  params: { limit = defaultRows, cursor },
  start,
  read,
  positionOf,
  wireOf,
}: Page<Row, P>): Promise<JsonObject> {
  const after = cursor === undefined ? start : decodeCursor(cursor, start);
  const found = await read(after, limit + 1);
  const rows = found.slice(0, limit);
  const last = rows.at(-1);
  const items = rows.map(wireOf);
  if (found.length <= limit || last === undefined) return { items };
  return { items, next: encodeBase64url(Buffer.from(JSON.stringify(positionOf(last)))) };
}

function decodeCursor<P extends Position | []>(text: string, start: P): P {
  try {
    const bytes = decodeBase64url(text) ?? new Uint8Array();
    const values: unknown = JSON.parse(Buffer.from(bytes).toString());
    if (Array.isArray(values) && values.length === start.length) {
      const fits = start.every((value, at) => isLike(value, values[at]));
      if (fits) return values as unknown as P;
    }
  } catch {
    // Not JSON.
  }
  throw badRequest('cursor', 'expected the member next of an earlier page of the same list');
}

/** Whether a value may stand in a statement in place of another one. */
function isLike(value: string | number, found: unknown): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(found);
  return typeof found === 'string' && found.isWellFormed() && !found.includes('\0');
}
