import { platform } from './platform.ts';

/** What the browser permits the origin to store. */
export interface StorageStatus {
  /** Whether the browser deletes the data only if the person asks for it. */
  readonly persisted: boolean;
  /** Bytes in use, and bytes the origin may use; absent if the browser does not say. */
  readonly usage?: number;
  readonly quota?: number;
}

/**
 * Returns how much is stored for the page's origin, and whether the browser may delete it without
 * being asked, which loses the keys of this device. With `ask`, it asks the browser not to; some ask
 * the person, so do it after a click, in a page: a worker cannot ask.
 *
 * @example
 * import { storageStatus } from '@posthouse/client/web';
 * const { persisted } = await storageStatus({ ask: true });
 */
export async function storageStatus({
  ask = false,
}: {
  readonly ask?: boolean;
} = {}): Promise<StorageStatus> {
  const { storage } = platform.navigator;
  if (storage === undefined) return { persisted: false };
  // Workers can only ask whether it is so.
  const persisted = (await storage.persisted()) || (ask && ((await storage.persist?.()) ?? false));
  const { usage, quota } = await storage.estimate();
  return {
    persisted,
    ...(usage !== undefined && { usage }),
    ...(quota !== undefined && { quota }),
  };
}
