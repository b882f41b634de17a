import { accountAuthInput, checkAccountKey, ProtocolError } from '@posthouse/protocol';
import { signatureCheck } from '@posthouse/protocol/crypto';
import type { Handler } from '../../dispatch/handler.ts';
import { consumeChallenge } from '../challenges.ts';
import { bindOpened, checkRenewal, createSession } from '../open-session.ts';

/**
 * `auth.account.verify` (02 §9.4): opens a session for the holder of the account key. It needs no
 * stored state of the account: such sessions serve first setup and recovery.
 */
export const authAccountVerify: Handler<'auth.account.verify'> = async (context, call) => {
  const { bus, network, identity, verifier, sessions, storage, clock, limits } = context;
  const { origin } = call;
  const { account, params } = await consumeChallenge(context, call, 'auth.account.verify');
  checkRenewal(call, { mode: 'account', account });
  checkAccountKey(network, { account, account_public_key: params.account_public_key });
  const message = accountAuthInput(network, {
    relay_id: identity.relayId,
    origin,
    account,
    account_public_key: params.account_public_key,
    nonce: params.nonce,
  });
  const signature = signatureCheck({
    scheme: 'p256',
    publicKey: params.account_public_key,
    message,
    signature: params.account_signature,
  });
  await verifier.verify([signature], 'account_signature');
  const expiresAt = clock.now() + limits.accountSessionLifetime;
  const { changes } = sessions;
  const created = await storage.write(
    `account:${account}`,
    (tx) =>
      createSession(tx, context, {
        facts: { mode: 'account', account, expiresAt },
        ...{ origin, renewed: call.connection?.bound?.session },
      }),
    { keepsFacts: true },
  );
  if (created.notices.length > 0) bus.publish(created.notices);
  // Newer sessions may end this one before it is bound.
  const { opened } = created;
  const result = await bindOpened(sessions, call, { opened, changes });
  if (result === undefined) {
    throw new ProtocolError('unauthorized', 'the session ended: newer ones of the account opened');
  }
  return { result };
};
