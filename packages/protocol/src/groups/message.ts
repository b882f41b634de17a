/** Group messages: the signed envelope and what is sealed in it (05 §3.9, §4.12). */
import type { Random } from '../crypto/primitives.ts';
import { utf8 } from '../encoding/bytes.ts';
import { signAsDevice } from '../identity/device-signed.ts';
import type { Network, SigningDevice } from '../identity/index.ts';
import { canonicalJson } from '../json/canonical.ts';
import type { JsonObject } from '../json/types.ts';
import { limits } from '../limits.ts';
import { newMessageId } from '../messages/envelope.ts';
import {
  checkEncryptedPayload,
  EncryptedPayload,
  openPayload,
  sealPayload,
} from '../messages/payload.ts';
import {
  Counter,
  checkCanonicalSize,
  checkNoNull,
  checkObject,
  MessageId,
  memberPath,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
} from '../schema.ts';
import { GroupId } from './ids.ts';

/** A message of this network's type `group.message`; its sender is the signing device. */
export const GroupMessageEnvelope = Type.Object({
  $type: TypeName,
  /** Scope is the sending account. */
  message_id: MessageId,
  group_id: GroupId,
  /** The epoch whose key encrypts the body. */
  epoch: Counter,
  created_at: UnixSeconds,
  payload: EncryptedPayload,
  device_signature: Signature,
});
export type GroupMessageEnvelope = Static<typeof GroupMessageEnvelope>;

/**
 * Checks an envelope but its signature: structure, size.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` over 262,144 bytes of Canonical JSON
 * @example
 * checkGroupMessageEnvelope(network, value);
 * console.log(value.message_id);
 */
export function checkGroupMessageEnvelope(
  network: Network,
  value: unknown,
  path = '',
): asserts value is GroupMessageEnvelope {
  checkObject(network, { type: 'group.message', schema: GroupMessageEnvelope }, value, path);
  checkEncryptedPayload(value.payload, memberPath(path, 'payload'));
  checkNoNull(value, path);
  checkCanonicalSize(value, limits.groupMessageBytes, path);
}

/**
 * The context of a message's key and ciphertext. Sender and device come from the session (sender)
 * or from the verified certificate (reader), never from the envelope.
 */
export interface GroupMessageContext {
  readonly group_id: string;
  readonly epoch: number;
  readonly message_id: string;
  readonly created_at: number;
  /** Account and device that sign. */
  readonly from: string;
  readonly from_device_id: string;
}

/**
 * Returns the associated data of the ciphertext, which is also the KDF info of its key; never sent
 * (05 §3.9).
 */
export function groupMessageAad(network: Network, context: GroupMessageContext): Uint8Array {
  const { group_id, epoch, message_id, from, from_device_id, created_at } = context;
  return network.bytes({
    $type: network.type('group.message.aad'),
    group_id,
    epoch,
    message_id,
    from,
    from_device_id,
    created_at,
  });
}

/**
 * Derives the key of one message, 32 bytes (05 §3.9).
 *
 * @param applicationSecret that of the message's epoch, 32 bytes
 * @example
 * const { account: from, deviceId: from_device_id } = device;
 * const context = { ...groupMessage, from, from_device_id };
 * const key = deriveGroupMessageKey(network, applicationSecret, context);
 */
export function deriveGroupMessageKey(
  network: Network,
  applicationSecret: Uint8Array,
  context: GroupMessageContext,
): Uint8Array {
  return network.primitives.hkdfSha256({
    secret: applicationSecret,
    salt: network.salt('group-message-salt/v1'),
    info: groupMessageAad(network, context),
    length: 32,
  });
}

export interface SealGroupMessageInput {
  readonly group_id: string;
  readonly from: SigningDevice;
  /** The group's current epoch and the application secret of that epoch. */
  readonly epoch: number;
  readonly applicationSecret: Uint8Array;
  /** Unix seconds. */
  readonly createdAt: number;
  /** A new one is made by default; encrypting again needs a new one (05 §13.28). */
  readonly messageId?: string;
  /** The business object, with its `$type`. */
  readonly content: JsonObject;
  readonly random: Random;
}

/**
 * Encrypts and signs one group message. Draws from `random` the message ID (16 bytes, unless one is
 * given), then the nonce (12).
 *
 * @throws ProtocolError `request_too_large` for an envelope over 262,144 bytes
 * @example
 * const { group_id, epoch } = group;
 * const envelope = sealGroupMessage(network, {
 *   group_id, from: device, epoch, applicationSecret, createdAt: now, content, random,
 * });
 */
export function sealGroupMessage(
  network: Network,
  input: SealGroupMessageInput,
): GroupMessageEnvelope {
  const { group_id, from, epoch, applicationSecret, createdAt, content, random } = input;
  const head = {
    $type: network.type('group.message'),
    message_id: input.messageId ?? newMessageId(random),
    group_id,
    epoch,
    created_at: createdAt,
  };
  const context = { ...head, from: from.account, from_device_id: from.deviceId };
  const payload = sealPayload(network.primitives, {
    key: deriveGroupMessageKey(network, applicationSecret, context),
    aad: groupMessageAad(network, context),
    plaintext: utf8(canonicalJson(content)),
    random,
  });
  const envelope = signAsDevice(network, { ...head, payload }, from);
  checkGroupMessageEnvelope(network, envelope);
  return envelope;
}

/**
 * Decrypts the payload of an envelope whose signature was verified; both conditions are separate
 * and both must hold (05 §14.2).
 *
 * @param sender account and device of the verified certificate the event refers to
 * @returns the authenticated bytes, or `undefined` if they do not authenticate
 * @example
 * const plaintext = openGroupMessage(network, groupMessage, { applicationSecret, sender: device });
 * if (plaintext !== undefined) readGroupContent(network, plaintext, event.sequence);
 */
export function openGroupMessage(
  network: Network,
  envelope: GroupMessageEnvelope,
  {
    applicationSecret,
    sender,
  }: {
    readonly applicationSecret: Uint8Array;
    readonly sender: { readonly account: string; readonly deviceId: string };
  },
): Uint8Array | undefined {
  const context = { ...envelope, from: sender.account, from_device_id: sender.deviceId };
  return openPayload(network.primitives, envelope.payload, {
    key: deriveGroupMessageKey(network, applicationSecret, context),
    aad: groupMessageAad(network, context),
  });
}
