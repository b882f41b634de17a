import { checkAccountId } from '@posthouse/protocol';
import type { RelayHandler } from '../../dispatch/relay-handler.ts';
import { homeOf, locate } from '../home.ts';
import { resolveProfileHere } from '../profiles.ts';
import { requireHome } from '../rules.ts';

/**
 * `profile.resolve` of an account at home here, for another relay (07 §C7): whatever account
 * asks for it there.
 */
export const profileResolveForRelay: RelayHandler<'profile.resolve'> = async (
  context,
  { params, peer },
) => {
  const { clock, identity, network } = context;
  const { account } = params;
  checkAccountId(network, account, 'account');
  const now = clock.now();
  requireHome(await locate(context, account, { now, asker: `relay ${peer.relayId}` }));
  return await resolveProfileHere(context, account, async (tx) =>
    requireHome(await homeOf(tx, account, identity.relayId, now)),
  );
};
