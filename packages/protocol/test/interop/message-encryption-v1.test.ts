import { describe, expect, test } from 'vitest';
import type { Primitives } from '../../src/crypto/index.ts';
import {
  checkDirectMessage,
  type DeviceCertificate,
  decodeBase64url,
  encodeBase64url,
  envelopeSigningInput,
  fromHex,
  hex,
  type MessageEnvelope,
  type MessageKeyBox,
  messageAad,
  Network,
  openKeyBox,
  openPayload,
  parseContent,
  utf8,
  verifyEnvelope,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject, parseJson } from '../../src/json/index.ts';
import { keyBoxInfo } from '../../src/messages/key-box.ts';
import { unwrapKey, wrapKey } from '../../src/messages/key-wrap.ts';
import { checkEncryptedPayload, sealPayload } from '../../src/messages/payload.ts';
import { implementations } from '../crypto/implementations.ts';
import { describeVectors, fromBase64 } from './vectors.ts';

interface KeyBoxVector {
  ephemeral_private_key: string;
  shared_secret: string;
  kdf_info_utf8_hex: string;
  aad_utf8_hex: string;
  wrapping_key: string;
  nonce: string;
  sealed_key: string;
}

interface Vectors {
  envelope_signature: {
    private_key: string;
    public_key: string;
    unsigned_object_ref: string;
    recipient_boxes_ref: string;
    signing_input_utf8_hex: string;
    signature: string;
  };
  payload: {
    aad: { utf8_hex: string };
    encryption: Record<
      | 'recipient_private_key'
      | 'recipient_public_key'
      | 'ephemeral_private_key'
      | 'ephemeral_public_key'
      | 'shared_secret'
      | 'hkdf_salt'
      | 'hkdf_info'
      | 'wrap_key'
      | 'key_box_aad'
      | 'key_box_nonce'
      | 'sealed_key'
      | 'content_key'
      | 'payload_nonce'
      | 'plaintext_utf8_hex'
      | 'ciphertext',
      string
    > & { envelope: MessageEnvelope; recipient_boxes: MessageKeyBox[] };
    aad_rejection_cases: {
      name: string;
      aad_overrides: JsonObject;
      expected_authenticated: boolean;
    }[];
  };
  timeline: {
    sender_signing_private_key: string;
    sender_encryption_private_key: string;
    target_encryption_private_key: string;
    plaintext_utf8_hex: string;
    content_key: string;
    hkdf_salt: string;
    message_aad_utf8_hex: string;
    payload_nonce: string;
    envelope_signing_input_utf8_hex: string;
    target_key_box: KeyBoxVector;
    sender_key_box: KeyBoxVector;
    request: {
      envelope: MessageEnvelope;
      signer_certificate: DeviceCertificate;
      sender_boxes: MessageKeyBox[];
      recipient_boxes: MessageKeyBox[];
    };
  };
}

const plain = <T>(value: T) => JSON.parse(JSON.stringify(value)) as T;
const bytes = (text: string) => decodeBase64url(text) as Uint8Array;
/** Hands out the given bytes, each once, in order: what the producer of the vectors drew. */
function drawing(...parts: readonly Uint8Array[]): (length: number) => Uint8Array {
  const left = [...parts];
  return (length) => {
    const next = left.shift();
    if (next?.length !== length) throw new Error(`unexpected draw of ${length} bytes`);
    return next;
  };
}

/** The steps of a box one by one, as the vectors give them. */
function derive(
  primitives: Primitives,
  net: Network,
  vector: {
    ephemeral: string;
    receiver: string;
    salt: string;
    info: Uint8Array;
  },
) {
  const secret = primitives.x25519.shared(bytes(vector.ephemeral), bytes(vector.receiver));
  const salt = net.salt('keybox-salt/v1');
  expect(encodeBase64url(salt)).toBe(vector.salt);
  const key = primitives.hkdfSha256({
    secret: secret as Uint8Array,
    salt,
    info: vector.info,
    length: 32,
  });
  return [encodeBase64url(secret as Uint8Array), encodeBase64url(key)];
}

describeVectors<Vectors>('message-encryption-v1', (file) => {
  const { data } = file;
  const { payload, timeline } = data;
  const vector = payload.encryption;

  describe.each(implementations)('with the primitives of %s', (_name, primitives) => {
    const net = file.network(primitives);

    test('04 §3: signing input and signature of an envelope', () => {
      const signature = data.envelope_signature;
      const envelope = file.resolve<MessageEnvelope>(signature.unsigned_object_ref);
      const input = envelopeSigningInput(net, plain(envelope));
      expect(hex(input)).toBe(signature.signing_input_utf8_hex);
      const key = bytes(signature.private_key);
      expect(encodeBase64url(primitives.ed25519.publicKey(key))).toBe(signature.public_key);
      expect(encodeBase64url(primitives.ed25519.sign(key, input))).toBe(signature.signature);
      expect(envelope.device_signature).toBe(signature.signature);
      const boxes = file.resolve<MessageKeyBox[]>(signature.recipient_boxes_ref);
      expect(plain(boxes)).toEqual(plain(vector.recipient_boxes));
    });

    test('04 §6.1: associated data and payload', () => {
      const aad = messageAad(net, vector.envelope);
      expect(hex(aad)).toBe(payload.aad.utf8_hex);
      const sealed = sealPayload(primitives, {
        key: bytes(vector.content_key),
        aad,
        plaintext: fromHex(vector.plaintext_utf8_hex),
        random: drawing(bytes(vector.payload_nonce)),
      });
      expect(sealed).toEqual(plain(vector.envelope.payload));
      expect(sealed.ciphertext).toBe(vector.ciphertext);
      checkEncryptedPayload(sealed);
      const key = bytes(vector.content_key);
      const opened = openPayload(primitives, vector.envelope.payload, { key, aad });
      expect(hex(opened as Uint8Array)).toBe(vector.plaintext_utf8_hex);
      checkDirectMessage(net, parseJson(new TextDecoder().decode(opened)));
    });

    test('04 §6.2: every step of a key box', () => {
      const [box] = vector.recipient_boxes;
      if (box === undefined) throw new Error('the vector has a box');
      const { envelope } = vector;
      const info = keyBoxInfo(net, {
        envelope,
        account: envelope.to,
        deviceId: box.device_id,
        enc: box.enc,
      });
      // The vector writes these two in padded base64.
      expect(hex(info)).toBe(hex(fromBase64(vector.hkdf_info)));
      expect(hex(info)).toBe(hex(fromBase64(vector.key_box_aad)));
      const ephemeral = bytes(vector.ephemeral_private_key);
      expect(encodeBase64url(primitives.x25519.publicKey(ephemeral))).toBe(
        vector.ephemeral_public_key,
      );
      const receiver = bytes(vector.recipient_private_key);
      expect(encodeBase64url(primitives.x25519.publicKey(receiver))).toBe(
        vector.recipient_public_key,
      );
      expect(
        derive(primitives, net, {
          ephemeral: vector.ephemeral_private_key,
          receiver: vector.recipient_public_key,
          salt: vector.hkdf_salt,
          info,
        }),
      ).toEqual([vector.shared_secret, vector.wrap_key]);
      const wrapped = wrapKey(net, {
        publicKey: vector.recipient_public_key,
        info: (enc) =>
          keyBoxInfo(net, { envelope, account: envelope.to, deviceId: box.device_id, enc }),
        key: bytes(vector.content_key),
        random: drawing(ephemeral, bytes(vector.key_box_nonce)),
      });
      expect(wrapped).toEqual({ enc: box.enc, sealed: box.sealed_key });
      expect(box).toMatchObject({ alg: 'X25519-HKDF-SHA256-AES256GCM' });
      expect(wrapped.sealed).toBe(vector.sealed_key);
      const opened = openKeyBox(net, {
        envelope,
        account: envelope.to,
        box,
        encryptionPrivateKey: receiver,
      });
      expect(encodeBase64url(opened as Uint8Array)).toBe(vector.content_key);
    });

    test.each(payload.aad_rejection_cases)('04 §6.4: $name', (item) => {
      const { $context: context = net.context, ...members } = plain(item.aad_overrides);
      const there = new Network({ context: context as string, word: net.word, primitives });
      const aad = messageAad(there, { ...plain(vector.envelope), ...members });
      const key = bytes(vector.content_key);
      const opened = openPayload(primitives, vector.envelope.payload, { key, aad });
      expect(opened !== undefined).toBe(item.expected_authenticated);
    });

    test('04 §3: the envelope of the timeline record verifies with its certificate', () => {
      const { envelope, signer_certificate: certificate } = timeline.request;
      verifyEnvelope(net, plain(envelope), plain(certificate));
      const input = envelopeSigningInput(net, plain(envelope));
      expect(hex(input)).toBe(timeline.envelope_signing_input_utf8_hex);
      const key = bytes(timeline.sender_signing_private_key);
      expect(encodeBase64url(primitives.ed25519.sign(key, input))).toBe(envelope.device_signature);
    });

    test('04 §6.1: its payload', () => {
      const { envelope } = timeline.request;
      const aad = messageAad(net, envelope);
      expect(hex(aad)).toBe(timeline.message_aad_utf8_hex);
      const key = bytes(timeline.content_key);
      const sealed = sealPayload(primitives, {
        key,
        aad,
        plaintext: fromHex(timeline.plaintext_utf8_hex),
        random: drawing(bytes(timeline.payload_nonce)),
      });
      expect(canonicalJson(sealed)).toBe(canonicalJson(plain(envelope.payload)));
      const plaintext = openPayload(primitives, envelope.payload, { key, aad }) as Uint8Array;
      const parsed = parseContent(net, plaintext, { account: envelope.to });
      expect(parsed.kind === 'known' && parsed.name).toBe('message.direct');
    });

    const boxes = [
      ['recipient', 'to', 'target_key_box', 'target_encryption_private_key'],
      ['sender', 'from', 'sender_key_box', 'sender_encryption_private_key'],
    ] as const;

    test.each(boxes)(
      '04 §5: the %s box gives the key of the same payload',
      (name, end, box, key) => {
        const { request, content_key: contentKey } = timeline;
        const steps = timeline[box];
        const [sealed] = name === 'sender' ? request.sender_boxes : request.recipient_boxes;
        if (sealed === undefined) throw new Error('the vector has a box');
        const account = request.envelope[end];
        const context = { envelope: request.envelope, account, deviceId: sealed.device_id };
        const info = keyBoxInfo(net, { ...context, enc: sealed.enc });
        expect(hex(info)).toBe(steps.kdf_info_utf8_hex);
        expect(hex(info)).toBe(steps.aad_utf8_hex);
        const encryptionPrivateKey = bytes(timeline[key]);
        const publicKey = encodeBase64url(primitives.x25519.publicKey(encryptionPrivateKey));
        expect(
          derive(primitives, net, {
            ephemeral: steps.ephemeral_private_key,
            receiver: publicKey,
            salt: timeline.hkdf_salt,
            info,
          }),
        ).toEqual([steps.shared_secret, steps.wrapping_key]);
        const wrapped = wrapKey(net, {
          publicKey,
          info: (enc) => keyBoxInfo(net, { ...context, enc }),
          key: bytes(contentKey),
          random: drawing(bytes(steps.ephemeral_private_key), bytes(steps.nonce)),
        });
        expect(wrapped).toEqual({ enc: sealed.enc, sealed: sealed.sealed_key });
        expect(sealed.sealed_key).toBe(steps.sealed_key);
        expect(sealed).toMatchObject({ alg: 'X25519-HKDF-SHA256-AES256GCM' });
        const opened = openKeyBox(net, {
          envelope: request.envelope,
          account,
          box: sealed,
          encryptionPrivateKey,
        });
        expect(encodeBase64url(opened as Uint8Array)).toBe(contentKey);
        const other = end === 'to' ? request.envelope.from : request.envelope.to;
        const info2 = keyBoxInfo(net, { ...context, account: other, enc: sealed.enc });
        const parts = {
          privateKey: encryptionPrivateKey,
          enc: sealed.enc,
          sealed: sealed.sealed_key,
        };
        expect(unwrapKey(net, { ...parts, info: info2 })).toBeUndefined();
        expect(unwrapKey(net, { ...parts, info: utf8('') })).toBeUndefined();
      },
    );
  });
});
