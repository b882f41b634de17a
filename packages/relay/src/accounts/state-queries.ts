/** What `device.state.resolve` has in common for callers here and for other relays (03 §5, 07 §C6). */
import {
  checkDeviceStateQuery,
  checkObject,
  DeviceStateQuery,
  type Network,
  ProtocolError,
} from '@posthouse/protocol';
import { requireUnblocked } from '../blocks/index.ts';
import type { RelayContext } from '../context.ts';
import { type HandlerResult, JsonText } from '../dispatch/handler.ts';
import type { Reader } from '../storage/types.ts';
import { type Access, requireAccess, verifyAuthorization } from './access.ts';
import { checkTime } from './rules.ts';
import { readCurrentDeviceIds, readState, type StoredState } from './store.ts';

/**
 * Checks everything about a signed query but signatures, time and access.
 *
 * @param requester account of the session; without one that of the certificate
 * @throws ProtocolError `bad_request`; `forbidden` for a query of the requester's own state
 */
export function checkSignedQuery(
  network: Network,
  query: unknown,
  requester?: string,
): asserts query is DeviceStateQuery {
  checkObject(network, { type: 'device.state.resolve', schema: DeviceStateQuery }, query);
  // Before the rules of grants, which refuse a grant for the own account with another code (03
  // §21).
  if (query.account === (requester ?? query.signer_certificate.account)) {
    throw new ProtocolError('forbidden', 'the own state is not read by a signed query');
  }
  checkDeviceStateQuery(network, query);
}

/**
 * Refuses a signed query that is too old or too new (03 §5.6, steps 5 and 8).
 * @throws ProtocolError `clock_skew`
 */
export function checkQueryTime(
  { limits }: RelayContext,
  { created_at }: DeviceStateQuery,
  now: number,
): void {
  checkTime(created_at, now, { ahead: limits.futureTolerance, past: limits.signedQueryAge });
}

/**
 * Verifies the credential of a query whose signatures were verified, about an account at home here.
 * @throws ProtocolError `forbidden`; `invalid_signature` for an invite
 */
export async function verifyQueryAccess(
  context: RelayContext,
  { account, authorization, signer_certificate: certificate }: DeviceStateQuery,
  now: number,
): Promise<Access> {
  const requester = certificate.account;
  requireUnblocked(context, requester);
  const use = { target: account, requester, now };
  return await verifyAuthorization(context, authorization, use);
}

/**
 * Reads the state of an account at home here, and checks access in the same snapshot.
 *
 * @param reading.admit refuses the caller, and accounts that are not at home here
 * @throws ProtocolError `forbidden`, `not_found`
 */
export async function resolveStateHere(
  { storage }: RelayContext,
  account: string,
  reading: {
    readonly access: Access;
    readonly now: number;
    readonly admit: (tx: Reader) => Promise<void>;
  },
): Promise<HandlerResult> {
  const { access, admit, now } = reading;
  const state = await storage.read(async (tx) => {
    await admit(tx);
    const current = new Set(await readCurrentDeviceIds(tx, account, now));
    await requireAccess(tx, access, { account, current });
    return await readState(tx, account);
  });
  return stateResult(state);
}

/** @throws ProtocolError `not_found` */
export function stateResult(state: StoredState | undefined): HandlerResult {
  if (state === undefined) throw new ProtocolError('not_found', 'the account has no state');
  return { result: new JsonText(state.text) };
}
