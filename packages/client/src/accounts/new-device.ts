/** What every new device of an account has in common, however it was added. */
import type { StoreWriter } from '../store/index.ts';
import { enqueueTask } from '../sync/tasks.ts';

/** Seconds a device certificate is signed for. */
export const certificateLifetime = 31_104_000;
/** Seconds a new device waits for the contacts of the other devices. */
export const contactsWait = 604_800;
/** Seconds a certificate begins before now: relays' clocks may be that late. */
export const certificateLead = 86_400;

/** Has a new device ask the account's other devices for what they know (03 §11.2, 05 §17.1). */
export async function askOwnDevices(tx: StoreWriter): Promise<void> {
  await enqueueTask(tx, { kind: 'request-snapshot' });
  await enqueueTask(tx, { kind: 'request-groups' });
}
