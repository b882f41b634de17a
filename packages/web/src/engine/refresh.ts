/**
 * Makes a function that reads again, one run at a time: what is asked during a run is done once more
 * after it, however often it was asked.
 *
 * @param failed is told of a run that failed; the next one that is asked for tries again
 */
export function refresher(read: () => Promise<void>, failed: (error: unknown) => void) {
  let running: Promise<void> | undefined;
  let isAsked = false;
  const run = async () => {
    try {
      while (isAsked) {
        isAsked = false;
        await read();
      }
    } catch (error) {
      failed(error);
    } finally {
      running = undefined;
    }
  };
  return (): Promise<void> => {
    isAsked = true;
    running ??= run();
    return running;
  };
}
