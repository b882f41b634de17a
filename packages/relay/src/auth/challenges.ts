import { methods, type ParamsOf, ProtocolError } from '@posthouse/protocol';
import { isJsonObject, type JsonValue } from '@posthouse/protocol/json';
import type { RelayContext } from '../context.ts';
import type { AnyCall, Call } from '../dispatch/call.ts';
import { checkParams } from '../dispatch/params.ts';
import { isSecretText, secretHash } from '../sessions/secrets.ts';
import { takeChallenge } from './store.ts';

/** The two methods that consume a challenge. */
type VerifyMethod = 'auth.device.verify' | 'auth.account.verify';

/** A verification whose challenge was valid and is consumed. */
export interface VerificationAttempt<N extends VerifyMethod> {
  /** The account the challenge was made for. */
  readonly account: string;
  readonly params: ParamsOf<N>;
}

/**
 * Consumes the challenge of a verification and then checks the parameters: the challenge is used up
 * even if its nonce is the only readable part of the request (02 §9.2, §18).
 *
 * @throws ProtocolError `unauthorized` for a challenge that is unknown, used, expired or of another
 *   origin; then `bad_request` for other parameters
 */
export async function consumeChallenge<N extends VerifyMethod>(
  context: RelayContext,
  call: Call<N>,
  name: N,
): Promise<VerificationAttempt<N>> {
  const nonce = isJsonObject(call.params) ? call.params.nonce : undefined;
  const account = isSecretText(nonce) ? await useChallenge(context, call, nonce) : undefined;
  const params: JsonValue = call.params;
  checkParams(methods[name], params);
  if (account === undefined) throw new ProtocolError('bad_request', 'nonce: cannot be one');
  return { account, params: params as ParamsOf<N> };
}

/** Deletes the challenge and checks it, in one statement: two attempts never share a challenge. */
async function useChallenge(
  context: RelayContext,
  { origin }: Pick<AnyCall, 'origin'>,
  nonce: string,
): Promise<string> {
  const hash = secretHash(nonce);
  const challenge = await context.storage.write(`challenge:${hash}`, (tx) =>
    takeChallenge(tx, hash),
  );
  context.challenges.forget(hash);
  const good =
    challenge !== undefined &&
    challenge.origin === origin &&
    context.clock.now() < challenge.expiresAt;
  if (!good) throw new ProtocolError('unauthorized', 'the challenge is unknown, used or expired');
  return challenge.account;
}
