/**
 * Publishing an account again that its home relay lost, because it was put back to an earlier state (03
 * §11.1): an entry of its own, because few apps need it.
 */
import { Account } from '../account.ts';
import { signalOf, type WithAccountKey } from '../api/options.ts';
import { accountIdentity } from '../connect/session.ts';
import { ClientError } from '../errors.ts';
import { routes } from './account-rows.ts';
import { knownState } from './device-states.ts';
import { homeRelay } from './home-relay.ts';
import { stageState } from './publish-devices.ts';
import { publishRoute } from './publish-route.ts';

/**
 * Publishes the account at its home relay again, with the devices and the route that this device knows: a
 * relay that was put back to a backup from before the account came refuses every call with
 * `route_not_found`. Contacts and groups stay; messages that the relay lost do not come back. To call it
 * twice does no harm.
 *
 * @param options.accountKey needed unless the key is stored
 * @param options.inviteCode of an invite to the relay, if that takes new accounts by invite only
 * @throws ClientError `account_key_required`, `registration_refused`; `not_set_up` if this device knows no
 *   route or devices of the account
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 * @example
 * import { publishAccountAgain } from '@posthouse/client/publish-again';
 *
 * await publishAccountAgain(account);
 */
export async function publishAccountAgain(
  account: Account,
  options: WithAccountKey & { readonly inviteCode?: string | undefined } = {},
): Promise<void> {
  const core = Account.coreOf(account);
  const { network, store } = core;
  const signal = signalOf(options);
  const signer = await core.accountKey(options.accountKey);
  const relayId = await homeRelay(core, account.id);
  const { state, route } = await store.read(async (tx) => ({
    state: await knownState(tx, account.id),
    route: (await routes.get(tx, account.id))?.route,
  }));
  if (state === undefined || route === undefined) {
    throw new ClientError('not_set_up', 'this device knows no devices of the account: use another');
  }
  const { relay_signature: _signature, ...draft } = route;
  const identity = accountIdentity(network, signer, options.inviteCode);
  await using connection = core.connect(relayId, identity);
  await stageState(connection, state, { mayBeHome: true, signal });
  await publishRoute(core, connection, { draft, signer, signal });
}
