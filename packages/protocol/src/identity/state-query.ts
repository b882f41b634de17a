import type { SignatureCheck } from '../crypto/primitives.ts';
import { signatureCheck, verifySignatures } from '../crypto/signatures.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import type { JsonObject } from '../json/types.ts';
import {
  AccountId,
  checkNoNull,
  checkObject,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { checkAccountId } from './account-id.ts';
import {
  checkDeviceCertificate,
  DeviceCertificate,
  deviceCertificateSignatures,
} from './certificate.ts';
import type { Network } from './network.ts';
import type { DeviceSigner } from './signers.ts';

/**
 * The signed form of `device.state.resolve`: a query of another account's devices that carries a
 * grant or an invitation (chapter 03, section 5.2).
 */
export const SignedStateQuery = Type.Object({
  $type: TypeName,
  /** The account asked about. */
  account: AccountId,
  /** A contact grant or invitation, checked as such by its own `$type`. */
  authorization: Type.Object({ $type: TypeName }),
  signer_certificate: DeviceCertificate,
  created_at: UnixSeconds,
  device_signature: Signature,
});
export type SignedStateQuery = Static<typeof SignedStateQuery>;

/** Members that only the signed form has. One of them makes a query signed. */
export const signedStateQueryFields = [
  '$type',
  'authorization',
  'signer_certificate',
  'created_at',
  'device_signature',
] as const;

/** Whether parameters of `device.state.resolve` are of the signed form, well-formed or not. */
export function isSignedStateQuery(params: JsonObject): boolean {
  return signedStateQueryFields.some((name) => Object.hasOwn(params, name));
}

/**
 * Checks a signed query but for its signatures and its credential: structure, accounts of this
 * network, the certificate.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` for the certificate
 */
export function checkSignedStateQuery(
  network: Network,
  value: unknown,
): asserts value is SignedStateQuery {
  checkObject(network, { type: 'device.state.resolve', schema: SignedStateQuery }, value);
  checkNoNull(value);
  checkAccountId(network, value.account, 'account');
  checkDeviceCertificate(network, value.signer_certificate, 'signer_certificate');
}

/** What the asking device signs. */
export function signedStateQueryInput(
  network: Network,
  query: Omit<SignedStateQuery, 'device_signature'>,
): Uint8Array {
  return network.bytes(query, ['device_signature']);
}

/** Both signatures of the certificate and the query's own. */
export function signedStateQuerySignatures(
  network: Network,
  query: SignedStateQuery,
): SignatureCheck[] {
  return [
    ...deviceCertificateSignatures(network, query.signer_certificate),
    signatureCheck({
      scheme: 'ed25519',
      publicKey: query.signer_certificate.signing_public_key,
      message: signedStateQueryInput(network, query),
      signature: query.device_signature,
    }),
  ];
}

/**
 * Checks a signed query with its signatures, but for its credential.
 * @throws ProtocolError as `checkSignedStateQuery`; `invalid_signature`
 */
export function verifySignedStateQuery(
  network: Network,
  value: unknown,
): asserts value is SignedStateQuery {
  checkSignedStateQuery(network, value);
  verifySignatures(network.primitives, signedStateQuerySignatures(network, value), 'query');
}

/**
 * Makes a signed query.
 *
 * @example
 * const params = signStateQuery(network, device, {
 *   account: target, authorization: grant, signer_certificate: certificate, created_at: now,
 * });
 */
export function signStateQuery<A extends { readonly $type: string }>(
  network: Network,
  device: DeviceSigner,
  facts: {
    readonly account: string;
    readonly authorization: A;
    readonly signer_certificate: DeviceCertificate;
    readonly created_at: number;
  },
): SignedStateQuery & { authorization: A } {
  const unsigned = { ...facts, $type: network.type('device.state.resolve') };
  const signature = device.sign(signedStateQueryInput(network, unsigned));
  const query = { ...unsigned, device_signature: encodeBase64url(signature) };
  checkSignedStateQuery(network, query);
  return query;
}
