import { checkAccountId, ProtocolError } from '@posthouse/protocol';
import { type Handler, JsonText } from '../../dispatch/handler.ts';
import { confirmDevice } from '../devices.ts';
import { homeOf, locate } from '../home.ts';
import { requireAnswerable } from '../rules.ts';
import { readProfile } from '../store.ts';

/** `profile.resolve` (03 section 8): the same for the own account and any other. */
export const profileResolve: Handler<'profile.resolve'> = async (context, call) => {
  const { network, clock, identity, storage } = context;
  const { account } = call.params;
  const session = call.session;
  checkAccountId(network, account, 'account');
  const now = clock.now();
  requireAnswerable(await locate(context, account, { now }));
  const profile = await storage.read(async (tx) => {
    await confirmDevice(context, tx, { session, now });
    requireAnswerable(await homeOf(tx, account, identity.relayId, now));
    return await readProfile(tx, account);
  });
  if (profile === undefined) throw new ProtocolError('not_found', 'the account has no profile');
  return {
    result: {
      profile: new JsonText(profile.text),
      signer_certificate: new JsonText(profile.certificate),
    },
  };
};
