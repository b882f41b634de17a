/** Lists a channel's entries and goes on with those that arrive, without leaving a post out. */
import type { ChannelEntry } from '../channels/timeline/channel-entry.ts';
import type { AccountEvent } from '../events.ts';
import type { AccountSession } from './client-session.ts';
import { followEvents } from './follow-events.ts';

/** An entry that no event of this reader is about, or an event, which may be of something else. */
export type Watched = { readonly entry: ChannelEntry } | { readonly event: AccountEvent };

/** Entries read at once from the store. */
const batchSize = 100;

/**
 * Yields what comes after the entries that were shown. Another program on the folder may finish
 * events between the list and the start of this reader: their entries come first, and no entry comes
 * twice.
 *
 * @param options.shown the latest entries, oldest first
 */
export async function* watchChannel(
  { account, signal }: Pick<AccountSession, 'account' | 'signal'>,
  { id, shown }: { readonly id: string; readonly shown: readonly ChannelEntry[] },
): AsyncGenerator<Watched> {
  const seen = new SeenEntries(shown);
  let isBegun = false;
  for await (const event of followEvents(account, signal)) {
    // Listed after this reader began: whatever is not in the list yet comes as an event.
    for (let hasMore = !isBegun; hasMore; isBegun = true) {
      const entries = await account.channels.listEntries(id, {
        ...(seen.through >= 0 && { after: seen.through }),
        limit: batchSize,
      });
      for (const entry of entries) {
        seen.add(entry);
        yield { entry };
      }
      hasMore = entries.length === batchSize;
    }
    if ('channelId' in event && event.channelId === id && seen.has(event)) continue;
    yield { event };
  }
}

/** Entries that were shown from the list, so that their events are not. */
class SeenEntries {
  /** The last sequence; -1 if there is none. */
  through = -1;
  readonly #edits = new Set<number>();
  readonly #deleted = new Set<number>();
  readonly #revisions = new Set<number>();

  constructor(entries: readonly ChannelEntry[]) {
    for (const entry of entries) this.add(entry);
  }

  add(entry: ChannelEntry): void {
    this.through = entry.kind === 'gap' ? entry.through : entry.sequence;
    if (entry.kind === 'post' && entry.edited) this.#edits.add(entry.edited.sequence);
    if (entry.kind === 'deletion') this.#deleted.add(entry.targetSequence);
    if (entry.kind === 'change') this.#revisions.add(entry.descriptor.revision);
  }

  has(event: AccountEvent): boolean {
    switch (event.kind) {
      case 'channel-post':
        return event.post.sequence <= this.through;
      case 'channel-edited':
        return this.#edits.has(event.post.edited?.sequence ?? -1);
      case 'channel-deleted':
        return this.#deleted.has(event.sequence);
      case 'channel-changed':
        return this.#revisions.has(event.descriptor.revision);
      case 'channel-event-refused':
        return event.sequence <= this.through;
      case 'channel-gap':
        return event.through <= this.through;
      case 'channel-rollback':
        // The timeline is read again, and may have lower numbers; not if only descriptors were lost.
        if (event.revision === undefined) this.through = -1;
        return false;
      default:
        return false;
    }
  }
}
