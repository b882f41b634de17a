import { checkAccountId } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { newSecret, secretHash } from '../../sessions/secrets.ts';
import { insertChallenge } from '../store.ts';

/** `auth.challenge` (02 §9.2): makes a one-time challenge for any account, known here or not. */
export const authChallenge: Handler<'auth.challenge'> = async (context, call) => {
  const { account } = call.params;
  checkAccountId(context.network, account, 'account');
  const nonce = newSecret(context.random);
  const createdAt = context.clock.now();
  const expiresAt = createdAt + context.limits.challengeLifetime;
  const hash = secretHash(nonce);
  await context.storage.write(`challenge:${hash}`, (tx) =>
    insertChallenge(tx, hash, { account, origin: call.origin, expiresAt }),
  );
  return { result: { nonce, created_at: createdAt, expires_at: expiresAt } };
};
