/**
 * Drafts that have a name: each is posted or withdrawn, once, whatever programs with this store do at the same time, and
 * whenever one of them ends.
 */
import { ClientError } from '../errors.ts';
import type { StoreWriter } from '../store/index.ts';
import { NewestRows } from './newest-rows.ts';

/** Names a draft, so that it is posted once at most, or withdrawn. */
export interface NamedDraft {
  /** A name of 1 to 100 characters that no other draft of this store has; the newest 10,000 are known. */
  readonly draftId?: string;
}

const outcomes = new NewestRows<'posted' | 'withdrawn'>('draft-outcomes', 10_000);

/**
 * Checks the name of a draft, if it has one: before anything else that a call does.
 * @throws ClientError `invalid_input`
 */
export function checkDraftId({ draftId }: { readonly draftId?: unknown }): void {
  if (draftId === undefined) return;
  const isText = typeof draftId === 'string' && draftId.isWellFormed();
  if (!isText || draftId === '' || draftId.length > 100) {
    throw new ClientError('invalid_input', 'draftId: give 1 to 100 characters');
  }
}

/**
 * Notes that a draft is posted, in the transaction that stores its message.
 * @throws ClientError `invalid_input` if it was posted or withdrawn before
 */
export async function markPosted(tx: StoreWriter, { draftId }: NamedDraft): Promise<void> {
  if (draftId === undefined) return;
  if ((await outcomes.get(tx, draftId)) !== undefined) {
    throw new ClientError('invalid_input', 'draftId: this draft was posted or withdrawn');
  }
  await outcomes.put(tx, draftId, 'posted');
}

/** Notes that a draft is withdrawn, unless it was posted. @returns whether it is withdrawn */
export async function markWithdrawn(tx: StoreWriter, draftId: string): Promise<boolean> {
  const before = await outcomes.get(tx, draftId);
  if (before === undefined) await outcomes.put(tx, draftId, 'withdrawn');
  return before !== 'posted';
}
