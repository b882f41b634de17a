/** Names of the stores of this origin: the usual one, and the one that is encrypted while the device is locked. */
export const plainStore = 'posthouse';
export const lockedStore = 'posthouse-locked';
export const storeNames = [plainStore, lockedStore] as const;
