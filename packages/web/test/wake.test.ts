/**
 * What the list waits for after a sleep: the page finds out by the clock that the machine slept, and the client gives
 * up a connection that does not answer (`packages/client/test/wake.test.ts`). Then all is read at once.
 */
import { describe, expect, test } from 'vitest';
import { silenceLimit } from '../../client/src/connect/relay-connection.ts';
import { sleepCheck, tick } from '../src/engine/wake.ts';

/** A page whose clock goes by hand; a sleep lets it go on without a look at it. */
function page({ isHidden = false } = {}) {
  const seen = { now: 1_800_000_000_000, wakes: 0 };
  const check = sleepCheck(
    () => {
      seen.wakes += 1;
    },
    { now: () => seen.now, isHidden: () => isHidden },
  );
  return {
    seen,
    sleep(milliseconds: number) {
      seen.now += milliseconds;
    },
    /** Lets the page look once, a tick after it looked last or woke up. */
    look(after = tick) {
      seen.now += after;
      check();
    },
  };
}

describe('0045: a sleep is noticed, and a dead connection given up, within two seconds', () => {
  test('the first look at the clock after a sleep wakes the client, and no other', () => {
    const { seen, sleep, look } = page();
    for (let looks = 0; looks < 100; looks += 1) look();
    expect(seen.wakes).toBe(0);
    sleep(3_600_000);
    look();
    expect(seen.wakes).toBe(1);
    for (let looks = 0; looks < 100; looks += 1) look();
    expect(seen.wakes).toBe(1);
  });

  test('a page that is only busy, or hidden and slowed down by the browser, wakes nothing', () => {
    const busy = page();
    busy.look(3_000);
    expect(busy.seen.wakes).toBe(0);
    const hidden = page({ isHidden: true });
    for (let looks = 0; looks < 10; looks += 1) hidden.look(60_000);
    expect(hidden.seen.wakes).toBe(0);
    hidden.sleep(90_000);
    hidden.look();
    expect(hidden.seen.wakes).toBe(1);
  });

  test('a look at the clock and the silence of a dead connection leave half of a second to connect again', () => {
    expect(tick + silenceLimit).toBeLessThanOrEqual(1_500);
  });
});
