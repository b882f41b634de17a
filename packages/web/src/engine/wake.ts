import type { WakeSource } from '@posthouse/client';
import { browserWake } from '@posthouse/client/web';

/** Milliseconds between two looks at the clock. Pages that are hidden look once a minute at worst. */
const tick = 1_000;
const asleep = 3_000;
const hiddenAsleep = 90_000;

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
  let last = Date.now();
  const timer = setInterval(() => {
    const passed = Date.now() - last;
    last += passed;
    if (passed > (document.hidden ? hiddenAsleep : asleep)) wakeAll();
  }, tick);
  return {
    [Symbol.dispose]() {
      events[Symbol.dispose]();
      clearInterval(timer);
      tabs.close();
    },
  };
};
