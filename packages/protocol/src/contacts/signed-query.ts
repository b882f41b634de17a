/** A device query about another account, signed by the asking device (03 §5.2). */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import {
  checkAccountId,
  checkDeviceCertificate,
  DeviceCertificate,
  deviceCertificateSignatures,
  deviceSignatures,
  deviceSigningInput,
  type Network,
  signAsDevice,
} from '../identity/index.ts';
import {
  AccountId,
  checkNoNull,
  checkObject,
  memberPath,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { Authorization, checkAuthorization } from './authorization.ts';

/** Parameters of `device.state.resolve` in its signed form. */
export const DeviceStateQuery = Type.Object({
  $type: TypeName,
  /** Target account. */
  account: AccountId,
  authorization: Authorization,
  signer_certificate: DeviceCertificate,
  created_at: UnixSeconds,
  device_signature: Signature,
});
export type DeviceStateQuery = Static<typeof DeviceStateQuery>;

/** Members that only the signed form has: one of them makes a query signed (03 §5.1). */
const signedOnly = [
  '$type',
  'authorization',
  'signer_certificate',
  'created_at',
  'device_signature',
];

/**
 * Returns whether parameters of `device.state.resolve` have any member of a signed query. Such
 * parameters never count as the plain form, whatever is wrong with them.
 *
 * @example
 * isSignedQuery({ account, created_at: now }); // true
 */
export function isSignedQuery(params: object): boolean {
  return signedOnly.some((name) => Object.hasOwn(params, name));
}

/**
 * Checks everything about a signed query but signatures and state: structure, authorization format,
 * and a certificate whose key derives its account.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`
 * @example
 * checkDeviceStateQuery(network, value);
 * console.log(value.account);
 */
export function checkDeviceStateQuery(
  network: Network,
  value: unknown,
  path = '',
): asserts value is DeviceStateQuery {
  checkObject(network, { type: 'device.state.resolve', schema: DeviceStateQuery }, value, path);
  checkNoNull(value, path);
  checkAccountId(network, value.account, memberPath(path, 'account'));
  checkAuthorization(network, value.authorization, memberPath(path, 'authorization'));
  const at = memberPath(path, 'signer_certificate');
  checkDeviceCertificate(network, value.signer_certificate, at);
}

/**
 * Returns the bytes that the asking device signs: the query without its signature.
 *
 * @example
 * const signature = device.sign(deviceStateQuerySigningInput(network, query));
 */
export function deviceStateQuerySigningInput(
  network: Network,
  query: Omit<DeviceStateQuery, 'device_signature'>,
): Uint8Array {
  return deviceSigningInput(network, query);
}

/**
 * Returns both signatures of the certificate, then the query's.
 *
 * @example
 * const checks = deviceStateQuerySignatures(network, query); // three
 */
export function deviceStateQuerySignatures(
  network: Network,
  query: DeviceStateQuery,
): SignatureCheck[] {
  return [
    ...deviceCertificateSignatures(network, query.signer_certificate),
    ...deviceSignatures(network, query, query.signer_certificate),
  ];
}

/**
 * Checks a signed query with certificate and signatures. The authorization is verified against the
 * target's state: `verifyAuthorization`.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * verifyDeviceStateQuery(network, value);
 * console.log(value.account);
 */
export function verifyDeviceStateQuery(
  network: Network,
  value: unknown,
): asserts value is DeviceStateQuery {
  checkDeviceStateQuery(network, value);
  const checks = deviceStateQuerySignatures(network, value);
  verifySignatures(network.primitives, checks, 'device query');
}

/**
 * Makes a signed query.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * const query = signDeviceStateQuery(network, device, {
 *   account: peer, authorization: invite, signer_certificate: certificate, created_at: now,
 * });
 */
export function signDeviceStateQuery(
  network: Network,
  device: { sign(message: Uint8Array): Uint8Array },
  fields: Omit<DeviceStateQuery, '$type' | 'device_signature'>,
): DeviceStateQuery {
  const unsigned = { ...fields, $type: network.type('device.state.resolve') };
  const query = signAsDevice(network, unsigned, device);
  checkDeviceStateQuery(network, query);
  return query;
}
