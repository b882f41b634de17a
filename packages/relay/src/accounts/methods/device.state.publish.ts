import { checkDeviceState, deviceStateSignatures, ProtocolError } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { Home, RelayContext } from '../../context.ts';
import { digest } from '../../digest.ts';
import type { Call } from '../../dispatch/call.ts';
import type { Handler, HandlerResult, ResultValue } from '../../dispatch/handler.ts';
import type { Notice } from '../../dispatch/notice.ts';
import { mayRegister, refuseNewcomer } from '../../registration/index.ts';
import type { Writer } from '../../storage/types.ts';
import { activateState, confirmDevice, devicesFrom, wakeDeviceJobs } from '../devices.ts';
import { homeOf, isAccountKnown } from '../home.ts';
import { isRepeatedState, isSeenState, stagingEnd } from '../rules.ts';
import { readSeenState } from '../seen-store.ts';
import { readStaged, stagingFullUntil, writeStaged } from '../staged-store.ts';
import { type Device, readState, type StoredState, wasEverHere } from '../store.ts';

/** A submitted state with all its signatures verified. */
interface VerifiedState {
  readonly account: string;
  readonly state: StoredState;
  readonly devices: readonly Device[];
}

interface Placed {
  readonly result: ResultValue;
  readonly notices: readonly Notice[];
}

/** The account may not come to be at home here; its home as far as it is known. */
interface Refused {
  readonly refused: Home;
}

/** `device.state.publish` (03 section 4). */
export const deviceStatePublish: Handler<'device.state.publish'> = async (context, call) => {
  const { clock, identity, storage } = context;
  const { session } = call;
  const submission = await verifyState(context, call);
  const { account } = submission;
  const now = clock.now();
  // Room for pre-stored states is counted for each address.
  const aggregates = [`account:${account}`, `address:${call.address}`];
  const { address } = call;
  const outcome = await storage.write(aggregates, async (tx): Promise<HandlerResult | Refused> => {
    if (session?.mode === 'device') await confirmDevice(context, tx, { session, now });
    const home = await homeOf(tx, account, identity.relayId, now);
    if (home.kind === 'local') return await activateIfNew(tx, submission, now);
    const wasHere = await wasEverHere(tx, account);
    if (!wasHere && !(await mayRegister(context, tx, { account, now }))) return { refused: home };
    return { result: await stage(context, tx, { submission, now, address }) };
  });
  if ('refused' in outcome) {
    throw await refuseNewcomer(context, { account, address, home: outcome.refused });
  }
  wakeDeviceJobs(context, outcome.notices);
  return outcome;
};

async function verifyState(
  context: RelayContext,
  { params: state, session }: Call<'device.state.publish'>,
): Promise<VerifiedState> {
  const { network, verifier } = context;
  checkDeviceState(network, state);
  if (state.account !== session?.account) {
    throw new ProtocolError('forbidden', 'state of another account than the calling one');
  }
  const text = canonicalJson(state);
  await verifier.verifyOnce(text, () => deviceStateSignatures(network, state), 'device state');
  return {
    account: state.account,
    state: { revision: state.revision, text },
    devices: devicesFrom(network, state),
  };
}

/** At the account's current home relay (03 section 4.1). */
async function activateIfNew(tx: Writer, { account, state, devices }: VerifiedState, now: number) {
  const placed: Placed = { result: { status: 'accepted' }, notices: [] };
  if (isRepeatedState(state, await readState(tx, account))) return placed;
  return { ...placed, notices: await activateState(tx, account, { state, devices, now }) };
}

/** A state to store at a relay that is not the account's home relay. */
interface Staging {
  readonly submission: VerifiedState;
  readonly now: number;
  /** The caller's. */
  readonly address: string;
}

/**
 * Stores a state at a relay that is not the home relay, for a route that puts it into force (4.2).
 */
async function stage(context: RelayContext, tx: Writer, staging: Staging): Promise<ResultValue> {
  const { submission, now, address } = staging;
  const { account, state } = submission;
  // A state from the time the account was at home here must have a lower revision. So must one that
  // another relay answered: a removed device must not come back (07 §C6).
  const answered = { revision: state.revision, digest: digest(state.text) };
  isSeenState(answered, await readSeenState(tx, account));
  const staged = await readStaged(tx, account, now);
  if (staged !== undefined && isRepeatedState(state, staged)) {
    return { status: 'staged', staged_until: staged.stagedUntil };
  }
  if (staged === undefined) await requireRoom(context, tx, staging);
  const isMoving = await isAccountKnown(tx, account);
  const stagedUntil = stagingEnd({ now, staged, isMoving, limits: context.limits });
  const slot = staged ?? { since: now, address };
  await writeStaged(tx, account, { ...slot, ...state, stagedUntil });
  return { status: 'staged', staged_until: stagedUntil };
}

/** @throws ProtocolError `rate_limited` with the seconds until there is room */
async function requireRoom(
  { limits }: RelayContext,
  tx: Writer,
  { now, address }: Staging,
): Promise<void> {
  const ofAddress = { limit: limits.stagedStatesPerAddress, address };
  const roomAt = Math.max(
    (await stagingFullUntil(tx, now, ofAddress)) ?? now,
    (await stagingFullUntil(tx, now, { limit: limits.stagedStates })) ?? now,
  );
  if (roomAt === now) return;
  const data = { retry_after: roomAt - now };
  throw new ProtocolError('rate_limited', 'no room for another pre-stored state', { data });
}
