/** Sharing with the account's other devices, when there is something to share (decision 0039). */
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { dropChanges, hasSharedWork, seenDevices } from './change-rows.ts';

/**
 * Notices new own devices, sends them and the others what changed, and adopts what they sent. Does
 * nothing for an account with one device.
 *
 * @param options.inBackground whether only new devices are noticed before it returns
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour of the home relay
 */
export async function syncOwnDevices(
  core: AccountCore,
  signal: AbortSignal,
  { inBackground }: { readonly inBackground: boolean },
): Promise<void> {
  const { hasOthers, hasChanged, hasWork } = await core.store.read(async (tx) => {
    const state = await knownState(tx, core.account);
    const seen = await seenDevices.get(tx, 'own');
    return {
      hasOthers: (state?.certificates.length ?? 0) > 1,
      hasChanged: state?.revision !== seen?.revision,
      hasWork: await hasSharedWork(tx),
    };
  });
  if (!hasOthers) {
    if (hasWork) await core.store.write(dropChanges);
    return;
  }
  if (!hasChanged && !hasWork) return;
  const { noteNewDevices, shareChanges } = await core.later();
  if (hasChanged) await noteNewDevices(core);
  if (!hasWork) return;
  if (inBackground) core.sender.start('own-devices', (within) => shareChanges(core, within));
  else await shareChanges(core, signal);
}
