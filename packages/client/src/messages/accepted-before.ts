/** Finds out whether the home relay had accepted a message that it refuses as too old now. */
import type { TimelineRecord } from '../accounts/account-rows.ts';
import type { AccountCore } from '../core.ts';
import {
  messageRow,
  notSentYet,
  ReadBudget,
  requestPage,
  restoredAtOf,
  timelines,
} from '../taken.ts';
import type { OutboxRow } from './outbox.ts';

/**
 * Whether a sent message was accepted, with its answer lost and its result forgotten. What the relay
 * accepts is in the account's timeline: a message that is not there, in a timeline without a gap, was
 * never accepted (04 §12.1, §15.2, §16.3). It is not known of a message that has no key box for this
 * device, or if the relay was restored since. The position does not move.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; the message still waits
 */
export async function acceptedBefore(
  core: AccountCore,
  sent: OutboxRow,
  signal: AbortSignal,
): Promise<'yes' | 'no' | 'unknown'> {
  const { params, relayId } = sent;
  const { envelope } = params;
  const { row, record } = await core.store.read(async (tx) => ({
    row: await messageRow(tx, envelope),
    record: await timelines.get(tx, relayId),
  }));
  if (row?.accepted_at !== undefined) return 'yes';
  const boxes = [...params.recipient_boxes, ...(params.sender_boxes ?? [])];
  const isInTimeline = boxes.some(({ device_id }) => device_id === core.device.deviceId);
  if (record?.gap || !isInTimeline) return 'unknown';
  let known: TimelineRecord = record ?? { position: -1, gap: false };
  const budget = new ReadBudget(core.reading);
  while (!budget.isSpent) {
    const page = await requestPage(core, relayId, { known, signal });
    if (page.kind === 'rollback') return 'unknown';
    const { opened, hasMore, hasGap } = page;
    const isIts = ({ from, message_id }: typeof envelope) =>
      from === envelope.from && message_id === envelope.message_id;
    if (opened.some(({ entry }) => isIts(entry.envelope))) return 'yes';
    if (hasGap) return 'unknown';
    const last = opened.at(-1);
    if (!hasMore || last === undefined) {
      const isSame = await isSameStorage(core, { sent, readAt: record?.restoredAt }, signal);
      return isSame ? 'no' : 'unknown';
    }
    known = { position: last.entry.sequence, gap: false };
    budget.spendPage(opened.length);
  }
  throw notSentYet();
}

/**
 * Whether a relay was not put back to an earlier state since a message was sealed, nor since the
 * timeline was read (02 §11.2).
 */
async function isSameStorage(
  core: AccountCore,
  { sent, readAt }: { readonly sent: OutboxRow; readonly readAt: number | undefined },
  signal: AbortSignal,
): Promise<boolean> {
  const restoredAt = await restoredAtOf(core, sent.relayId, signal);
  return readAt === restoredAt && (sent.restoredAt ?? readAt) === restoredAt;
}
