/**
 * Requests pages of a timeline so that a relay that lost records is noticed (04 §18.3): the record
 * at the position is compared with what the relay has there. An honest relay still has it, or says
 * that its retention removed it. A relay whose storage was put back to an earlier state has no record
 * there, or another one; without this check its new records would be missed up to the old position.
 */
import type { TimelinePage } from '@posthouse/protocol';
import type { TimelineRecord } from '../accounts/account-rows.ts';
import type { AuthenticatedConnection } from '../connect/authenticated-connection.ts';
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
  /** The relay lost records that it had given. */
  | { readonly kind: 'rollback' };

interface PageRequest {
  readonly after: number;
  readonly limit: number;
  readonly signal: AbortSignal;
}

/** WebSockets over which the record at a position was compared: while one is open, no relay is put back. */
const compared = new WeakSet<AuthenticatedConnection>();

/**
 * Requests and verifies the page after a position.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function requestPage(
  core: AccountCore,
  relayId: string,
  { known, signal }: { readonly known: TimelineRecord; readonly signal: AbortSignal },
): Promise<ReadTimelinePage> {
  const page = await request(core, relayId, { after: known.position, limit: pageSize, signal });
  if (page.kind === 'rollback') return page;
  const webSocket = core.relay(relayId).webSocket;
  if (webSocket !== undefined && compared.has(webSocket)) return page;
  if (!(await hasKept(core, relayId, { known, signal }))) return { kind: 'rollback' };
  // The page and the record must have come over the same one.
  if (webSocket !== undefined && webSocket === core.relay(relayId).webSocket) {
    compared.add(webSocket);
  }
  return page;
}

async function request(
  core: AccountCore,
  relayId: string,
  { after, limit, signal }: PageRequest,
): Promise<ReadTimelinePage> {
  const { account, device } = core;
  let page: TimelinePage;
  try {
    page = await core.relay(relayId).call(method, { after, limit }, { signal });
  } catch (error) {
    // It has one cause then: the position is above the relay's head (04 §18).
    if (after >= 0 && isRefusal(error, 'bad_request')) return { kind: 'rollback' };
    throw error;
  }
  const reading = { account, deviceId: device.deviceId, after, limit };
  const opened = await openPage(core, page, reading);
  return { kind: 'page', opened, hasMore: page.has_more, hasGap: page.has_retention_gap === true };
}

/**
 * Tells whether the relay still has the last record that was processed, or its retention removed it.
 */
async function hasKept(
  core: AccountCore,
  relayId: string,
  { known, signal }: { readonly known: TimelineRecord; readonly signal: AbortSignal },
): Promise<boolean> {
  const { lastRecord, position } = known;
  if (lastRecord === undefined) return true;
  const page = await request(core, relayId, { after: position - 1, limit: 1, signal });
  if (page.kind === 'rollback') return false;
  const [first] = page.opened;
  if (first?.entry.sequence !== position) return page.hasGap;
  return first.digest === lastRecord.digest && first.entry.accepted_at === lastRecord.accepted_at;
}
