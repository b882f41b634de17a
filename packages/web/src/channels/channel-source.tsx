/** An open channel: its timeline, and who may post. */
import type { Channel } from '@posthouse/client';
import { computed, signal } from '@preact/signals';
import { writtenLines } from '../groups/written-lines.ts';
import { nameOf } from '../parts/names.ts';
import { show } from '../router.ts';
import type { MakeSource } from '../state/conversation-source.ts';
import { linesOf } from './entry-lines.ts';
import { text } from './text.ts';

/** Why nothing can be posted; empty if it can. */
function barrierOf(channel: Channel | undefined): string {
  if (channel === undefined || channel.followState === 'creating') return text.creating;
  if (channel.descriptor.status === 'closed') return text.closed;
  if (channel.followState === 'left') return text.notFollowed;
  return channel.role === 'reader' ? text.readOnly : '';
}

export const channelSource: MakeSource = (app, id) => {
  const { channels } = app.account;
  const channel = signal<Channel | undefined>(undefined);
  return {
    canReply: false,
    barrier: computed(() => barrierOf(channel.value)),
    more: ({ order }) => show({ screen: 'post', id, sequence: order }),
    async read(limit) {
      const [newest, written, read] = await Promise.all([
        channels.listEntries(id, { newestFirst: true, limit: limit + 1 }),
        channels.listWritten(id),
        channels.get(id),
      ]);
      channel.value = read;
      const entries = newest.slice(0, limit).reverse();
      const timeline = linesOf(entries, (account) => nameOf(app, account));
      const lines = [...timeline, ...writtenLines(written, timeline.at(-1))];
      return { lines, hasOlder: newest.length > limit || (read.span?.first ?? 0) > 0 };
    },
    async fetchOlder() {
      await channels.readOlder(id);
    },
    async post({ replyTo: _none, ...draft }) {
      await channels.post(id, draft);
    },
    async cancel({ messageId }) {
      await channels.cancel({ channelId: id, messageId });
    },
  };
};
