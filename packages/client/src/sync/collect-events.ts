/** Running generators of events to their end. */
import type { AccountCore } from '../core.ts';
import type { AccountEvent } from '../events.ts';

/** Adds events to the buffer for the next reader of events. @returns what the generator returns */
export async function bufferEvents<R>(
  { eventBuffer }: AccountCore,
  pages: AsyncGenerator<readonly AccountEvent[], R>,
): Promise<R> {
  // Page by page: a timeline may have a hundred thousand events.
  for (;;) {
    const step = await pages.next();
    if (step.done === true) return step.value;
    eventBuffer.add(step.value);
  }
}

/** Collects all events. */
export async function collectEvents<E>(pages: AsyncIterable<readonly E[]>): Promise<E[]> {
  const events: E[] = [];
  for await (const page of pages) events.push(...page);
  return events;
}
