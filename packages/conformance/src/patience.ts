import { setTimeout } from 'node:timers/promises';
import { Violation } from './demand.ts';

/**
 * Asks again and again until the answer is there: for what a relay does in its own time.
 * @param what names it where it does not come
 */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | undefined>,
  { seconds = 30 }: { readonly seconds?: number } = {},
): Promise<T> {
  const deadline = Date.now() + seconds * 1_000;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > deadline) throw new Violation(`${what} within ${seconds} seconds`);
    await setTimeout(100);
  }
}
