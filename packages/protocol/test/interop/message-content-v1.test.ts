import { describe, expect, test } from 'vitest';
import { groupMessageAad } from '../../src/groups/message.ts';
import {
  bodyFormat,
  type ContentReference,
  checkContentReference,
  checkDirectMessage,
  checkGroupMessage,
  checkMessageBody,
  checkSchema,
  decodeBase64url,
  deriveGroupMessageKey,
  deviceSigningInput,
  encodeBase64url,
  envelopeSigningInput,
  fromHex,
  type GroupMessageEnvelope,
  hashReferenceUri,
  hex,
  type MessageBody,
  type MessageEnvelope,
  messageAad,
  openContent,
  openPayload,
  parseContent,
  resolveHashReference,
  sha256Text,
  targetKind,
} from '../../src/index.ts';
import { type JsonObject, parseJson } from '../../src/json/index.ts';
import { bodyTargets } from '../../src/markdown/index.ts';
import { checkAttachments, contentAad } from '../../src/messages/content-reference.ts';
import { Sha256 } from '../../src/schema.ts';
import { implementations } from '../crypto/implementations.ts';
import { describeVectors, fromBase64 } from './vectors.ts';

interface EncryptedAttachment {
  plaintext_base64: string;
  reference: ContentReference;
  aad_utf8_hex: string;
  ciphertext_and_tag: string;
}

interface SealedVector {
  content: JsonObject & { body: MessageBody; attachments: ContentReference[] };
  signing_private_key: string;
  signing_public_key: string;
  plaintext_utf8_hex: string;
  aad_utf8_hex: string;
  signing_input_utf8_hex: string;
}

interface Vectors {
  body: {
    media: { plaintext_base64: string; reference: ContentReference };
    body_cases: { name: string; body: MessageBody; interpretation?: string }[];
    invalid_body_cases: { name: string; body: unknown }[];
    rendering_safety_cases: { name: string; body: MessageBody; expected: string }[];
  };
  attachment_encryption: {
    reference: ContentReference;
    plaintext_utf8_hex: string;
    aad_utf8_hex: string;
    ciphertext_and_tag: string;
  };
  hash_references: {
    uri_generation: { plaintext_base64: string; hash: string; uri: string }[];
    encrypted_attachment: EncryptedAttachment;
    re_encrypted_attachment: EncryptedAttachment;
    hash_cases: { name: string; value: unknown; valid: boolean }[];
    resolution_cases: {
      name: string;
      uri: string;
      attachments: ContentReference[];
      expected: { status: string; index?: number };
    }[];
    markdown_cases: {
      name: string;
      body: MessageBody;
      expected_targets: { kind: string; uri: string }[];
    }[];
    private_message: SealedVector & { content_key: string; envelope: MessageEnvelope };
    group_message: SealedVector & {
      epoch_application_secret: string;
      sender_account: string;
      sender_device_id: string;
      envelope: GroupMessageEnvelope;
      message_nonce: string;
      message_key: string;
    };
  };
}

const plain = <T>(value: T) => JSON.parse(JSON.stringify(value)) as T;
const bytes = (text: string) => decodeBase64url(text) as Uint8Array;
const interpretations: Record<string, string> = {
  plain: 'plain_text',
  commonmark: 'commonmark_0_31_2',
};

function passes(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

describeVectors<Vectors>('message-content-v1', (file) => {
  const { data } = file;
  const references = data.hash_references;

  test.each(data.body.body_cases)('04 §8: body $name', ({ body, interpretation }) => {
    checkMessageBody(plain(body));
    expect(interpretations[bodyFormat(body.content_type)]).toBe(interpretation);
  });

  test.each(data.body.invalid_body_cases)('04 §8: no body: $name', ({ body }) => {
    expect(passes(() => checkMessageBody(plain({ body }).body))).toBe(false);
  });

  test.each(data.body.rendering_safety_cases)('04 §8: $name', ({ body, expected }) => {
    checkMessageBody(plain(body));
    const kinds = bodyTargets(plain(body)).map(({ uri }) => targetKind(uri));
    expect(['do_not_execute_handler', 'do_not_execute_link']).toContain(expected);
    // Raw HTML has no targets at all; the address of a script is blocked.
    expect(kinds).toEqual(expected === 'do_not_execute_link' ? ['blocked'] : []);
  });

  test.each(references.hash_cases)('01 §4.1: hash $name', ({ value, valid }) => {
    expect(passes(() => checkSchema(Sha256, value))).toBe(valid);
  });

  test.each(references.resolution_cases)('04 §8.1: $name', ({ uri, attachments, expected }) => {
    expect(resolveHashReference(uri, plain(attachments))).toEqual(plain(expected));
  });

  test.each(references.markdown_cases)('04 §8.1: targets of $name', (item) => {
    expect(bodyTargets(plain(item.body))).toEqual(plain(item.expected_targets));
  });

  describe.each(implementations)('with the primitives of %s', (_name, primitives) => {
    const net = file.network(primitives);

    test('04 §9.1: plain content', () => {
      const { reference, plaintext_base64: content } = data.body.media;
      checkContentReference(plain(reference));
      expect(openContent(net, reference, fromBase64(content))).toEqual(fromBase64(content));
      expect(openContent(net, reference, fromBase64(content).subarray(1))).toBeUndefined();
    });

    test('04 §9.2: encrypted content', () => {
      const vector = data.attachment_encryption;
      const { reference } = vector;
      checkContentReference(plain(reference));
      const aad = contentAad(net, reference);
      expect(hex(aad)).toBe(vector.aad_utf8_hex);
      const body = bytes(vector.ciphertext_and_tag);
      expect(hex(openContent(net, reference, body) as Uint8Array)).toBe(vector.plaintext_utf8_hex);
      expect(seal(reference, fromHex(vector.plaintext_utf8_hex))).toBe(vector.ciphertext_and_tag);
    });

    test.each(references.uri_generation)('04 §8.1: reference $uri', (item) => {
      expect(sha256Text(primitives, fromBase64(item.plaintext_base64))).toBe(item.hash);
      expect(hashReferenceUri(item.hash)).toBe(item.uri);
    });

    const attachments = ['encrypted_attachment', 're_encrypted_attachment'] as const;

    test.each(attachments)('04 §10: %s keeps its hash', (name) => {
      const {
        reference,
        aad_utf8_hex: aad,
        ciphertext_and_tag: served,
        ...rest
      } = references[name];
      checkContentReference(plain(reference));
      expect(hex(contentAad(net, reference))).toBe(aad);
      const plaintext = fromBase64(rest.plaintext_base64);
      expect(openContent(net, reference, bytes(served))).toEqual(plaintext);
      expect(seal(reference, plaintext)).toBe(served);
      const [generated] = references.uri_generation;
      expect(reference.hash).toBe(generated?.hash);
    });

    function seal(reference: ContentReference, plaintext: Uint8Array): string {
      const { alg, key, nonce } = reference.encryption as NonNullable<typeof reference.encryption>;
      expect(alg).toBe('AES-256-GCM');
      const aad = contentAad(net, reference);
      const parts = { key: bytes(key), nonce: bytes(nonce), aad, data: plaintext };
      return encodeBase64url(primitives.aesGcm.seal(parts));
    }

    function signs(vector: SealedVector, input: Uint8Array, signature: string) {
      expect(hex(input)).toBe(vector.signing_input_utf8_hex);
      const key = bytes(vector.signing_private_key);
      expect(encodeBase64url(primitives.ed25519.publicKey(key))).toBe(vector.signing_public_key);
      expect(encodeBase64url(primitives.ed25519.sign(key, input))).toBe(signature);
    }

    test('04 §8.1: a private message with a reference, and what changing it does', () => {
      const vector = references.private_message;
      const { envelope, content } = vector;
      const aad = messageAad(net, envelope);
      expect(hex(aad)).toBe(vector.aad_utf8_hex);
      signs(vector, envelopeSigningInput(net, plain(envelope)), envelope.device_signature);
      const key = bytes(vector.content_key);
      const plaintext = openPayload(primitives, envelope.payload, { key, aad }) as Uint8Array;
      expect(hex(plaintext)).toBe(vector.plaintext_utf8_hex);
      const parsed = parseContent(net, plaintext, { account: envelope.to });
      expect(parsed).toEqual({ kind: 'known', name: 'message.direct', content: plain(content) });
      checkDirectMessage(net, plain(content));
      checkAttachments(plain(content.attachments));
      const [target] = bodyTargets(content.body);
      expect(resolveHashReference(target?.uri ?? '', plain(content.attachments))).toEqual({
        status: 'resolved',
        index: 0,
      });
      const other = { ...plain(envelope), payload: flipped(envelope.payload) };
      expect(openPayload(primitives, other.payload, { key, aad })).toBeUndefined();
      expect(hex(envelopeSigningInput(net, other))).not.toBe(vector.signing_input_utf8_hex);
    });

    test('04 §8.1: a group message with a reference', () => {
      const vector = references.group_message;
      const { envelope, content } = vector;
      const sender = { from: vector.sender_account, from_device_id: vector.sender_device_id };
      const { group_id, epoch, message_id, created_at, payload } = envelope;
      const context = { group_id, epoch, message_id, created_at, ...sender };
      const aad = groupMessageAad(net, context);
      expect(hex(aad)).toBe(vector.aad_utf8_hex);
      const key = deriveGroupMessageKey(net, bytes(vector.epoch_application_secret), context);
      expect(encodeBase64url(key)).toBe(vector.message_key);
      signs(vector, deviceSigningInput(net, plain(envelope)), envelope.device_signature);
      expect(payload.nonce).toBe(vector.message_nonce);
      const plaintext = openPayload(primitives, payload, { key, aad }) as Uint8Array;
      expect(hex(plaintext)).toBe(vector.plaintext_utf8_hex);
      expect(parseJson(new TextDecoder().decode(plaintext))).toEqual(plain(content));
      checkGroupMessage(net, plain(content));
      const [target] = bodyTargets(content.body);
      const resolution = resolveHashReference(target?.uri ?? '', plain(content.attachments));
      expect(resolution).toEqual({ status: 'resolved', index: 0 });
      expect(openPayload(primitives, flipped(payload), { key, aad })).toBeUndefined();
    });
  });
});

/** The payload with its first byte changed. */
function flipped<P extends { readonly ciphertext: string }>(payload: P): P {
  const { ciphertext } = payload;
  return {
    ...payload,
    ciphertext: `${ciphertext.startsWith('A') ? 'B' : 'A'}${ciphertext.slice(1)}`,
  };
}
