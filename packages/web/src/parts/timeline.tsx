import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { text } from '../text/index.ts';
import { Arrivals } from './arrivals.tsx';
import { useReadingPlace } from './reading-place.ts';
import type { TimelineItem } from './timeline-item.ts';
import { isVisible } from './visibility.ts';

/**
 * A scrolled list of messages, the newest at the bottom. What is read stays where it is. Lines of messages have the
 * attribute `data-order`.
 *
 * @param props.isRead whether `items` were read: those before are not announced
 * @param props.onSeen called when the newest item is in sight, and each time another one is
 * @param props.onAtEnd called with whether the end is shown
 */
export function Timeline({
  label,
  items,
  isRead,
  onSeen,
  onAtEnd,
  children,
}: {
  readonly label: string;
  readonly items: readonly TimelineItem[];
  readonly isRead: boolean;
  readonly onSeen: () => void;
  readonly onAtEnd: (isAtEnd: boolean) => void;
  readonly children: ComponentChildren;
}) {
  const { box, list, isAtEnd, toEnd, onScroll } = useReadingPlace(items);
  const [seen, setSeen] = useState(0);
  const last = items.at(-1);
  useEffect(() => onAtEnd(isAtEnd), [isAtEnd]);
  useEffect(() => {
    if (last === undefined || !isAtEnd || !isVisible.value) return;
    setSeen(last.order);
    onSeen();
  }, [last?.order, isAtEnd, isVisible.value]);
  const unseen = isAtEnd ? 0 : items.filter((item) => item.order > seen && !item.isOwn).length;
  return (
    <div class="timeline">
      <section
        ref={box}
        class="messages"
        aria-label={label}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls what has the focus.
        tabIndex={0}
        onScroll={onScroll}
      >
        <ol ref={list}>{children}</ol>
      </section>
      {unseen > 0 && (
        <button
          type="button"
          class="newest"
          onClick={() => {
            toEnd();
            box.current?.focus();
          }}
        >
          {text.newMessages(unseen)}
        </button>
      )}
      <Arrivals {...{ items, isRead }} />
    </div>
  );
}
