import { useEffect, useRef, useState } from 'preact/hooks';
import { text } from '../text/index.ts';
import type { TimelineItem } from './timeline-item.ts';

/** So many arrivals are announced one by one; of more, only their number. */
const announcedOneByOne = 3;

/**
 * Announces what arrives, and nothing that is already there when a conversation is opened.
 *
 * @param props.isRead whether `items` were read: those before are not announced
 */
export function Arrivals({
  items,
  isRead,
}: {
  readonly items: readonly TimelineItem[];
  readonly isRead: boolean;
}) {
  const known = useRef<number | undefined>(undefined);
  const [announced, setAnnounced] = useState({ count: 0, lines: [] as readonly string[] });
  useEffect(() => {
    if (!isRead) return;
    const before = known.current;
    known.current = Math.max(before ?? 0, items.at(-1)?.order ?? 0);
    if (before === undefined) return;
    const arrived = items.filter(({ order, isOwn }) => order > before && !isOwn);
    if (arrived.length === 0) return;
    const lines =
      arrived.length > announcedOneByOne
        ? [text.newMessages(arrived.length)]
        : arrived.map((item) => item.announcement());
    setAnnounced(({ count }) => ({ count: count + 1, lines }));
  }, [items, isRead]);
  return (
    <div class="hidden" aria-live="polite">
      {announced.lines.map((line, index) => (
        // New elements: the same words once more are announced, too.
        <p key={`${announced.count}/${index}`}>{line}</p>
      ))}
    </div>
  );
}
