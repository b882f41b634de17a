import type { RelayContext } from '../context.ts';
import { noWayIn } from '../observability/registration-events.ts';
import { hasAllowed, hasUsableInvite } from '../registration/index.ts';
import { hasAccounts } from './store.ts';

/**
 * Logs how to let the first account in, if no account was ever here and none has a right to come.
 */
export async function remindOfRights(context: RelayContext): Promise<void> {
  const { clock, registration, storage } = context;
  const { mode } = registration;
  if (mode === 'open' || mode === 'closed') return;
  const isUseful = await storage.read(async (tx) => {
    if ((await hasAccounts(tx)) || (await hasAllowed(tx))) return false;
    return mode !== 'invite' || !(await hasUsableInvite(tx, clock.now()));
  });
  if (isUseful) noWayIn(context, mode);
}
