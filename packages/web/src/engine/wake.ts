import type { WakeSource } from '@posthouse/client';
import { browserWake } from '@posthouse/client/web';

/** Milliseconds between two looks at the clock. Pages that are hidden look once a minute at worst. */
export const tick = 1_000;
const asleep = 3_000;
const hiddenAsleep = 90_000;

/** Returns what to call at each {@link tick}: it wakes if the machine slept since the call before. */
export function sleepCheck(
  wake: () => void,
  { now = Date.now, isHidden = () => document.hidden } = {},
): () => void {
  let last = now();
  return () => {
    const passed = now() - last;
    last += passed;
    if (passed > (isHidden() ? hiddenAsleep : asleep)) wake();
  };
}

/**
 * Wakes the client when the browser says so, after the machine slept, which browsers do not say, and when another tab
 * of this origin does: the one that is connected may be hidden.
 */
export const pageWake: WakeSource = (wake) => {
  const tabs = new BroadcastChannel('posthouse.wake');
  tabs.onmessage = wake;
  const wakeAll = () => {
    wake();
    tabs.postMessage(0);
  };
  const events = browserWake()(wakeAll);
  const timer = setInterval(sleepCheck(wakeAll), tick);
  return {
    [Symbol.dispose]() {
      events[Symbol.dispose]();
      clearInterval(timer);
      tabs.close();
    },
  };
};
