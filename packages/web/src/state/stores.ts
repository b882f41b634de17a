/** Names of the stores of this origin: the usual one, and the one that is encrypted while the device is locked. */
export const plainStore = 'posthouse';
export const lockedStore = 'posthouse-locked';
/** That of the visitor who reads channels without an account. */
export const visitorStore = 'posthouse-visitor';

/** Where the lock is kept: what opens the encrypted store with a password or passkey. No secret. */
export const lockMark = 'posthouse.lock';

/** Web Locks: each tab has one of this name, so that a tab knows whether it is alone. */
export const tabLock = 'posthouse.tab';

/** Whether the store is encrypted, and has to be opened by the person. */
export const isLocked = () => localStorage.getItem(lockMark) !== null;
