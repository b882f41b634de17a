import { checkAccountId } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { forwardQuery } from '../ask-home.ts';
import { confirmDevice } from '../devices.ts';
import { homeOf } from '../home.ts';
import { resolveProfileHere, verifyResolvedProfile } from '../profiles.ts';
import { requireAnswerable } from '../rules.ts';

/** `profile.resolve` (03 section 8): the same for the own account and any other. */
export const profileResolve: Handler<'profile.resolve'> = async (context, call) => {
  const { network, clock, identity } = context;
  const { account } = call.params;
  const session = call.session;
  checkAccountId(network, account, 'account');
  const now = clock.now();
  const forwarded = await forwardQuery(context, session, {
    account,
    method: 'profile.resolve',
    params: { account },
    verify: (resolved, text) => verifyResolvedProfile(context, resolved, { account, text }),
  });
  if (forwarded !== undefined) return forwarded;
  return await resolveProfileHere(context, account, async (tx) => {
    await confirmDevice(context, tx, { session, now });
    requireAnswerable(await homeOf(tx, account, identity.relayId, now));
  });
};
