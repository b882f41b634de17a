import type { WrittenMessage } from '@posthouse/client';
import type { Line } from '../state/conversation-source.ts';

/** What this device wrote and the timeline does not show yet, as lines after the last one of it. */
export function writtenLines(
  written: readonly (WrittenMessage & { readonly replyTo?: number })[],
  last: Line | undefined,
): Line[] {
  return written.map(({ createdAt = last?.createdAt ?? 0, replyTo, ...message }) => ({
    ...message,
    createdAt,
    order: last?.order ?? 0,
    ...(replyTo !== undefined && { replyTo: { from: '', messageId: '', order: replyTo } }),
  }));
}
