/** Submits posts, edits and deletions and finds out their outcome (06 §10.4). */
import { endsUnanswered, leavesSealedOpen } from '../../connect/backoff.ts';
import type { AccountCore } from '../../core.ts';
import { unixSeconds } from '../../environment.ts';
import { ClientError, isRefusal } from '../../errors.ts';
import { ReadBudget } from '../../sync/budget.ts';
import { endedBy } from '../../sync/write-outcomes.ts';
import type { WriteOutcome } from '../../sync/written-messages.ts';
import type { ChannelRow } from '../channel-rows.ts';
import { type ContentWrite, endWrite, isFinalRefusal, type PendingWrite } from '../outbox.ts';
import { readPageAfter } from '../timeline/channel-page.ts';

type ChangeWrite = Exclude<ContentWrite, { readonly write: 'post' }>;

/**
 * Submits a pending write until its outcome is known.
 *
 * @throws ClientError `not_permitted` for an edit that is too late
 * @throws RelayRefused with the write removed; RelayUnreachable with the write still pending
 */
export async function submitContent(
  core: AccountCore,
  {
    row,
    pending,
    isFresh,
  }: {
    readonly row: ChannelRow;
    readonly pending: PendingWrite<ContentWrite>;
    /** Whether it is submitted for the first time. */
    readonly isFresh: boolean;
  },
  signal: AbortSignal,
): Promise<void> {
  const { value } = pending;
  const relay = core.relay(row.relay_id);
  const end = (outcome: Omit<WriteOutcome, 'messageId'>) =>
    core.store.write((tx) => endWrite(tx, row.channel_id, { pending, ...outcome }));
  try {
    if (value.write === 'post') {
      const { sequence } = await relay.call('channel.post', value.post, { signal });
      return await end({ status: 'target_accepted', sequence });
    }
    if (isFresh) await submitFresh(core, row, { value, signal });
    else await repeatChange(core, row, { value, signal });
    await end({ status: 'target_accepted' });
  } catch (error) {
    // A change over a quota would block all later writes; a post may be sent later.
    const isBarred =
      value.write !== 'post' && isRefusal(error, 'rate_limited') && error.method !== 'channel.read';
    const now = unixSeconds(core.clock);
    const age = now - (value.sent_at ?? now);
    const isKept = value.write === 'post' && leavesSealedOpen(error, age);
    const isFinal = isFinalRefusal(error) || error instanceof EditTooLate;
    if (isBarred || (isFinal && !isKept)) {
      if (value.write === 'post' && endsUnanswered(error, age)) {
        const { findPost } = await core.later();
        const sequence = await findPost(core, row, { value, signal });
        if (sequence !== undefined) return await end({ status: 'target_accepted', sequence });
      }
      await end(endedBy(error));
    }
    throw error;
  }
}

/**
 * Submits a change for the first time. If the answer is lost, the timeline decides the outcome.
 */
async function submitFresh(
  core: AccountCore,
  row: ChannelRow,
  submission: Submission,
): Promise<void> {
  try {
    await submitChange(core, row, submission);
  } catch (error) {
    if (!isFinalRefusal(error)) return await repeatChange(core, row, submission);
    // Two accounts may delete one post at the same time.
    const isDeletion = submission.value.write === 'delete' && isRefusal(error, 'state_conflict');
    if (!isDeletion || !(await hasTakenEffect(core, row, submission))) throw error;
  }
}

interface Submission {
  readonly value: ChangeWrite;
  readonly signal: AbortSignal;
}

async function submitChange(
  core: AccountCore,
  { relay_id }: ChannelRow,
  { value, signal }: Submission,
): Promise<void> {
  const relay = core.relay(relay_id);
  // A change has no ID: sent twice, an edit would undo another account's edit made meanwhile.
  const options = { signal, repeat: 'unsent' } as const;
  if (value.write === 'edit') await relay.call('channel.post.edit', value.edit, options);
  else await relay.call('channel.post.delete', value.deletion, options);
}

async function repeatChange(
  core: AccountCore,
  row: ChannelRow,
  submission: Submission,
): Promise<void> {
  if (await hasTakenEffect(core, row, submission)) return;
  try {
    await submitChange(core, row, submission);
  } catch (error) {
    // The earlier attempt may have arrived meanwhile.
    if (isFinalRefusal(error) && (await hasTakenEffect(core, row, submission))) return;
    throw error;
  }
}

/** An edit that must not be sent again: another account has changed the post meanwhile. */
export class EditTooLate extends ClientError {
  constructor(message: string) {
    super('not_permitted', message);
  }
}

/**
 * Reads the timeline to find out whether an edit or a deletion took effect (06 §10.4).
 * @throws EditTooLate if another account edited or deleted the post meanwhile
 */
async function hasTakenEffect(
  core: AccountCore,
  row: ChannelRow,
  { value, signal }: Submission,
): Promise<boolean> {
  const sent = value.write === 'edit' ? value.edit : value.deletion;
  let after = value.behind;
  let rival: string | undefined;
  const budget = new ReadBudget(core.reading);
  for (;;) {
    const page = await readPageAfter(core, row, { after, signal });
    for (const { kind, payload } of page.events) {
      if (kind !== 'edit' && kind !== 'delete') continue;
      if (payload.target_sequence !== sent.target_sequence) continue;
      if (payload.device_signature === sent.device_signature) return true;
      if (kind === 'delete' && value.write === 'delete') return true;
      rival =
        kind === 'delete'
          ? 'the post was deleted'
          : 'the post was edited meanwhile: read it and edit again';
    }
    after = page.sequences.at(-1) ?? after;
    if (!page.hasMore) break;
    budget.spendPage(page.sequences.length);
    if (budget.isSpent) {
      rival ??= 'the edit was not found: read the channel and edit again';
      break;
    }
  }
  if (rival !== undefined && value.write === 'edit') throw new EditTooLate(rival);
  return false;
}
