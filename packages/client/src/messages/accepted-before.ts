/** Finds out whether the home relay had accepted a message that it refuses as too old now. */
import { type TimelineRecord, timelines } from '../accounts/account-rows.ts';
import type { AccountCore } from '../core.ts';
import { ReadBudget } from '../sync/budget.ts';
import { notSentYet } from '../sync/write-outcomes.ts';
import { messageRow } from './message-rows.ts';
import type { OutboxRow } from './outbox.ts';
import { requestPage } from './timeline-page.ts';

/**
 * Whether a sent message was accepted, with its answer lost and its result forgotten. What the relay
 * accepts is in the account's timeline: a message that is not there, in a timeline without a gap, was
 * never accepted (04 §12.1, §15.2, §16.3). The position does not move.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; the message still waits
 */
export async function acceptedBefore(
  core: AccountCore,
  { params: { envelope }, relayId }: OutboxRow,
  signal: AbortSignal,
): Promise<'yes' | 'no' | 'unknown'> {
  const { row, record } = await core.store.read(async (tx) => ({
    row: await messageRow(tx, envelope),
    record: await timelines.get(tx, relayId),
  }));
  if (row?.accepted_at !== undefined) return 'yes';
  if (record?.gap) return 'unknown';
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
    if (!hasMore || last === undefined) return 'no';
    known = { position: last.entry.sequence, gap: false };
    budget.spendPage(opened.length);
  }
  throw notSentYet();
}
