import {
  badRequest,
  checkAccountId,
  type DeviceStateQuery,
  deriveDeviceId,
  deviceCertificateSignatures,
  deviceStateQuerySignatures,
  isSignedQuery,
  ProtocolError,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import type { RelayContext } from '../../context.ts';
import type { Handler, HandlerResult } from '../../dispatch/handler.ts';
import type { DeviceSession, Session } from '../../sessions/session.ts';
import type { Reader } from '../../storage/types.ts';
import type { Access } from '../access.ts';
import { forwardQuery } from '../ask-home.ts';
import { confirmDevice, requireCallingDevice } from '../devices.ts';
import { homeOf, locate } from '../home.ts';
import { requireAnswerable, requireHome } from '../rules.ts';
import { type AskedState, acceptState } from '../seen-states.ts';
import { readSeenState } from '../seen-store.ts';
import {
  checkQueryTime,
  checkSignedQuery,
  resolveStateHere,
  stateResult,
  verifyQueryAccess,
} from '../state-queries.ts';
import { readRoute, readState } from '../store.ts';

/** `device.state.resolve` (03 section 5). */
export const deviceStateResolve: Handler<'device.state.resolve'> = async (context, call) => {
  const { params, form } = call;
  const session = call.session as Session;
  const { account } = params;
  const signed = isSignedQuery(params);
  if (session.mode === 'account' && (signed || account !== session.account)) {
    throw new ProtocolError('forbidden', 'an account session reads only its own state');
  }
  if (signed) {
    if (form === 'query') throw badRequest('', 'a query cannot carry a signed query');
    return await resolveSigned(context, params, session as DeviceSession);
  }
  checkAccountId(context.network, account, 'account');
  if (account === session.account) return await resolveOwn(context, session);
  // Account sessions have returned or thrown above.
  return await resolvePublic(context, account, session as DeviceSession);
};

/**
 * Reads the own state (form A): at the home relay only, without further conditions (5.4). If this relay
 * knows of another home by a route that it has not been sent for long, the account exists all the
 * same: a device that took it for new would end the others.
 */
async function resolveOwn(context: RelayContext, session: Session): Promise<HandlerResult> {
  const { account } = session;
  const { clock, identity, storage } = context;
  const now = clock.now();
  await locate(context, account, { now });
  const state = await storage.read(async (tx) => {
    const home = await homeOf(tx, account, identity.relayId, now);
    if (home.kind === 'unknown') await requireNeverElsewhere(context, tx, { account, now });
    requireHome(home);
    // A removed device must not read later states.
    if (session.mode === 'device') await requireCallingDevice(tx, session, now);
    return await readState(tx, account);
  });
  return stateResult(state);
}

/** @throws ProtocolError `route_stale` if the account's route, valid by its period, names another relay */
async function requireNeverElsewhere(
  { identity }: RelayContext,
  tx: Reader,
  { account, now }: { readonly account: string; readonly now: number },
): Promise<void> {
  const route = await readRoute(tx, account);
  if (route === undefined || route.relayId === identity.relayId || now >= route.expiresAt) return;
  throw new ProtocolError(
    'route_stale',
    'the account was at home at another relay when this one last heard of it',
  );
}

/** Reads the state of an account with public discovery (form B). */
async function resolvePublic(
  context: RelayContext,
  account: string,
  session: DeviceSession,
): Promise<HandlerResult> {
  const now = context.clock.now();
  // Unknown members are not sent on: the target account is all that a public query has (07 §C6).
  const forwarded = await forward(context, session, { account, params: { account } });
  if (forwarded !== undefined) return forwarded;
  return await resolveHere(context, account, { session, access: { kind: 'public' }, now });
}

/** Reads a state by a signed query (form C). This relay is the source, and may be the target (5.6). */
async function resolveSigned(
  context: RelayContext,
  params: JsonObject,
  session: DeviceSession,
): Promise<HandlerResult> {
  const { network, clock } = context;
  const query: unknown = params;
  checkSignedQuery(network, query, session.account);
  await verifySigner(context, query, session);
  const now = clock.now();
  checkQueryTime(context, query, now);
  const { account, authorization } = query;
  const forwarded = await forward(context, session, { account, authorization, params });
  if (forwarded !== undefined) return forwarded;
  const access = await verifyQueryAccess(context, query, now);
  return await resolveHere(context, account, { session, access, now });
}

/** Verifies that the query is signed by the calling device with a valid certificate (step 4). */
async function verifySigner(
  { network, verifier }: RelayContext,
  query: DeviceStateQuery,
  session: DeviceSession,
): Promise<void> {
  const { signer_certificate: certificate } = query;
  const calling =
    certificate.account === session.account &&
    deriveDeviceId(network, certificate) === session.deviceId;
  if (!calling) {
    await verifier.verify(deviceCertificateSignatures(network, certificate), 'certificate');
    throw new ProtocolError('forbidden', "certificate is not the calling device's");
  }
  await verifier.verify(deviceStateQuerySignatures(network, query), 'device query');
}

/**
 * Forwards a query to the account's home relay if that is another relay.
 * @returns the verified state; `undefined` if the account is at home here
 */
async function forward(
  context: RelayContext,
  session: DeviceSession,
  { params, ...asked }: AskedState & { readonly params: JsonObject },
): Promise<HandlerResult | undefined> {
  const { account } = asked;
  return await forwardQuery(context, session, {
    account,
    method: 'device.state.resolve',
    params,
    admit: async (tx) => {
      // The revision of an accepted state is stored for good.
      if ((await readSeenState(tx, account)) !== undefined) return;
      context.relayQueries.takeNewAccount(session.account);
    },
    verify: (state, text) => acceptState(context, { state, text }, asked),
  });
}

/** Reads another account's state (forms B and C) if it is at home here. */
async function resolveHere(
  context: RelayContext,
  account: string,
  reading: { readonly session: DeviceSession; readonly access: Access; readonly now: number },
): Promise<HandlerResult> {
  const { session, access, now } = reading;
  return await resolveStateHere(context, account, {
    access,
    now,
    admit: async (tx) => {
      await confirmDevice(context, tx, { session, now });
      requireAnswerable(await homeOf(tx, account, context.identity.relayId, now));
    },
  });
}
