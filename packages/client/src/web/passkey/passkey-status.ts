import { platform } from './webauthn.ts';

/** What can be said of passkeys without asking the person. */
export interface PasskeyStatus {
  /**
   * - `likely`: the browser has what is needed, and this device verifies persons;
   * - `unknown`: it depends on the authenticator, or the browser does not say;
   * - `no`: offer the password only.
   */
  readonly works: 'likely' | 'unknown' | 'no';
  /** Whether this device verifies persons itself, by finger, face or PIN. */
  readonly onThisDevice: boolean;
}

/**
 * Returns whether `createPasskey` is likely to work in this page. The person sees nothing of it.
 *
 * @example
 * import { passkeyStatus } from '@posthouse/client/web/passkey';
 * const { works } = await passkeyStatus();
 * const offersPasskey = works !== 'no';
 */
export async function passkeyStatus(): Promise<PasskeyStatus> {
  const { isSecureContext, navigator, PublicKeyCredential } = platform;
  const isMissing = PublicKeyCredential === undefined || navigator?.credentials === undefined;
  if (isSecureContext === false || isMissing) return { works: 'no', onThisDevice: false };
  const [prf, onThisDevice] = await Promise.all([
    orUndefined(PublicKeyCredential.getClientCapabilities?.().then((all) => all['extension:prf'])),
    orUndefined(PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable?.()),
  ]);
  if (prf === false) return { works: 'no', onThisDevice: onThisDevice === true };
  const isLikely = prf === true && onThisDevice === true;
  return { works: isLikely ? 'likely' : 'unknown', onThisDevice: onThisDevice === true };
}

/** The browser may refuse to say. */
async function orUndefined<T>(answer: Promise<T> | undefined): Promise<T | undefined> {
  return await answer?.catch(() => undefined);
}
