/** An observer of storage, of either engine, that does nothing. */
export const silentObserver = {
  lost() {},
  restored() {},
  conflicted() {},
  commitUnknown() {},
  lockLost() {},
  blocked() {},
  resumed() {},
  wentBack() {},
  damaged() {},
  pagesUnchecked() {},
  checkpointsStopped() {},
  unflushed(error: unknown) {
    throw error;
  },
  unannounced() {},
  reachable() {},
};
