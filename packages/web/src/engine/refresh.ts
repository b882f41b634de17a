import { delayAfter } from './retry-delay.ts';

/**
 * Makes a function that reads again, one run at a time: what is asked during a run is done once more
 * after it, however often it was asked. A run that failed is tried again after a while, or when it
 * is asked for before.
 *
 * @param failed is told of each run that failed; returns whether to try again
 */
export function refresher(read: () => Promise<void>, failed: (error: unknown) => boolean) {
  let running: Promise<void> | undefined;
  let isAsked = false;
  let failures = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const run = async () => {
    clearTimeout(timer);
    try {
      while (isAsked) {
        isAsked = false;
        await read();
      }
      failures = 0;
    } catch (error) {
      if (failed(error)) timer = setTimeout(again, delayAfter(failures));
    } finally {
      running = undefined;
    }
  };
  const refresh = (): Promise<void> => {
    isAsked = true;
    running ??= run();
    return running;
  };
  const again = () => {
    failures += 1;
    void refresh();
  };
  return refresh;
}
