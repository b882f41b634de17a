import {
  badRequest,
  checkAccountId,
  checkDeviceStateQuery,
  checkObject,
  DeviceStateQuery,
  deriveDeviceId,
  deviceCertificateSignatures,
  deviceStateQuerySignatures,
  isSignedQuery,
  ProtocolError,
} from '@posthouse/protocol';
import type { RelayContext } from '../../context.ts';
import { type Handler, type HandlerResult, JsonText } from '../../dispatch/handler.ts';
import type { DeviceSession, Session } from '../../sessions/session.ts';
import { type Access, requireAccess, verifyAuthorization } from '../access.ts';
import { confirmDevice, requireCallingDevice } from '../devices.ts';
import { homeOf, locate } from '../home.ts';
import { checkTime, requireAnswerable, requireHome } from '../rules.ts';
import { readCurrentDeviceIds, readState, type StoredState } from '../store.ts';

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
  const now = context.clock.now();
  if (account === session.account) return await resolveOwn(context, session, now);
  // Account sessions have returned or thrown above.
  const reading = { session: session as DeviceSession, access: { kind: 'public' }, now } as const;
  requireAnswerable(await locate(context, account, { now }));
  return await readOther(context, account, reading);
};

/** Reads the own state (form A): at the home relay only, without further conditions (5.4). */
async function resolveOwn(
  context: RelayContext,
  session: Session,
  now: number,
): Promise<HandlerResult> {
  const { account } = session;
  const { identity, storage } = context;
  requireHome(await locate(context, account, { now }));
  const state = await storage.read(async (tx) => {
    requireHome(await homeOf(tx, account, identity.relayId, now));
    // A removed device must not read later states.
    if (session.mode === 'device') await requireCallingDevice(tx, session, now);
    return await readState(tx, account);
  });
  return answer(state);
}

/**
 * Answers a signed query (form C) with the checks of source and target: this relay is both (5.6).
 */
async function resolveSigned(
  context: RelayContext,
  query: unknown,
  session: DeviceSession,
): Promise<HandlerResult> {
  const { network, clock, limits } = context;
  checkObject(network, { type: 'device.state.resolve', schema: DeviceStateQuery }, query);
  // Before the rules of grants, which refuse a grant for the own account with another code (03
  // §21).
  if (query.account === session.account) {
    throw new ProtocolError('forbidden', 'the own state is not read by a signed query');
  }
  checkDeviceStateQuery(network, query);
  await verifySigner(context, query, session);
  const now = clock.now();
  const tolerance = { ahead: limits.futureTolerance, past: limits.signedQueryAge };
  checkTime(query.created_at, now, tolerance);
  requireAnswerable(await locate(context, query.account, { now }));
  const use = { target: query.account, requester: session.account, now };
  const access = await verifyAuthorization(context, query.authorization, use);
  return await readOther(context, query.account, { session, access, now });
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

/** Reads another account's state (forms B and C) and checks access in the same snapshot. */
async function readOther(
  context: RelayContext,
  account: string,
  reading: { readonly session: DeviceSession; readonly access: Access; readonly now: number },
): Promise<HandlerResult> {
  const { identity, storage } = context;
  const { access, now } = reading;
  const state = await storage.read(async (tx) => {
    await confirmDevice(context, tx, reading);
    requireAnswerable(await homeOf(tx, account, identity.relayId, now));
    const current = new Set(await readCurrentDeviceIds(tx, account, now));
    await requireAccess(tx, access, { account, current });
    return await readState(tx, account);
  });
  return answer(state);
}

function answer(state: StoredState | undefined): HandlerResult {
  if (state === undefined) throw new ProtocolError('not_found', 'the account has no state');
  return { result: new JsonText(state.text) };
}
