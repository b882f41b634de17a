import { checkAccountId, deviceStateQuerySignatures, isSignedQuery } from '@posthouse/protocol';
import type { RelayContext } from '../../context.ts';
import type { HandlerResult } from '../../dispatch/handler.ts';
import type { RelayHandler } from '../../dispatch/relay-handler.ts';
import type { Access } from '../access.ts';
import { homeOf, locate } from '../home.ts';
import { requireHome } from '../rules.ts';
import {
  checkQueryTime,
  checkSignedQuery,
  resolveStateHere,
  verifyQueryAccess,
} from '../state-queries.ts';

/**
 * `device.state.resolve` of an account at home here, for another relay (07 §C6). Parameters without
 * a member of the signed form are a public query: no relay reads an account's own state elsewhere.
 */
export const deviceStateResolveForRelay: RelayHandler<'device.state.resolve'> = async (
  context,
  { params, peer },
) => {
  const { clock, network } = context;
  const { account } = params;
  const now = clock.now();
  const asker = `relay ${peer.relayId}`;
  if (isSignedQuery(params)) return await resolveSigned(context, params, { asker, now });
  checkAccountId(network, account, 'account');
  requireHome(await locate(context, account, { now, asker }));
  return await resolveHere(context, account, { access: { kind: 'public' }, now });
};

async function resolveSigned(
  context: RelayContext,
  query: unknown,
  { asker, now }: { readonly asker: string; readonly now: number },
): Promise<HandlerResult> {
  const { network, verifier } = context;
  checkSignedQuery(network, query);
  requireHome(await locate(context, query.account, { now, asker }));
  await verifier.verify(deviceStateQuerySignatures(network, query), 'device query');
  checkQueryTime(context, query, now);
  const access = await verifyQueryAccess(context, query, now);
  return await resolveHere(context, query.account, { access, now });
}

async function resolveHere(
  context: RelayContext,
  account: string,
  reading: { readonly access: Access; readonly now: number },
): Promise<HandlerResult> {
  const { relayId } = context.identity;
  return await resolveStateHere(context, account, {
    ...reading,
    admit: async (tx) => requireHome(await homeOf(tx, account, relayId, reading.now)),
  });
}
