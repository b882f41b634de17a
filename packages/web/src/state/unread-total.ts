import type { Conversation } from '@posthouse/client';
import type { WorkerAccount } from '@posthouse/client/web';

const sum = (all: readonly Conversation[]) => all.reduce((so, { unread }) => so + unread, 0);

/**
 * Counts unread messages of all conversations, of which a part is listed. The others are read only when they may have
 * changed: a message moves its conversation into the list, and another one out of it.
 */
export class UnreadTotal {
  /** What was listed when the others were counted. */
  #listed = '';
  #others = 0;

  /** The others may have changed without a message: they were marked as read, here or on another device. */
  forget(): void {
    this.#listed = '';
  }

  async count(
    conversations: WorkerAccount['conversations'],
    listed: readonly Conversation[],
    hasMore: boolean,
  ): Promise<number> {
    const last = listed.at(-1);
    if (!hasMore || last === undefined) return sum(listed);
    const names = listed.map(({ kind, id }) => kind + id);
    const now = names.sort().join();
    if (now !== this.#listed) {
      this.#others = sum(await conversations.list({ before: last }));
      this.#listed = now;
    }
    return sum(listed) + this.#others;
  }
}
