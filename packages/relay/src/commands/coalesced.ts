/**
 * Returns a function that runs `work`, once at a time. If it is called while `work` runs, one more run
 * follows, however many calls there were: it begins after all of them.
 *
 * @param work must not reject
 */
export function coalesced(work: () => Promise<void>): () => void {
  let isRunning = false;
  let isWanted = false;
  const run = async () => {
    isRunning = true;
    while (isWanted) {
      isWanted = false;
      await work();
    }
    isRunning = false;
  };
  return () => {
    isWanted = true;
    if (!isRunning) void run();
  };
}
