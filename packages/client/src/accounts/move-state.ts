/** The device state that a move stages at the new relay (03 §12.1 step 1). */
import type { AccountDeviceState, AccountSigner } from '@posthouse/protocol';
import type { RelayConnection } from '../connect/relay-connection.ts';
import type { AccountCore } from '../core.ts';
import {
  ClientError,
  isClientError,
  isRefusal,
  knownState,
  nextState,
  RelayMisbehaviour,
  resolveOwnState,
  stageState,
  storeMove,
  timelines,
} from '../taken.ts';
import type { MoveRecord } from './move-rows.ts';

/** Seconds that the rest of a move may take: the state must be kept for longer. */
const restOfMove = 60;

interface Staging {
  readonly connection: RelayConnection;
  readonly signer: AccountSigner;
  readonly signal: AbortSignal;
  /** Whether it is of use to ask the relay that is left. */
  readonly oldRelayAnswers: boolean;
}

/**
 * Stages the account's devices at the new relay, in a state of higher revision. A state that was
 * signed before is sent again unchanged, unless the devices changed since.
 *
 * @throws ClientError `move_conflict` if the relay knows a higher state
 * @throws RelayRefused, RelayUnreachable
 * @throws RelayMisbehaviour `invalid_staged_until` also if the state is not kept for long enough
 */
export async function stageForMove(
  core: AccountCore,
  record: MoveRecord,
  staging: Staging,
): Promise<void> {
  const latest = await latestState(core, record, staging);
  let { staged } = record;
  let before = record;
  for (let attempt = 1; ; attempt += 1) {
    if (staged === undefined || staged.replaces !== latest.revision) {
      const floor = Math.max(latest.revision, record.floor ?? -1, staged?.state.revision ?? -1);
      const { certificates } = latest;
      const state = await nextState(core, staging.signer, { current: floor, certificates });
      staged = { state, replaces: latest.revision };
      const signed: MoveRecord = { ...before, staged };
      if (!(await core.store.write((tx) => storeMove(tx, before, signed)))) return;
      before = signed;
    }
    const kept = await send(core, { record, state: staged.state, staging });
    if (kept === undefined || kept > restOfMove) break;
    if (attempt > 1) throw tooShort();
    // A state of higher revision is kept for the whole time again.
    staged = { ...staged, replaces: -1 };
  }
  await core.store.write((tx) => storeMove(tx, before, { ...before, step: 'sign-route' }));
}

async function send(
  core: AccountCore,
  what: {
    readonly record: MoveRecord;
    readonly state: AccountDeviceState;
    readonly staging: Staging;
  },
): Promise<number | undefined> {
  const { record, state, staging } = what;
  const { connection, signal } = staging;
  // A former home relay may not know of the move, and then accepts the state as the home relay.
  const known = await core.store.read((tx) => timelines.get(tx, record.to));
  const mayBeHome = record.isRouteSent || record.from === record.to || known !== undefined;
  try {
    return await stageState(connection, state, { mayBeHome, signal });
  } catch (cause) {
    if (!isRefusal(cause, 'stale_state', 'state_conflict')) throw cause;
    throw new ClientError(
      'move_conflict',
      'another device changed the account: synchronize, then move again',
      { cause },
    );
  }
}

/** Reads the state at the relay that is left; uses the stored one if that is not possible. */
async function latestState(
  core: AccountCore,
  { from, isRouteSent }: MoveRecord,
  { signal, oldRelayAnswers }: Staging,
): Promise<AccountDeviceState> {
  const { account, store } = core;
  const kept = await store.read((tx) => knownState(tx, account));
  if (kept !== undefined && !oldRelayAnswers && !isRouteSent) return kept;
  try {
    return await resolveOwnState(core, core.relay(from), { account, signal });
  } catch (error) {
    signal.throwIfAborted();
    if (!isClientError(error) || kept === undefined) throw error;
    return kept;
  }
}

function tooShort(): InstanceType<typeof RelayMisbehaviour> {
  return new RelayMisbehaviour('invalid_staged_until', 'ends before the move: try another relay', {
    method: 'device.state.publish',
  });
}
