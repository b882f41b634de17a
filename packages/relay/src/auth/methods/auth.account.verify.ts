import { accountAuthInput, checkAccountKey, ProtocolError } from '@posthouse/protocol';
import { signatureCheck } from '@posthouse/protocol/crypto';
import type { JsonObject } from '@posthouse/protocol/json';
import { wasEverHere } from '../../accounts/index.ts';
import { requireUnblocked } from '../../blocks/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { claimInvite, offeredInvite, registrations } from '../../registration/index.ts';
import { consumeChallenge } from '../challenges.ts';
import { bindOpened, checkRenewal, createSession } from '../open-session.ts';

/**
 * `auth.account.verify` (02 §9.4): opens a session for the holder of the account key. It needs no
 * stored state of the account: such sessions serve first setup and recovery. If this relay asks for
 * invites, the extra member `invite_code` is stored as the account's right to come; sign-in never
 * fails because of it.
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
  requireUnblocked(context, account);
  const offered = await offeredInvite(context, (params as JsonObject).invite_code);
  const invite = offered?.digest;
  // As much as a wrong signature: guessing codes is no cheaper.
  if (offered !== undefined && invite === undefined) call.charge({ signatures: 1 });
  const now = clock.now();
  const expiresAt = now + limits.accountSessionLifetime;
  const { changes } = sessions;
  const created = await storage.write(
    [`account:${account}`, ...(invite === undefined ? [] : [registrations])],
    async (tx) => {
      // An account that is here needs no right, and takes no claim's place.
      if (invite !== undefined && !(await wasEverHere(tx, account))) {
        await claimInvite(context, tx, { account, invite, now });
      }
      return await createSession(tx, context, {
        facts: { mode: 'account', account, expiresAt },
        ...{ origin, renewed: call.connection?.bound?.session },
      });
    },
    { keepsFacts: true },
  );
  if (created.notices.length > 0) bus.publish(created.notices);
  // Newer sessions may end this one before it is bound.
  const { opened } = created;
  const result = await bindOpened(sessions, call, { opened, changes });
  if (result === undefined) {
    throw new ProtocolError('unauthorized', 'the session ended: newer ones of the account opened');
  }
  if (offered === undefined) return { result };
  return { result: { ...result, invite_accepted: invite !== undefined } };
};
