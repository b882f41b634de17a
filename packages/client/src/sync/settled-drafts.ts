/**
 * Drafts that have a name: each is posted or withdrawn, once, whatever programs with this store do at the same time, and
 * whenever one of them ends.
 */
import { ClientError } from '../errors.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { NewestRows } from './newest-rows.ts';

/** Names a draft, so that it is posted once at most, or withdrawn. */
export interface NamedDraft {
  /** A name of 1 to 100 characters that no other draft of this store has; the newest 10,000 are known. */
  readonly draftId?: string;
}

const settled = new NewestRows<'posted' | 'withdrawn'>('settled-drafts', 10_000);

/**
 * Notes that a draft is posted, in the transaction that stores its message.
 * @throws ClientError `invalid_input` if it was posted or withdrawn before
 */
export async function settleDraft(tx: StoreWriter, { draftId }: NamedDraft): Promise<void> {
  if (draftId === undefined) return;
  if ((await outcomeOfDraft(tx, draftId)) !== undefined) {
    throw new ClientError('invalid_input', 'draftId: this draft was posted or withdrawn');
  }
  await settled.put(tx, draftId, 'posted');
}

/** Notes that a draft is withdrawn, unless it was posted. @returns whether it is withdrawn */
export async function withdrawDraft(tx: StoreWriter, draftId: string): Promise<boolean> {
  const before = await outcomeOfDraft(tx, draftId);
  if (before === undefined) await settled.put(tx, draftId, 'withdrawn');
  return before !== 'posted';
}

async function outcomeOfDraft(tx: StoreReader, draftId: string) {
  if (draftId === '' || draftId.length > 100) {
    throw new ClientError('invalid_input', 'draftId: give 1 to 100 characters');
  }
  return await settled.get(tx, draftId);
}
