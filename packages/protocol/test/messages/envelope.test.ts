import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  checkEnvelope,
  checkEnvelopeCertificate,
  encodeBase64url,
  envelopeSignatures,
  envelopeSigningInput,
  hex,
  type MessageEnvelope,
  messageAad,
  newMessageId,
  verifyEnvelope,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import {
  alice,
  alicePhone,
  bob,
  codeOf,
  drawing,
  fill,
  network,
  otherNetwork,
  tampered,
  without,
} from '../contacts/accounts.ts';

/** 04 appendix A. */
const example: MessageEnvelope = {
  $type: 'svc.message.envelope',
  message_id: 'msg_AAECAwQFBgcICQoLDA0ODw',
  created_at: 1_750_000_000,
  from: 'neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo',
  from_device_id: 'dev_WquF4sVvUAQYO71d1aRWCQ',
  to: 'neo:860833102:Ng7WntSTvyrhDM1kYNYoC4buZ54XRYW6F7',
  payload: {
    alg: 'AES-256-GCM',
    nonce: 'MjIyMjIyMjIyMjIy',
    ciphertext:
      'LelIToX0Qps0W3Tw6jlCcdSaMVx8PoPhFkGldibfgzbd7dAlyaEK2_G8WG_PGrmEAiJxWH-9RLllWSeWKgWmVm9Q' +
      'bawSE34ihwu-neej-KKUEqoOqYKWvWPx9hdA-sY',
  },
  device_signature:
    '-DpQZlSfN5PmnzSBS4vYKrDJ2FdCjcvrQwh3XHjrwiWx3k0dtCoY74AemhZUQLLQUzUUaoyEKn0Urs4ze8SRAQ',
};
const check = (value: unknown) => codeOf(() => checkEnvelope(network, value));
const verify = (value: unknown, certificate = alice.certificate) =>
  codeOf(() => verifyEnvelope(network, value, certificate));
const resigned = (members: JsonObject, by = alice): MessageEnvelope => {
  const unsigned = { ...example, ...members };
  const signature = by.sign(envelopeSigningInput(network, unsigned));
  return { ...unsigned, device_signature: encodeBase64url(signature) };
};

describe('04 appendix A: the worked envelope', () => {
  test('associated data of the payload', () => {
    expect(new TextDecoder().decode(messageAad(network, example))).toBe(
      '{"$context":"neo:860833102:0x1234567890abcdef1234567890abcdef12345678",' +
        '"$type":"svc.message.aad","created_at":1750000000,' +
        '"from":"neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo",' +
        '"from_device_id":"dev_WquF4sVvUAQYO71d1aRWCQ",' +
        '"message_id":"msg_AAECAwQFBgcICQoLDA0ODw",' +
        '"to":"neo:860833102:Ng7WntSTvyrhDM1kYNYoC4buZ54XRYW6F7"}',
    );
  });

  test('signing input, signature and size', () => {
    const input = envelopeSigningInput(network, example);
    expect(hex(noblePrimitives.sha256(input))).toBe(
      'edd9d4860f6277afa41192fc19742760acd260ac23ebf3a332d2a1b6aff8630e',
    );
    expect(resigned({})).toEqual(example);
    expect(canonicalJson(example).length).toBe(568);
    expect(verify(example)).toBeUndefined();
  });
});

describe('04 §2: message IDs', () => {
  test('16 drawn bytes after the prefix', () => {
    expect(newMessageId(drawing(fill(0xff, 16)))).toBe('msg______________________w');
  });

  test.each([
    '',
    'msg_',
    'AAECAwQFBgcICQoLDA0ODw',
    'MSG_AAECAwQFBgcICQoLDA0ODw',
    'msg_AAECAwQFBgcICQoLDA0OD',
    'msg_AAECAwQFBgcICQoLDA0ODwA',
    'msg_AAECAwQFBgcICQoLDA0ODx',
    'msg_AAECAwQFBgcICQoLDA0O+w',
    'msg_AAECAwQFBgcICQoLDA0ODw=',
    'msg_AAECAwQFBgcICQoLDA0ODw\n',
    1,
    null,
  ])('%j is none', (id) => {
    expect(check({ ...example, message_id: id })).toBe('bad_request');
  });
});

describe('04 §3: the format of an envelope', () => {
  test.each(Object.keys(example))('without %s it is refused', (name) => {
    expect(check(without(example, name))).toBe('bad_request');
  });

  test.each([
    ['another type', { $type: 'svc.message.envelope.v1' }],
    ['a type in other letters', { $type: 'svc.message.Envelope' }],
    ['$context, the trusted one too', { $context: network.context }],
    ['$context null', { $context: null }],
    ['created_at as text', { created_at: '1750000000' }],
    ['created_at out of range', { created_at: 2 ** 53 }],
    ['an account of another chain', { to: example.to.replace('860833102', '860833103') }],
    ['an account with a wrong checksum', { from: example.from.replace(/.$/, 'p') }],
    ['a sending account as array', { from: [example.from] }],
    ['a device ID without prefix', { from_device_id: example.from_device_id.slice(4) }],
    ['a payload null', { payload: null }],
    ['a payload without its tag', { payload: { ...example.payload, ciphertext: 'AAAA' } }],
    [
      'a payload with padding',
      { payload: { ...example.payload, ciphertext: `${'A'.repeat(42)}==` } },
    ],
    ['a payload as text', { payload: example.payload.ciphertext }],
    ['a short signature', { device_signature: example.device_signature.slice(4) }],
    ['null in an unknown member', { x: null }],
    ['null deep in an unknown member', { x: [{ y: [null] }] }],
    ['null in an unknown member of the payload', { payload: { ...example.payload, x: null } }],
  ])('%s is refused', (_name, change) => {
    expect(check({ ...example, ...change })).toBe('bad_request');
  });

  test('a ciphertext without a payload does not replace it', () => {
    const stray = { ...without(example, 'payload'), ciphertext: example.payload.ciphertext };
    expect(check(stray)).toBe('bad_request');
  });

  test('unknown members are kept and signed', () => {
    const envelope = resigned({ x: { y: [1] } });
    expect(verify(envelope)).toBeUndefined();
    expect(verify({ ...envelope, x: { y: [2] } })).toBe('invalid_signature');
    expect(verify(without(envelope, 'x'))).toBe('invalid_signature');
  });

  test('created_at may be any safe integer here', () => {
    expect(check({ ...example, created_at: -1 })).toBeUndefined();
    expect(check({ ...example, created_at: Number.MAX_SAFE_INTEGER })).toBeUndefined();
  });

  /** The envelope with a member that makes it so many bytes of Canonical JSON. */
  function sized(bytes: number, unit = 'x') {
    const rest = bytes - canonicalJson({ ...example, x: '' }).length;
    const width = new TextEncoder().encode(unit).length;
    return { ...example, x: unit.repeat(rest / width) + 'x'.repeat(rest % width) };
  }

  test('262,144 bytes pass, one more does not, counted in UTF-8', () => {
    expect(check(sized(262_143))).toBeUndefined();
    expect(check(sized(262_144))).toBeUndefined();
    expect(check(sized(262_145))).toBe('request_too_large');
    expect(check(sized(262_144, '😀'))).toBeUndefined();
    expect(check(sized(262_145, '😀'))).toBe('request_too_large');
  });

  test('structure comes before size', () => {
    expect(check({ ...sized(262_145), to: 1 })).toBe('bad_request');
  });
});

describe('04 §3: the sender', () => {
  const binding = (certificate = alice.certificate) =>
    codeOf(() => checkEnvelopeCertificate(network, example, certificate));

  test('the certificate must be of the account and derive the device', () => {
    expect(binding()).toBeUndefined();
    expect(binding(bob.certificate)).toBe('bad_request');
    expect(binding(alicePhone.certificate)).toBe('bad_request');
    expect(verify(example, bob.certificate)).toBe('bad_request');
    expect(verify(example, alicePhone.certificate)).toBe('bad_request');
  });

  test('claiming another device or account breaks the binding before the signature', () => {
    expect(verify({ ...example, from_device_id: alicePhone.deviceId })).toBe('bad_request');
    expect(verify({ ...example, from: bob.account })).toBe('bad_request');
    const posed = resigned({ from_device_id: alicePhone.deviceId });
    expect(verify(posed, alicePhone.certificate)).toBe('invalid_signature');
  });

  test.each([
    ['message_id', 'msg_AAECAwQFBgcICQoLDA0OEA'],
    ['created_at', 1_750_000_001],
    ['to', alice.account],
    ['payload', { ...example.payload, nonce: tampered(example.payload.nonce) }],
    ['payload', { ...example.payload, ciphertext: tampered(example.payload.ciphertext) }],
    ['payload', { ...example.payload, x: 1 }],
    ['device_signature', tampered(example.device_signature)],
  ])('changing %s breaks the signature', (name, value) => {
    expect(verify({ ...example, [name]: value })).toBe('invalid_signature');
  });

  test('the format comes first', () => {
    expect(verify({ ...example, to: 1 })).toBe('bad_request');
    const { device_signature: signature } = example;
    const forged = { ...example, device_signature: tampered(signature), x: null };
    expect(verify(forged)).toBe('bad_request');
  });

  test('both signatures of the certificate count', () => {
    const { certificate } = alice;
    for (const name of ['device_signature', 'account_signature'] as const) {
      const forged = { ...certificate, [name]: tampered(certificate[name]) };
      expect(verify(example, forged)).toBe('invalid_signature');
    }
  });

  test('an expired certificate still proves the sender', () => {
    expect(verify(example)).toBeUndefined();
    expect(envelopeSignatures(network, example, alice.certificate).length).toBe(1);
  });

  test('another registry of the same chain: nothing verifies', () => {
    const there = () => verifyEnvelope(otherNetwork, example, alice.certificate);
    expect(codeOf(there)).toBe('invalid_signature');
  });
});
