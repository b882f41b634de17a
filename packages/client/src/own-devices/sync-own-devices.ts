/** Sharing with the account's other devices, when there is something to share (decision 0039). */
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { dropChanges, openWork, seenDevices } from './change-rows.ts';

/** Milliseconds after which one `sync` asks no other host of a channel that is to be followed. */
const adoptionTime = 5_000;
/** Messages with history that one `sync` sends to a device. */
const batchesPerSync = 8;

/**
 * Notices new own devices, and sends them and the others what changed.
 *
 * @param options.inBackground whether only new devices are noticed before it returns; what the others
 *   sent is adopted after that, as by {@link adoptShared}
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour of the home relay
 */
export async function syncOwnDevices(
  core: AccountCore,
  signal: AbortSignal,
  { inBackground }: { readonly inBackground: boolean },
): Promise<void> {
  const { hasOthers, hasChanged, work } = await core.store.read(async (tx) => {
    const state = await knownState(tx, core.account);
    const seen = await seenDevices.get(tx, 'own');
    return {
      hasOthers: (state?.certificates.length ?? 0) > 1,
      hasChanged: state?.revision !== seen?.revision,
      work: await openWork(tx),
    };
  });
  if (!hasOthers && work.toSend) await core.store.write(dropChanges);
  const hasNews = hasOthers && hasChanged;
  const toAdopt = inBackground && work.toAdopt;
  // A hand-over to a device that was removed has to end.
  const hasWork = toAdopt || work.toApply || work.toHandOver || (hasOthers && work.toSend);
  if (!hasNews && !hasWork) return;
  const later = await core.later();
  const { adoptFromOwnDevices, continueHandOvers, noteNewDevices, sendChanges } = later;
  if (work.toApply) await later.applyWaitingObjects(core);
  if (hasNews) await noteNewDevices(core);
  if (!hasWork) return;
  if (inBackground) {
    core.sender.start('own-devices', async (within) => {
      if (hasOthers) await sendChanges(core, within);
      await adoptFromOwnDevices(core, within);
    });
    // Apart, because it may last for long.
    core.sender.start('hand-overs', (within) => continueHandOvers(core, within));
    return;
  }
  await sendChanges(core, signal);
  await continueHandOvers(core, signal, batchesPerSync);
}

/** Adopts what other own devices sent, also after they were removed; hosts get a short time. */
export async function adoptShared(core: AccountCore, signal: AbortSignal): Promise<void> {
  if (!(await core.store.read(openWork)).toAdopt) return;
  const { adoptFromOwnDevices } = await core.later();
  await adoptFromOwnDevices(core, signal, adoptionTime);
}
