/** A list that the relay answers page by page. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { sentenceOf } from './notice.ts';
import { Button } from './parts.tsx';
import { call } from './session.ts';

interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}

/** What was read of a list. `page` is the last page that was answered. */
export interface List<Item, Answer extends Page<Item> = Page<Item>> {
  readonly items: readonly Item[];
  readonly page: Answer | undefined;
  readonly isBusy: boolean;
  readonly fault: string;
  /** Reads the list from its beginning. */
  reload(): Promise<void>;
  more(): Promise<void>;
}

/** Reads a list when the component appears, and when `params` change. */
export function useList<Item, Answer extends Page<Item> = Page<Item>>(
  verb: `${string}/${string}`,
  params: object = {},
): List<Item, Answer> {
  const [items, setItems] = useState<readonly Item[]>([]);
  const [page, setPage] = useState<Answer>();
  const [isBusy, setBusy] = useState(true);
  const [fault, setFault] = useState('');
  const reading = useRef(0);
  const load = async (before: readonly Item[], cursor?: string) => {
    reading.current += 1;
    const own = reading.current;
    setBusy(true);
    setFault('');
    try {
      const asked = cursor === undefined ? params : { ...params, cursor };
      const found = await call<Answer>(verb, asked);
      // A later reading has begun: this one is of no interest any more.
      if (own !== reading.current) return;
      setItems([...before, ...found.items]);
      setPage(found);
    } catch (error) {
      if (own === reading.current) setFault(sentenceOf(error));
    }
    if (own === reading.current) setBusy(false);
  };
  const key = JSON.stringify(params);
  useEffect(() => {
    void load([]);
    return () => {
      reading.current += 1;
    };
  }, [key]);
  return {
    ...{ items, page, isBusy, fault },
    reload: () => load([]),
    more: () => load(items, page?.next),
  };
}

/** What stands around the rows of a list: that it is read, why not, and that there is more. */
export function Listed({
  list,
  children,
}: {
  readonly list: Pick<List<unknown>, 'page' | 'isBusy' | 'fault' | 'more'>;
  readonly children: ComponentChildren;
}) {
  const { page, isBusy, fault } = list;
  return (
    <>
      {fault !== '' && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      {page !== undefined && children}
      {page === undefined && isBusy && <p role="status">Reading …</p>}
      {page?.next !== undefined && <Button work={list.more}>Show more</Button>}
    </>
  );
}
