/** The signed, encrypted unit of delivery (04 §2, §3, §6.1). */
import type { Random, SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { encodeBase64url } from '../encoding/base64url.ts';
import { badRequest } from '../errors.ts';
import {
  type BoundTexts,
  checkAccountId,
  type DeviceCertificate,
  deriveDeviceId,
  deviceSignatures,
  deviceSignedTexts,
  deviceSigningInput,
  type Network,
  verifyDeviceCertificate,
} from '../identity/index.ts';
import { limits } from '../limits.ts';
import {
  AccountId,
  checkNoNull,
  checkSchema,
  checkTextSize,
  checkTyped,
  DeviceId,
  MessageId,
  memberPath,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { checkPayloadRules, EncryptedPayload } from './payload.ts';

/** One message to one account, as its sending device signed it. Never changes. */
export const MessageEnvelope = Type.Object({
  $type: TypeName,
  message_id: MessageId,
  created_at: UnixSeconds,
  from: AccountId,
  from_device_id: DeviceId,
  to: AccountId,
  payload: EncryptedPayload,
  device_signature: Signature,
});
export type MessageEnvelope = Static<typeof MessageEnvelope>;

/** The members of an envelope that every cryptographic input of the message repeats. */
export type EnvelopeHead = Pick<
  MessageEnvelope,
  'message_id' | 'created_at' | 'from' | 'from_device_id' | 'to'
>;

/**
 * Makes a message ID: `msg_` and 16 random bytes (04 §2).
 *
 * @example
 * newMessageId(random); // 'msg_…'
 */
export function newMessageId(random: Random): string {
  return `msg_${encodeBase64url(random(16))}`;
}

/**
 * Checks everything about an envelope but its signature: structure, accounts of this network, size.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` over 262,144 bytes of Canonical JSON
 * @example
 * checkEnvelope(network, value);
 * console.log(value.message_id);
 */
export function checkEnvelope(
  network: Network,
  value: unknown,
  path = '',
): asserts value is MessageEnvelope {
  checkTyped(network, 'message.envelope', value, path);
  checkSchema(MessageEnvelope, value, path);
  checkPayloadRules(value.payload, memberPath(path, 'payload'));
  checkNoNull(value, path);
  readAccountsAndTexts(network, value, path);
}

/** Canonical texts of an envelope: complete, and as its device signs it. */
export interface EnvelopeTexts extends BoundTexts {
  /** Bytes of UTF-8 of the complete text. */
  readonly bytes: number;
}

/**
 * Checks what an envelope's schema does not express, and returns its texts, each made once.
 *
 * @param envelope one that matches its schema and has no `null`
 * @throws ProtocolError as {@link checkEnvelope}
 */
export function readEnvelope(
  network: Network,
  envelope: MessageEnvelope,
  path: string,
): EnvelopeTexts {
  checkTyped(network, 'message.envelope', envelope, path);
  checkPayloadRules(envelope.payload, memberPath(path, 'payload'));
  return readAccountsAndTexts(network, envelope, path);
}

function readAccountsAndTexts(
  network: Network,
  envelope: MessageEnvelope,
  path: string,
): EnvelopeTexts {
  checkAccountId(network, envelope.from, memberPath(path, 'from'));
  checkAccountId(network, envelope.to, memberPath(path, 'to'));
  const { complete, bound } = deviceSignedTexts(network, envelope);
  return { complete, bound, bytes: checkTextSize(complete, limits.envelopeBytes, path) };
}

/**
 * Returns the bytes that the sending device signs: the envelope without its signature, unknown
 * members included.
 *
 * @example
 * const signature = device.sign(envelopeSigningInput(network, envelope));
 */
export function envelopeSigningInput(
  network: Network,
  envelope: Omit<MessageEnvelope, 'device_signature'>,
): Uint8Array {
  return deviceSigningInput(network, envelope);
}

/**
 * Returns the envelope's signature, by the device of a certificate that was verified on its own.
 *
 * @example
 * verifySignatures(primitives, envelopeSignatures(network, envelope, certificate), 'envelope');
 */
export function envelopeSignatures(
  network: Network,
  envelope: MessageEnvelope,
  certificate: Pick<DeviceCertificate, 'signing_public_key'>,
): SignatureCheck[] {
  return deviceSignatures(network, envelope, certificate);
}

/**
 * Checks that a certificate is the sending device's: its account is `from` and its derived device
 * ID is `from_device_id`.
 *
 * @throws ProtocolError `bad_request` (04 §13, condition 2)
 * @example
 * checkEnvelopeCertificate(network, envelope, certificate);
 */
export function checkEnvelopeCertificate(
  network: Network,
  envelope: Pick<MessageEnvelope, 'from' | 'from_device_id'>,
  certificate: DeviceCertificate,
): void {
  if (certificate.account !== envelope.from) {
    throw badRequest('envelope.from', 'certificate is of another account');
  }
  if (deriveDeviceId(network, certificate) !== envelope.from_device_id) {
    throw badRequest('envelope.from_device_id', 'certificate is of another device');
  }
}

/**
 * Checks an envelope completely: itself, the sender's certificate with both signatures, that the
 * certificate is the sender's, and the envelope's signature. The device's present authority is not
 * checked.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * verifyEnvelope(network, value, certificate);
 * console.log(value.from);
 */
export function verifyEnvelope(
  network: Network,
  value: unknown,
  certificate: DeviceCertificate,
): asserts value is MessageEnvelope {
  checkEnvelope(network, value);
  verifyDeviceCertificate(network, certificate, 'certificate');
  checkEnvelopeCertificate(network, value, certificate);
  const checks = envelopeSignatures(network, value, certificate);
  verifySignatures(network.primitives, checks, 'envelope');
}

/**
 * Returns the associated data of the payload (04 §6.1). Unknown members of the envelope do not
 * enter it.
 *
 * @example
 * const aad = messageAad(network, envelope);
 */
export function messageAad(network: Network, envelope: EnvelopeHead): Uint8Array {
  return network.bytes({
    $type: network.type('message.aad'),
    message_id: envelope.message_id,
    created_at: envelope.created_at,
    from: envelope.from,
    from_device_id: envelope.from_device_id,
    to: envelope.to,
  });
}
