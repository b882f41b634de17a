import { checkAccountId, ProtocolError } from '@posthouse/protocol';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import { locate } from '../home.ts';
import { homeRelay } from '../rules.ts';
import { readRoute } from '../store.ts';

/** `account.route.resolve` (03 section 10). */
export const accountRouteResolve: Handler<'account.route.resolve'> = async (context, call) => {
  const { network, clock, storage } = context;
  const { account } = call.params;
  checkAccountId(network, account, 'account');
  const now = clock.now();
  const home = await locate(context, account, { now, asker: `address ${call.address}` });
  if (home.kind === 'unconfirmed') homeRelay(home);
  const route = await storage.read((tx) => readRoute(tx, account));
  if (route?.conflict === true) {
    throw new ProtocolError('invalid_state', 'routes of the account conflict');
  }
  if (route === undefined || now >= route.heldUntil) {
    throw new ProtocolError('not_found', 'no valid route of the account is known');
  }
  return { result: new JsonText(route.text) };
};
