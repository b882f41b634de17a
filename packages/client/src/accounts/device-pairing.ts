/**
 * Adding a device without carrying a private key from one place to another. The new device makes
 * its own keys and a *request*: its certificate, signed by itself. A device with the account key
 * checks it, signs the certificate and the new state, and returns an *approval*. Both are public.
 * The account's public key, entered on the new device, binds the request to the account; the
 * device ID, which a person compares, binds it to the device.
 *
 * A renewal is the same exchange with the device's existing keys.
 */
import {
  type AccountRoute,
  AccountRoute as AccountRouteSchema,
  type AccountSigner,
  checkDeviceCertificate,
  checkSchema,
  DeviceCertificate,
  type DeviceSigner,
  deriveAccountId,
  deriveDeviceId,
  deviceCertificateAccountInput,
  deviceCertificateDeviceInput,
  encodeBase64url,
  type Network,
  ProtocolError,
  type Static,
  Type,
  verifyDeviceCertificate,
} from '@posthouse/protocol';
import { signatureCheck, verifySignatures } from '@posthouse/protocol/crypto';
import { JsonError, parseJson } from '@posthouse/protocol/json';
import { ClientError } from '../errors.ts';
import type { StoreWriter } from '../store/index.ts';
import { ownCertificates, ownKey } from './account-rows.ts';

const { account_signature: _, ...unsignedCertificate } = DeviceCertificate.properties;

const Request = Type.Object({
  kind: Type.Literal('device-request'),
  version: Type.Literal(1),
  context: Type.String(),
  certificate: Type.Object(unsignedCertificate),
});
/** A device's request to be added to an account, or renewed. */
export type DeviceRequest = Static<typeof Request>;

const Approval = Type.Object({
  kind: Type.Literal('device-approval'),
  version: Type.Literal(1),
  context: Type.String(),
  certificate: DeviceCertificate,
  /** The account's final route, which names the home relay. */
  route: AccountRouteSchema,
});
/** The answer to a {@link DeviceRequest}: the signed certificate and the account's route. */
export type DeviceApproval = Static<typeof Approval>;

/** Makes a device's request to an account. @throws ClientError `invalid_input` for a bad key */
export function makeDeviceRequest(
  network: Network,
  device: DeviceSigner,
  facts: {
    /** Of the account, base64url. */
    readonly accountPublicKey: string;
    /** Unix seconds. */
    readonly notBefore: number;
    readonly expiresAt: number;
  },
): DeviceRequest {
  const unsigned = {
    $type: network.type('device.certificate'),
    account: accountOfKey(network, facts.accountPublicKey),
    account_public_key: facts.accountPublicKey,
    signing_public_key: device.signingPublicKey,
    encryption_public_key: device.encryptionPublicKey,
    not_before: facts.notBefore,
    expires_at: facts.expiresAt,
  };
  const signature = device.sign(deviceCertificateDeviceInput(network, unsigned));
  return {
    kind: 'device-request',
    version: 1,
    context: network.context,
    certificate: { ...unsigned, device_signature: encodeBase64url(signature) },
  };
}

/** Derives the account of a public key. @throws ClientError `invalid_input` */
export function accountOfKey(network: Network, publicKey: string): string {
  try {
    return deriveAccountId(network, publicKey);
  } catch (cause) {
    throw new ClientError(
      'invalid_input',
      'not an account public key: pass `Account.publicKey` of a device',
      { cause },
    );
  }
}

/**
 * Checks a request completely and signs its certificate.
 * @throws ClientError `verification_failed`
 */
export async function approveDevice(
  network: Network,
  signer: AccountSigner,
  request: DeviceRequest,
): Promise<DeviceCertificate> {
  const { certificate: draft } = request;
  const signature = await verifyInput('device request', async () => {
    checkDeviceCertificate(network, { ...draft, account_signature: draft.device_signature });
    const check = signatureCheck({
      scheme: 'ed25519',
      publicKey: draft.signing_public_key,
      message: deviceCertificateDeviceInput(network, draft),
      signature: draft.device_signature,
    });
    verifySignatures(network.primitives, [check], 'device request');
    if (draft.account !== signer.account)
      throw new ProtocolError('forbidden', 'of another account');
    return await signer.sign(deviceCertificateAccountInput(network, draft));
  });
  return { ...draft, account_signature: encodeBase64url(signature) };
}

/** Makes the approval of a device. */
export function makeDeviceApproval(
  network: Network,
  facts: { readonly certificate: DeviceCertificate; readonly route: AccountRoute },
): DeviceApproval {
  return { kind: 'device-approval', version: 1, context: network.context, ...facts };
}

/**
 * Checks that an approval is of this device and account, with both signatures.
 * @throws ClientError `verification_failed`, `wrong_device`
 */
export async function checkApproval(
  network: Network,
  approval: DeviceApproval,
  expected: { readonly account: string; readonly deviceId: string },
): Promise<void> {
  const { certificate, route } = approval;
  await verifyInput('device approval', async () => verifyDeviceCertificate(network, certificate));
  // The ID of a device is also of its account.
  const isExpected = deriveDeviceId(network, certificate) === expected.deviceId;
  if (!isExpected || route.account !== expected.account) {
    throw new ClientError('wrong_device', 'the approval is of another device or account');
  }
}

/**
 * Stores the certificate of a checked approval as the own one, unless this device has one that ends
 * later: an earlier approval can be completed again.
 */
export async function adoptApproval(
  tx: StoreWriter,
  { certificate }: DeviceApproval,
): Promise<void> {
  const known = await ownCertificates.get(tx, ownKey);
  const isSameDevice =
    known?.account === certificate.account &&
    known.signing_public_key === certificate.signing_public_key;
  if (isSameDevice && known.expires_at > certificate.expires_at) return;
  await ownCertificates.put(tx, ownKey, certificate);
}

/**
 * Reads a device request from the text of its file.
 *
 * @throws ClientError `verification_failed`
 * @example
 * import { readFile } from 'node:fs/promises';
 * import { parseDeviceRequest } from '@posthouse/client';
 * const request = await parseDeviceRequest(network, await readFile('request.json', 'utf8'));
 * const approval = await account.devices.approve(request);
 */
export function parseDeviceRequest(network: Network, text: string): Promise<DeviceRequest> {
  return verifyInput('device request', async () => {
    const value = parseJson(text);
    checkSchema(Request, value);
    checkContext(network, value.context);
    return value;
  });
}

/**
 * Reads a device approval from the text of its file.
 *
 * @throws ClientError `verification_failed`
 * @example
 * import { readFile } from 'node:fs/promises';
 * import { parseDeviceApproval } from '@posthouse/client';
 * const approval = await parseDeviceApproval(network, await readFile('approval.json', 'utf8'));
 */
export function parseDeviceApproval(network: Network, text: string): Promise<DeviceApproval> {
  return verifyInput('device approval', async () => {
    const value = parseJson(text);
    checkSchema(Approval, value);
    checkContext(network, value.context);
    return value;
  });
}

function checkContext(network: Network, context: string): void {
  if (context !== network.context) throw new ProtocolError('forbidden', 'of another network');
}

async function verifyInput<T>(what: string, check: () => Promise<T>): Promise<T> {
  try {
    return await check();
  } catch (cause) {
    if (!(cause instanceof ProtocolError || cause instanceof JsonError)) throw cause;
    throw new ClientError('verification_failed', `${what}: ${cause.message}`, { cause });
  }
}
