import { checkAccountId } from '@posthouse/protocol';
import type { Handler } from '../../dispatch/handler.ts';
import { newSecret, secretHash } from '../../sessions/secrets.ts';
import { insertChallenge, takeChallenge } from '../store.ts';

/** `auth.challenge` (02 §9.2): makes a one-time challenge for any account, known here or not. */
export const authChallenge: Handler<'auth.challenge'> = async (context, call) => {
  const { account } = call.params;
  const { address, origin } = call;
  checkAccountId(context.network, account, 'account');
  const nonce = newSecret(context.random);
  const createdAt = context.clock.now();
  const expiresAt = createdAt + context.limits.challengeLifetime;
  const hash = secretHash(nonce);
  const ended = context.challenges.take({ hash, account, address, expiresAt });
  try {
    await context.storage.write(`challenge:${hash}`, async (tx) => {
      if (ended !== undefined) await takeChallenge(tx, ended);
      await insertChallenge(tx, hash, { account, origin, expiresAt });
    });
  } catch (error) {
    context.challenges.forget(hash);
    throw error;
  }
  return { result: { nonce, created_at: createdAt, expires_at: expiresAt } };
};
