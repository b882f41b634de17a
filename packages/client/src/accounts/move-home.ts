/** Moving an account to another home relay (03 §12.1). */
import type { AccountSigner } from '@posthouse/protocol';
import { accountIdentity } from '../connect/session.ts';
import type { AccountCore } from '../core.ts';
import { ClientError, isClientError } from '../errors.ts';
import { timelines } from './account-rows.ts';
import { adoptState, knownState, resolveOwnState } from './device-states.ts';
import { nextState, stageAndRoute } from './publish-devices.ts';

/**
 * Moves the account: publishes the same devices in a state of higher revision, then a route of
 * higher revision. An unavailable old relay does not prevent it.
 *
 * @throws ClientError, RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function moveHome(
  core: AccountCore,
  options: {
    readonly relayId: string;
    readonly signer: AccountSigner;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { relayId, signer, signal } = options;
  const { relayId: formerRelayId } = await core.home();
  const current = await latestState(core, signal);
  const state = await nextState(core, signer, {
    current: current.revision,
    certificates: current.certificates,
  });
  await using connection = core.connect(relayId, accountIdentity(core.network, signer));
  // A former home relay may not know of the move, and then accepts the state as the home relay.
  const mayBeHome = (await core.store.read((tx) => timelines.get(tx, relayId))) !== undefined;
  await stageAndRoute(core, connection, { state, signer, mayBeHome, signal });
  await core.store.write(async (tx) => {
    await adoptState(tx, state, core.clock.milliseconds());
    const left = await timelines.get(tx, formerRelayId);
    if (left === undefined) await timelines.put(tx, formerRelayId, { position: -1, gap: false });
  });
}

/** Reads the state from the old relay; uses the stored state if the relay does not answer. */
async function latestState(core: AccountCore, signal: AbortSignal) {
  const { account, store } = core;
  try {
    return await resolveOwnState(core, await core.home(), { account, signal });
  } catch (error) {
    const kept = await store.read((tx) => knownState(tx, account));
    if (!isClientError(error, 'relay_unreachable') || kept === undefined) throw error;
    return kept;
  }
}

/** Checks a move. @throws ClientError `invalid_input` if the relay is the home relay already */
export function checkMove(currentRelayId: string, relayId: string): void {
  if (currentRelayId === relayId) {
    throw new ClientError(
      'invalid_input',
      'that relay is the home relay already: choose another one',
    );
  }
}
