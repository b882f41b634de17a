/**
 * Requests pages of a timeline so that a relay that lost records is noticed (04 §18.3). Each request
 * begins with the last record that was processed: an honest relay still has it at its sequence, or
 * says that its retention removed it. A relay whose storage was put back to an earlier state has no
 * record there, or another one; without this check its new records would be missed up to the old
 * position.
 */
import type { TimelinePage } from '@posthouse/protocol';
import type { TimelineRecord } from '../accounts/account-rows.ts';
import type { AccountCore } from '../core.ts';
import { isRefusal } from '../errors.ts';
import { type OpenedEntry, openPage } from './open-page.ts';

const method = 'message.timeline.sync';

/** Records per request. The relay may return fewer; only `has_more` says whether more exist. */
const pageSize = 100;

/** The answer to a request from a position on. */
export type ReadTimelinePage =
  /** The verified records after the position. */
  | {
      readonly kind: 'page';
      readonly opened: readonly OpenedEntry[];
      readonly hasMore: boolean;
      readonly hasGap: boolean;
    }
  /**
   * What comes after the position must be requested alone: the record there filled the page, or has
   * expired, so that there is nothing to compare with.
   */
  | { readonly kind: 'confirmed' }
  /** The relay lost records that it had given. */
  | { readonly kind: 'rollback' };

/**
 * Requests and verifies the page after a position.
 *
 * @param reading.isConfirmed whether the record at the position needs no check
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function requestPage(
  core: AccountCore,
  relayId: string,
  reading: {
    readonly known: TimelineRecord;
    readonly isConfirmed: boolean;
    readonly signal: AbortSignal;
  },
): Promise<ReadTimelinePage> {
  const { known, isConfirmed, signal } = reading;
  const { account, device } = core;
  const lastRecord = isConfirmed ? undefined : known.lastRecord;
  const after = lastRecord === undefined ? known.position : known.position - 1;
  let page: TimelinePage;
  try {
    page = await core.relay(relayId).call(method, { after, limit: pageSize }, { signal });
  } catch (error) {
    // It has one cause then: the position is above the relay's head (04 §18).
    if (after >= 0 && isRefusal(error, 'bad_request')) return { kind: 'rollback' };
    throw error;
  }
  const asked = { account, deviceId: device.deviceId, after, limit: pageSize };
  const opened = openPage(core, page, asked);
  const [hasMore, hasGap] = [page.has_more, page.has_retention_gap === true];
  if (lastRecord === undefined) return { kind: 'page', opened, hasMore, hasGap };
  const [first, ...rest] = opened;
  if (first?.entry.sequence !== known.position) return { kind: hasGap ? 'confirmed' : 'rollback' };
  const { digest, accepted_at: acceptedAt } = lastRecord;
  if (first.digest !== digest || first.entry.accepted_at !== acceptedAt) {
    return { kind: 'rollback' };
  }
  if (rest.length === 0 && hasMore) return { kind: 'confirmed' };
  return { kind: 'page', opened: rest, hasMore, hasGap };
}
