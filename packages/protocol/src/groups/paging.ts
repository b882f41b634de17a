import { badRequest } from '../errors.ts';

/** The members of a request that its page is checked against. */
export interface GroupPageRequest {
  /** Position already held; -1 by default. */
  readonly after?: number;
  readonly limit?: number;
}

/**
 * Checks a page after a position (05 §12.8): strictly ascending, after `after`, no more than
 * `limit` rows, and no `has_more` on an empty page.
 *
 * @throws ProtocolError `bad_request`
 */
export function checkPageOrder(
  page: {
    /** Sequences or epochs, in the order of the page. */
    readonly positions: readonly number[];
    readonly has_more: boolean;
    /** Of the array, for messages. */
    readonly name: string;
  },
  { after = -1, limit = Number.POSITIVE_INFINITY }: GroupPageRequest,
): void {
  const { positions, has_more, name } = page;
  let previous = after;
  for (const [index, position] of positions.entries()) {
    if (position <= previous) throw badRequest(`${name}.${index}`, 'not ascending');
    previous = position;
  }
  if (positions.length > limit) throw badRequest(name, `more than ${limit}`);
  if (positions.length === 0 && has_more) throw badRequest('has_more', 'true on an empty page');
}
