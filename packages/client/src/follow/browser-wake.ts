import '../dispose-symbols.ts';
import type { WakeSource } from '../connect/waker.ts';

/** The globals of a page that {@link browserWake} listens to; tests pass their own. */
export interface WakeEvents {
  readonly window: Pick<EventTarget, 'addEventListener' | 'removeEventListener'>;
  readonly document: Pick<EventTarget, 'addEventListener' | 'removeEventListener'> & {
    readonly visibilityState: string;
  };
}

/**
 * Wakes a client when the browser is online again, and when its page is shown or resumed after it
 * was hidden, frozen or kept for going back.
 *
 * @param page the globals `window` and `document`
 * @example
 * import { browserWake } from '@posthouse/client/web';
 * const stop = new AbortController();
 * account.follow({ signal: stop.signal, wake: browserWake() });
 */
export function browserWake(
  { window, document }: WakeEvents = globalThis as unknown as WakeEvents,
): WakeSource {
  return (wake) => {
    const shown = () => {
      if (document.visibilityState === 'visible') wake();
    };
    const listeners = [
      [window, 'online', wake],
      [window, 'pageshow', wake],
      [document, 'resume', wake],
      [document, 'visibilitychange', shown],
    ] as const;
    for (const [target, type, listener] of listeners) target.addEventListener(type, listener);
    return {
      [Symbol.dispose]: () => {
        for (const [target, type, listener] of listeners)
          target.removeEventListener(type, listener);
      },
    };
  };
}
