/** How long the page waits before it follows the account again. */
import type { AccountEvent } from '@posthouse/client';
import type { WorkerAccount } from '@posthouse/client/web';
import { expect, test } from 'vitest';
import { followAccount } from '../src/engine/follow.ts';

/** Follows an account each of whose tries ends with an error, after these states of the connection. */
function delaysOf(...tries: readonly (readonly ('connecting' | 'connected')[])[]) {
  const delays: number[] = [];
  const waiting: (() => void)[] = [];
  let left = [...tries];
  const subscribe = (
    listener: (event: AccountEvent) => void,
    { onError }: { readonly onError: (error: unknown) => void },
  ) => {
    const [states = [], ...others] = left;
    left = others;
    for (const state of states) listener({ kind: 'connection', state } as AccountEvent);
    onError(new Error('no luck'));
  };
  followAccount({ subscribe } as unknown as WorkerAccount, {
    listener: () => undefined,
    failed: () => left.length > 0,
    begun: () => undefined,
    later: (work, milliseconds) => {
      delays.push(milliseconds);
      waiting.push(work);
    },
  });
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) next();
  return delays;
}

test('each try that reaches no connection doubles the pause; one that does begins anew', () => {
  const failing = ['connecting'] as const;
  expect(delaysOf(failing, failing, failing, failing)).toEqual([1_000, 2_000, 4_000]);
  expect(delaysOf(failing, failing, ['connecting', 'connected'], failing, failing)).toEqual([
    1_000, 2_000, 1_000, 2_000,
  ]);
});

test('an error that no other try helps against ends following', () => {
  expect(delaysOf(['connecting'])).toEqual([]);
});
