/** What reading a profile has in common, for callers here and for other relays (03 §8, 07 §C7). */
import {
  badRequest,
  checkDeviceCertificate,
  checkProfile,
  deviceCertificateSignatures,
  ProtocolError,
  profileSignatures,
  type ResolvedProfile,
} from '@posthouse/protocol';
import type { RelayContext } from '../context.ts';
import { type HandlerResult, JsonText } from '../dispatch/handler.ts';
import type { Reader } from '../storage/types.ts';
import { readProfile } from './store.ts';

/**
 * Reads the profile of an account at home here.
 *
 * @param admit refuses the caller, in the snapshot that the profile is read from
 * @throws ProtocolError `not_found`
 */
export async function resolveProfileHere(
  { storage }: RelayContext,
  account: string,
  admit: (tx: Reader) => Promise<void>,
): Promise<HandlerResult> {
  const profile = await storage.read(async (tx) => {
    await admit(tx);
    return await readProfile(tx, account);
  });
  if (profile === undefined) throw new ProtocolError('not_found', 'the account has no profile');
  return {
    result: {
      profile: new JsonText(profile.text),
      signer_certificate: new JsonText(profile.certificate),
    },
  };
}

/**
 * Verifies the profile that another relay answered: its certificate, which need not be valid any
 * more, its signature, and that both are of the account.
 *
 * @param text Canonical JSON of the whole answer
 * @throws ProtocolError
 */
export async function verifyResolvedProfile(
  { network, verifier }: RelayContext,
  { profile, signer_certificate: certificate }: ResolvedProfile,
  { account, text }: { readonly account: string; readonly text: string },
): Promise<void> {
  checkDeviceCertificate(network, certificate, 'signer_certificate');
  checkProfile(network, profile, 'profile');
  if (certificate.account !== account) throw badRequest('signer_certificate', 'of another account');
  if (profile.account !== account) throw badRequest('profile', 'of another account');
  const checks = () => [
    ...deviceCertificateSignatures(network, certificate),
    ...profileSignatures(network, profile, certificate),
  ];
  await verifier.verifyOnce(text, checks, 'profile');
}
