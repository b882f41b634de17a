import { digest } from '../digest.ts';
import type { Writer } from '../storage/types.ts';
import { markInactive } from './inactive-store.ts';
import { readSeenState, writeSeenState } from './seen-store.ts';
import { deleteStaged } from './staged-store.ts';
import {
  deleteDevices,
  deleteProfile,
  deleteState,
  endOwnRoute,
  readDevices,
  readState,
} from './store.ts';
import { addHints } from './watcher-store.ts';

/**
 * Removes an account that is, or was, at home here: devices, their state, profile, route. What stays is
 * what keeps others safe if the account ID comes back: the revisions of its route and of its state, so
 * that no earlier one is ever accepted (03 §3.4, 07 §C6). The devices' access to groups ends as if they
 * had been removed (05 §7.3), and relays that asked for them are told.
 *
 * @param account the write must hold `account:<account>`, and must not say that it keeps facts
 * @returns whether the account was here
 */
export async function endAccount(
  tx: Writer,
  account: string,
  { relayId, now }: { readonly relayId: string; readonly now: number },
): Promise<boolean> {
  const state = await readState(tx, account);
  if (state === undefined) return false;
  const seen = await readSeenState(tx, account);
  await writeSeenState(
    tx,
    account,
    seen ?? { revision: state.revision, digest: digest(state.text) },
  );
  for (const { deviceId } of await readDevices(tx, account)) {
    await markInactive(tx, { account, deviceId });
  }
  await deleteDevices(tx, account);
  await deleteState(tx, account);
  await deleteStaged(tx, account);
  await deleteProfile(tx, account);
  await endOwnRoute(tx, account, relayId);
  await addHints(tx, account, { now });
  return true;
}
