/**
 * Web Locks by which the tabs of the app know of each other. A tab has one for as long as it lives, however it ends, and
 * gets it before it reads which store is used; a tab that changes that keeps the others from beginning.
 */

/** Begins the name of the lock of each tab. */
export const tabLock = 'posthouse.tab';

/** Shared by tabs that begin; the one that locks, unlocks or erases the device has it alone. */
export const changeLock = 'posthouse.change';

/** Names this tab in what it stores. */
export const tabId = crypto.randomUUID();

/** Waits while another tab changes which store is used, and has this tab counted from then on. */
export async function joinTabs(): Promise<void> {
  const { locks } = navigator;
  await locks?.request(
    changeLock,
    { mode: 'shared' },
    () =>
      new Promise<void>((joined) => {
        const live = () => {
          joined();
          return new Promise(() => undefined);
        };
        void locks.request(`${tabLock}.${tabId}`, live);
      }),
  );
}

/** Waits until a tab has ended. @throws the reason of the signal */
export async function untilTabEnded(tab: string, signal: AbortSignal): Promise<void> {
  await navigator.locks.request(`${tabLock}.${tab}`, { mode: 'shared', signal }, () => undefined);
}
