/** Finds a post in its channel whose answer was lost (06 §10.4). */
import type { AccountCore } from '../../core.ts';
import { listPosts, notSentYet, ReadBudget, readPageAfter } from '../../taken.ts';
import type { ChannelRow } from '../channel-rows.ts';
import type { ContentWrite } from '../outbox.ts';

type PostWrite = Extract<ContentWrite, { readonly write: 'post' }>;

/** How much a host's clock may differ from this device's, in seconds. */
const clockTolerance = 86_400;

/** Returns the sequence of a post that may have been accepted; stored entries are read first. */
export async function findPost(
  core: AccountCore,
  row: ChannelRow,
  {
    value: { post, sent_at = 0 },
    signal,
  }: { readonly value: PostWrite; readonly signal: AbortSignal },
): Promise<number | undefined> {
  const isIts = (messageId: unknown) => messageId === post.message_id;
  const budget = new ReadBudget(core.reading);
  for (let before: number | undefined; ; ) {
    const range = { limit: 100, newestFirst: true, ...(before !== undefined && { before }) };
    const posts = await core.store.read((tx) => listPosts(tx, row.channel_id, range));
    const found = posts.find((each) => isIts(each.messageId) && each.from === core.account);
    if (found !== undefined) return found.sequence;
    const last = posts.at(-1);
    if (last === undefined || last.acceptedAt < sent_at - clockTolerance) break;
    before = last.sequence;
  }
  for (let after = row.span?.position ?? -1; !budget.isSpent; ) {
    const page = await readPageAfter(core, row, { after, signal });
    const found = page.events.find(({ kind, payload }) => {
      return kind === 'post' && isIts(payload.message_id);
    });
    if (found !== undefined) return found.sequence;
    if (!page.hasMore) return undefined;
    after = page.sequences.at(-1) ?? after;
    budget.spendPage(page.sequences.length);
  }
  throw notSentYet();
}
