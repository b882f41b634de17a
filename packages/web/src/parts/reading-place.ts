import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TimelineItem } from './timeline-item.ts';

/** Pixels from the end that count as the end. */
const endZone = 40;

/** What is read, and where it stands: an element, and its distance from the top of the box in pixels. */
interface Place {
  readonly element: Element;
  readonly top: number;
}

/**
 * Holds what is read where it is in a scrolled box: at the end, or where a person scrolled to. Elements with the
 * attribute `data-order` are held; a person's own new message leads to the end. Call it where the
 * elements are rendered: it reads the place before they change.
 */
export function useReadingPlace(items: readonly TimelineItem[]) {
  const box = useRef<HTMLElement>(null);
  const list = useRef<HTMLOListElement>(null);
  /** Absent at the end. */
  const place = useRef<Place | undefined>(undefined);
  /** Where this has scrolled to itself: the event of it is no person's. */
  const held = useRef(0);
  const newest = useRef<number | undefined>(undefined);
  const [isAtEnd, setAtEnd] = useState(true);
  const last = items.at(-1);

  const hold = () => {
    const { current } = box;
    if (current === null) return;
    if (place.current === undefined) current.scrollTop = current.scrollHeight;
    else if (place.current.element.isConnected) {
      current.scrollTop += topIn(current, place.current.element) - place.current.top;
    }
    held.current = current.scrollTop;
  };
  /** Remembers where a person has scrolled to. */
  const follow = () => {
    const { current } = box;
    if (current === null || current.scrollTop === held.current) return;
    const { scrollTop, clientHeight, scrollHeight } = current;
    const isEnd = scrollTop + clientHeight > scrollHeight - endZone;
    place.current = isEnd ? undefined : placeIn(current);
    setAtEnd(isEnd);
  };
  // A browser sends the event of a scroll with its next frame. If the items change before, they would be held at the
  // place that the person has left, and the event would find nothing new.
  follow();
  const toEnd = () => {
    place.current = undefined;
    setAtEnd(true);
    hold();
  };
  useLayoutEffect(() => {
    const isOwnNew = newest.current !== undefined && last?.isOwn && last.order > newest.current;
    newest.current = last?.order ?? newest.current;
    if (isOwnNew) toEnd();
    else hold();
  }, [items]);
  useEffect(() => {
    // What is loaded later, such as formatted text, moves what is after it; so does a keyboard on the screen.
    const sizes = new ResizeObserver(hold);
    for (const { current } of [box, list]) if (current !== null) sizes.observe(current);
    return () => sizes.disconnect();
  }, []);
  return { box, list, isAtEnd, toEnd, onScroll: follow };
}

const topIn = (box: Element, element: Element) =>
  element.getBoundingClientRect().top - box.getBoundingClientRect().top;

/** The first message of which something can be seen. */
function placeIn(box: Element): Place | undefined {
  for (const element of box.querySelectorAll('[data-order]')) {
    const top = topIn(box, element);
    if (top + element.clientHeight > 0) return { element, top };
  }
  return undefined;
}
