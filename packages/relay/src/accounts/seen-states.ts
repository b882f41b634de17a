/**
 * Device states of accounts at home elsewhere, as their home relays answer them: verified, and never
 * older than one that was seen before (03 §5.7, 07 §C6).
 */
import {
  type AccountDeviceState,
  type Authorization,
  badRequest,
  checkDeviceState,
  checkInviteUse,
  currentDevices,
  type DeviceStateAt,
  deviceStateSignatures,
  isGrant,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import { digest } from '../digest.ts';
import { verifyInviteSignature } from './access.ts';
import { isSeenState } from './rules.ts';
import { readSeenState, type SeenState, writeSeenState } from './seen-store.ts';

/** The query that a state answers. */
export interface AskedState {
  readonly account: string;
  /** Present in the signed form. */
  readonly authorization?: Authorization;
}

/**
 * Verifies the state that another relay answered, with all its signatures, and stores its revision.
 * The answer to a query with an invite must hold the device that signed the invite.
 *
 * @param text Canonical JSON of the state
 * @throws ProtocolError
 */
export async function acceptState(
  context: RelayContext,
  { state, text }: { readonly state: AccountDeviceState; readonly text: string },
  asked: AskedState,
): Promise<void> {
  const { network, verifier } = context;
  checkDeviceState(network, state);
  if (state.account !== asked.account) throw badRequest('account', 'another account');
  const checks = () => deviceStateSignatures(network, state);
  await verifier.verifyOnce(text, checks, 'device state');
  await verifyInvite(context, asked, { state, now: context.clock.now() });
  await storeRevision(context, state.account, { revision: state.revision, digest: digest(text) });
}

/** Verifies the invite of a query, if it has one, with the state that was answered. */
async function verifyInvite(
  context: RelayContext,
  { account, authorization }: AskedState,
  at: DeviceStateAt,
): Promise<void> {
  if (authorization === undefined || isGrant(context.network, authorization)) return;
  checkInviteUse(authorization, { inviter: account, now: at.now });
  const devices = currentDevices(context.network, at.state, at.now);
  const text = canonicalJson(authorization);
  await verifyInviteSignature(context, { authorization, text, devices });
}

/** Stores a higher revision for good; refuses a lower one, and another content of the same. */
async function storeRevision(
  { storage }: RelayContext,
  account: string,
  seen: SeenState,
): Promise<void> {
  const known = await storage.read((tx) => readSeenState(tx, account));
  if (isSeenState(seen, known)) return;
  await storage.write(`account:${account}`, async (tx) => {
    if (isSeenState(seen, await readSeenState(tx, account))) return;
    await writeSeenState(tx, account, seen);
  });
}
