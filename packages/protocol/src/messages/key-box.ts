/** Boxes that give single devices the key of a message (04 §5, §6.2). */
import type { Random } from '../crypto/primitives.ts';
import { badRequest } from '../errors.ts';
import { type DeviceCertificate, deriveDeviceId, type Network } from '../identity/index.ts';
import { limits } from '../limits.ts';
import {
  Base64url,
  checkPart,
  checkSchema,
  DeviceId,
  memberPath,
  type Static,
  Type,
} from '../schema.ts';
import type { EnvelopeHead } from './envelope.ts';
import { keyWrapAlgorithm, unwrapKey, wrapKey } from './key-wrap.ts';

/** The content key of one message, sealed to one device. */
export const MessageKeyBox = Type.Object({
  device_id: DeviceId,
  alg: Type.Literal(keyWrapAlgorithm),
  /** Ephemeral X25519 public key made for this box. */
  enc: Base64url(32),
  /** Nonce, sealed key, tag. */
  sealed_key: Base64url(60),
});
export type MessageKeyBox = Static<typeof MessageKeyBox>;

/** One set of boxes, for devices of one account: 1 to 8. */
export const MessageKeyBoxes = Type.Array(MessageKeyBox, {
  minItems: 1,
  maxItems: limits.keyBoxes,
});

/**
 * Checks a set of boxes: 1 to 8, each sound, no device twice.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkKeyBoxes(value);
 * console.log(value.map((box) => box.device_id));
 */
export function checkKeyBoxes(value: unknown, path = ''): asserts value is MessageKeyBox[] {
  checkSchema(MessageKeyBoxes, value, path);
  checkKeyBoxRules(value, path);
}

/**
 * Checks what the schema of a set of boxes does not express.
 * @throws ProtocolError `bad_request`
 */
export function checkKeyBoxRules(boxes: readonly MessageKeyBox[], path: string): void {
  for (const [index, box] of boxes.entries()) {
    if (Object.hasOwn(box, '$context')) checkPart(box, memberPath(path, index));
    const isRepeat = boxes.some((other, at) => at < index && other.device_id === box.device_id);
    if (isRepeat) throw badRequest(memberPath(path, index), 'repeats a device');
  }
}

/** The device that a box is for, and the message it belongs to. */
export interface KeyBoxContext {
  readonly envelope: EnvelopeHead;
  /** The account that may open it: `to` of the envelope, or `from` for a sender box. */
  readonly account: string;
  readonly deviceId: string;
  /** Ephemeral public key of the box, base64url. */
  readonly enc: string;
}

/** Returns the KDF info, which is also the associated data, of a box (04 §6.2). */
export function keyBoxInfo(network: Network, context: KeyBoxContext): Uint8Array {
  const { envelope, account, deviceId, enc } = context;
  return network.bytes({
    $type: network.type('message.key_box.aad'),
    alg: keyWrapAlgorithm,
    payload_alg: 'AES-256-GCM',
    message_id: envelope.message_id,
    created_at: envelope.created_at,
    from: envelope.from,
    from_device_id: envelope.from_device_id,
    account,
    device_id: deviceId,
    enc,
  });
}

/**
 * Seals a content key to one device. Draws 32 bytes for the ephemeral key, then 12 for the nonce.
 *
 * @throws ProtocolError `bad_request` for a device key whose shared secret is all zero
 */
export function sealKeyBox(
  network: Network,
  input: {
    readonly envelope: EnvelopeHead;
    /** The device's certificate; its account is the one that may open the box. */
    readonly certificate: DeviceCertificate;
    /** 32 bytes. */
    readonly contentKey: Uint8Array;
    readonly random: Random;
  },
): MessageKeyBox {
  const { envelope, certificate, contentKey, random } = input;
  const { account } = certificate;
  const deviceId = deriveDeviceId(network, certificate);
  const { enc, sealed } = wrapKey(network, {
    publicKey: certificate.encryption_public_key,
    info: (key) => keyBoxInfo(network, { envelope, account, deviceId, enc: key }),
    key: contentKey,
    random,
  });
  return { device_id: deviceId, alg: keyWrapAlgorithm, enc, sealed_key: sealed };
}

/**
 * Opens a box with the device's X25519 private key.
 *
 * @returns the content key, or `undefined` for a box that is not for this device, account and
 *   message
 * @example
 * const input = { envelope, account, box: keyBox, encryptionPrivateKey: privateKey };
 * const contentKey = openKeyBox(network, input);
 */
export function openKeyBox(
  network: Network,
  input: {
    readonly envelope: EnvelopeHead;
    /** The account whose box it is: `to` of the envelope, or `from` for a sender box. */
    readonly account: string;
    readonly box: MessageKeyBox;
    readonly encryptionPrivateKey: Uint8Array;
  },
): Uint8Array | undefined {
  const { envelope, account, box, encryptionPrivateKey } = input;
  const context = { envelope, account, deviceId: box.device_id, enc: box.enc };
  return unwrapKey(network, {
    privateKey: encryptionPrivateKey,
    enc: box.enc,
    sealed: box.sealed_key,
    info: keyBoxInfo(network, context),
  });
}
