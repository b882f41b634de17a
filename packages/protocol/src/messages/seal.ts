/** Building and opening a whole message (04 §6). */
import type { Random } from '../crypto/primitives.ts';
import { utf8 } from '../encoding/bytes.ts';
import { badRequest } from '../errors.ts';
import {
  type DeviceCertificate,
  type Network,
  type SigningDevice,
  signAsDevice,
} from '../identity/index.ts';
import { canonicalJson } from '../json/canonical.ts';
import type { JsonObject } from '../json/types.ts';
import {
  checkEnvelope,
  type MessageEnvelope,
  messageAad,
  newMessageId,
  verifyEnvelope,
} from './envelope.ts';
import { checkKeyBoxes, type MessageKeyBox, openKeyBox, sealKeyBox } from './key-box.ts';
import { openPayload, sealPayload } from './payload.ts';

/** A message ready for `message.send`. */
export interface SealedMessage {
  readonly envelope: MessageEnvelope;
  readonly recipient_boxes: MessageKeyBox[];
  readonly sender_boxes?: MessageKeyBox[];
}

export interface SealMessageInput {
  readonly from: SigningDevice;
  /** Target account. */
  readonly to: string;
  /** Unix seconds. */
  readonly createdAt: number;
  /** A new one is made by default. */
  readonly messageId?: string;
  /** The business object, with its `$type`. */
  readonly content: JsonObject;
  /** Verified certificates of 1 to 8 devices of `to`. */
  readonly recipients: readonly DeviceCertificate[];
  /** Own devices that shall see the sent message; never in self-delivery (04 §5). */
  readonly senders?: readonly DeviceCertificate[];
  readonly random: Random;
}

/**
 * Encrypts, boxes and signs one message.
 *
 * Draws from `random`, in this order: message ID (16, unless one is given), content key (32),
 * payload nonce (12), and for each box ephemeral key (32) and nonce (12), recipients first.
 *
 * @throws ProtocolError `bad_request` for devices of other accounts or sender boxes in
 *   self-delivery; `request_too_large` for an envelope over 262,144 bytes
 * @example
 * const message = sealMessage(network, {
 *   from: device,
 *   to: peer,
 *   createdAt: now,
 *   content: { $type: network.type('message.direct'), body },
 *   recipients: [...currentDevices(network, state, now).values()],
 *   random,
 * });
 */
export function sealMessage(network: Network, input: SealMessageInput): SealedMessage {
  const { from, to, recipients, senders = [], random } = input;
  if (from.account === to && senders.length > 0) {
    throw badRequest('senders', 'self-delivery has no sender boxes');
  }
  const head = {
    $type: network.type('message.envelope'),
    message_id: input.messageId ?? newMessageId(random),
    created_at: input.createdAt,
    from: from.account,
    from_device_id: from.deviceId,
    to,
  };
  const contentKey = random(32);
  const payload = sealPayload(network.primitives, {
    key: contentKey,
    aad: messageAad(network, head),
    plaintext: utf8(canonicalJson(input.content)),
    random,
  });
  const box = (account: string) => (certificate: DeviceCertificate) => {
    if (certificate.account !== account)
      throw badRequest('recipients', 'device of another account');
    return sealKeyBox(network, { envelope: head, certificate, contentKey, random });
  };
  const recipientBoxes = recipients.map(box(to));
  checkKeyBoxes(recipientBoxes, 'recipients');
  const senderBoxes = senders.map(box(from.account));
  if (senderBoxes.length > 0) checkKeyBoxes(senderBoxes, 'senders');
  const envelope = signAsDevice(network, { ...head, payload }, from);
  checkEnvelope(network, envelope);
  return {
    envelope,
    recipient_boxes: recipientBoxes,
    ...(senderBoxes.length > 0 && { sender_boxes: senderBoxes }),
  };
}

/**
 * Opens a message in the order of 04 §6.3: certificate and envelope signature, box, payload. The
 * bytes given back are authenticated; `parseContent` reads them.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`; `bad_request` also
 *   if the box is not this device's, or box or payload do not authenticate
 * @example
 * const { deviceId } = device;
 * const encryptionPrivateKey = privateKey;
 * const read = { envelope, keyBox, certificate, account, deviceId, encryptionPrivateKey };
 * const plaintext = openMessage(network, read);
 */
export function openMessage(
  network: Network,
  input: {
    readonly envelope: MessageEnvelope;
    readonly keyBox: MessageKeyBox;
    /** Of the sending device. */
    readonly certificate: DeviceCertificate;
    /** The reading account: `to` of the envelope, or `from` for a message it sent. */
    readonly account: string;
    /** The reading device. */
    readonly deviceId: string;
    /** X25519, 32 bytes. */
    readonly encryptionPrivateKey: Uint8Array;
  },
): Uint8Array {
  const { envelope, keyBox, certificate, account, deviceId, encryptionPrivateKey } = input;
  verifyEnvelope(network, envelope, certificate);
  checkKeyBoxes([keyBox], 'key_box');
  if (keyBox.device_id !== deviceId) throw badRequest('key_box.device_id', 'another device');
  const key = openKeyBox(network, { envelope, account, box: keyBox, encryptionPrivateKey });
  if (key === undefined) throw badRequest('key_box', 'does not open');
  const aad = messageAad(network, envelope);
  const plaintext = openPayload(network.primitives, envelope.payload, { key, aad });
  if (plaintext === undefined) throw badRequest('envelope.payload', 'does not authenticate');
  return plaintext;
}
