import { describe, expect, test } from 'vitest';
import {
  checkKeyBoxes,
  encodeBase64url,
  hex,
  type MessageEnvelope,
  messageAad,
  Network,
  openKeyBox,
  openMessage,
  openPayload,
  sealMessage,
  utf8,
} from '../../src/index.ts';
import { canonicalJson } from '../../src/json/index.ts';
import { keyBoxInfo, sealKeyBox } from '../../src/messages/key-box.ts';
import { unwrapKey, wrapKey } from '../../src/messages/key-wrap.ts';
import {
  alice,
  alicePhone,
  bob,
  bobPhone,
  carol,
  codeOf,
  counting,
  drawing,
  fill,
  network,
  now,
  otherNetwork,
  type TestDevice,
  tampered,
  without,
} from '../contacts/accounts.ts';
import { implementations } from '../crypto/implementations.ts';

const content = {
  $type: 'svc.message.direct',
  body: { content_type: 'text/plain', text: 'hi' },
};
const contentKey = fill(0x31);
const message = sealMessage(network, {
  from: alice,
  to: bob.account,
  createdAt: now,
  content,
  recipients: [bob.certificate, bobPhone.certificate],
  senders: [alice.certificate, alicePhone.certificate],
  random: counting(),
});
const { envelope } = message;

describe.each(implementations)('04 appendix A: the worked message, on %s', (_name, primitives) => {
  const { context } = network;
  const net = new Network({ context, primitives });
  const random = drawing(
    Uint8Array.from({ length: 16 }, (_, index) => index),
    contentKey,
    fill(0x32, 12),
    fill(0x34),
    fill(0x33, 12),
  );
  const worked = sealMessage(net, {
    from: alice,
    to: bob.account,
    createdAt: 1_750_000_000,
    content,
    recipients: [bob.certificate],
    random,
  });
  const enc = '_8lRqm8voDCW0dG1eXNbL2-EAZ_i9heqZf89aHBfJSc';

  test('devices of the example', () => {
    expect([alice.deviceId, bob.deviceId]).toEqual([
      'dev_WquF4sVvUAQYO71d1aRWCQ',
      'dev_LGi9NgK2EbwUKxumZuu1Xw',
    ]);
  });

  test('envelope', () => {
    expect(worked.envelope).toEqual({
      $type: 'svc.message.envelope',
      message_id: 'msg_AAECAwQFBgcICQoLDA0ODw',
      created_at: 1_750_000_000,
      from: alice.account,
      from_device_id: alice.deviceId,
      to: bob.account,
      payload: {
        alg: 'AES-256-GCM',
        nonce: 'MjIyMjIyMjIyMjIy',
        ciphertext:
          'LelIToX0Qps0W3Tw6jlCcdSaMVx8PoPhFkGldibfgzbd7dAlyaEK2_G8WG_PGrmEAiJxWH-9RLllWSeW' +
          'KgWmVm9QbawSE34ihwu-neej-KKUEqoOqYKWvWPx9hdA-sY',
      },
      device_signature:
        '-DpQZlSfN5PmnzSBS4vYKrDJ2FdCjcvrQwh3XHjrwiWx3k0dtCoY74AemhZUQLLQUzUUaoyEKn0Urs4ze8SRAQ',
    });
  });

  test('box', () => {
    expect(worked.recipient_boxes).toEqual([
      {
        device_id: bob.deviceId,
        alg: 'X25519-HKDF-SHA256-AES256GCM',
        enc,
        sealed_key:
          'MzMzMzMzMzMzMzMzqilTBVirWdFBuIF2Jr3PHBNDG5aqzppxnVpIZJnG_cUmt8LlUNNwZUDP60tZTr1J',
      },
    ]);
    expect(Object.hasOwn(worked, 'sender_boxes')).toBe(false);
  });

  test('every step of the box', () => {
    const info = keyBoxInfo(net, {
      envelope: worked.envelope,
      account: bob.account,
      deviceId: bob.deviceId,
      enc,
    });
    expect(new TextDecoder().decode(info)).toBe(
      '{"$context":"neo:860833102:0x1234567890abcdef1234567890abcdef12345678",' +
        '"$type":"svc.message.key_box.aad",' +
        '"account":"neo:860833102:Ng7WntSTvyrhDM1kYNYoC4buZ54XRYW6F7",' +
        '"alg":"X25519-HKDF-SHA256-AES256GCM","created_at":1750000000,' +
        '"device_id":"dev_LGi9NgK2EbwUKxumZuu1Xw",' +
        '"enc":"_8lRqm8voDCW0dG1eXNbL2-EAZ_i9heqZf89aHBfJSc",' +
        '"from":"neo:860833102:NUz6PKTAM7NbPJzkKJFNay3VckQtcDkgWo",' +
        '"from_device_id":"dev_WquF4sVvUAQYO71d1aRWCQ",' +
        '"message_id":"msg_AAECAwQFBgcICQoLDA0ODw","payload_alg":"AES-256-GCM"}',
    );
    const secret = primitives.x25519.shared(fill(0x34), primitives.x25519.publicKey(fill(0x22)));
    expect(hex(secret as Uint8Array)).toBe(
      'a5fe9a8cd033c4eaf942667e7c3a486ef710a64661a04b134402545a1b6fcc2b',
    );
    const salt = net.salt('keybox-salt/v1');
    expect(hex(salt)).toBe('36ccb37c9f50f9bf89f7bdc0c6a6b5e6d2eb15d3bca903398aee2a3052f42335');
    const parts = { secret: secret as Uint8Array, salt, info, length: 32 };
    expect(hex(primitives.hkdfSha256(parts))).toBe(
      '028f2bbfc49525a5cd8bb0812a7d1137a7cc3e1d278d3a48831fce39a64b3067',
    );
  });
});

const readers: [string, TestDevice, 'recipient_boxes' | 'sender_boxes', number][] = [
  ['a recipient device', bob, 'recipient_boxes', 0],
  ['another recipient device', bobPhone, 'recipient_boxes', 1],
  ['the sending device', alice, 'sender_boxes', 0],
  ['another device of the sender', alicePhone, 'sender_boxes', 1],
];
const open = (reader: TestDevice, set: 'recipient_boxes' | 'sender_boxes', at: number) => ({
  envelope,
  keyBox: message[set]?.[at] as NonNullable<typeof message.sender_boxes>[number],
  certificate: alice.certificate,
  account: reader.account,
  deviceId: reader.deviceId,
  encryptionPrivateKey: reader.encryptionPrivateKey,
});
const opening = (input: Parameters<typeof openMessage>[1]) =>
  codeOf(() => openMessage(network, input));

describe('04 §6: sealing and opening', () => {
  test.each(readers)('%s reads it with its own box', (_name, reader, set, at) => {
    const plaintext = openMessage(network, open(reader, set, at));
    expect(new TextDecoder().decode(plaintext)).toBe(canonicalJson(content));
  });

  test('the box of another device, account or set does not open', () => {
    const input = open(bob, 'recipient_boxes', 0);
    expect(opening({ ...input, keyBox: open(bobPhone, 'recipient_boxes', 1).keyBox })).toBe(
      'bad_request',
    );
    expect(opening({ ...input, deviceId: bobPhone.deviceId })).toBe('bad_request');
    expect(opening({ ...input, account: alice.account })).toBe('bad_request');
    expect(opening({ ...input, encryptionPrivateKey: fill(9) })).toBe('bad_request');
    const renamed = { ...input.keyBox, device_id: bobPhone.deviceId };
    expect(opening({ ...open(bobPhone, 'recipient_boxes', 1), keyBox: renamed })).toBe(
      'bad_request',
    );
  });

  test('04 §6.3: certificate and signature come before the box', () => {
    const input = open(bob, 'recipient_boxes', 0);
    const box = { ...input.keyBox, sealed_key: tampered(input.keyBox.sealed_key) };
    const forged = { ...envelope, device_signature: tampered(envelope.device_signature) };
    expect(opening({ ...input, keyBox: box, envelope: forged })).toBe('invalid_signature');
    expect(opening({ ...input, keyBox: box })).toBe('bad_request');
    expect(opening({ ...input, certificate: carol.certificate })).toBe('bad_request');
  });

  test('a box of another message does not open, nor does a payload under another key', () => {
    const other = sealMessage(network, {
      from: alice,
      to: bob.account,
      createdAt: now,
      content,
      recipients: [bob.certificate],
      random: drawing(fill(1, 16), contentKey, fill(2, 12), fill(3), fill(4, 12)),
    });
    const input = open(bob, 'recipient_boxes', 0);
    const [box] = other.recipient_boxes;
    if (box === undefined) throw new Error('a box was made');
    expect(opening({ ...input, keyBox: box })).toBe('bad_request');
    const wrong = sealKeyBox(network, {
      envelope,
      certificate: bob.certificate,
      contentKey: fill(0x30),
      random: counting(),
    });
    expect(opening({ ...input, keyBox: wrong })).toBe('bad_request');
  });

  test('a malformed box is refused', () => {
    const input = open(bob, 'recipient_boxes', 0);
    const box = { ...input.keyBox, alg: 'X25519' } as never;
    expect(opening({ ...input, keyBox: box })).toBe('bad_request');
  });

  test('04 §6.4: the same bytes under any changed context fail on their own', () => {
    const key = openKeyBox(network, {
      envelope,
      account: bob.account,
      box: open(bob, 'recipient_boxes', 0).keyBox,
      encryptionPrivateKey: bob.encryptionPrivateKey,
    }) as Uint8Array;
    const opens = (aad: Uint8Array) =>
      openPayload(network.primitives, envelope.payload, { key, aad }) !== undefined;
    expect(opens(messageAad(network, envelope))).toBe(true);
    const changes: Partial<MessageEnvelope>[] = [
      { message_id: 'msg_AAECAwQFBgcICQoLDA0ODw' },
      { created_at: now + 1 },
      { from: carol.account },
      { from_device_id: alicePhone.deviceId },
      { to: carol.account },
    ];
    for (const change of changes) {
      expect(opens(messageAad(network, { ...envelope, ...change }))).toBe(false);
    }
    expect(opens(messageAad(otherNetwork, envelope))).toBe(false);
    const chain = network.context.replace('860833102', '860833103');
    const { primitives } = network;
    expect(opens(messageAad(new Network({ context: chain, primitives }), envelope))).toBe(false);
    const { message_id, created_at, from, from_device_id, to } = envelope;
    const members = { message_id, created_at, from, from_device_id, to };
    for (const $type of ['svc.message.aad.v2', 'svc.message.envelope']) {
      expect(opens(network.bytes({ ...members, $type }))).toBe(false);
    }
    expect(opens(network.bytes(members))).toBe(false);
    expect(opens(network.bytes({ ...members, $type: 'svc.message.aad' }))).toBe(true);
  });

  test('unknown members of the envelope are signed and not part of the associated data', () => {
    const extended = { ...envelope, x: 1 };
    expect(messageAad(network, extended)).toEqual(messageAad(network, envelope));
  });
});

describe('04 §5: what a sender may build', () => {
  const seal = (changes: object) =>
    codeOf(() =>
      sealMessage(network, {
        from: alice,
        to: bob.account,
        createdAt: now,
        content,
        recipients: [bob.certificate],
        random: counting(),
        ...changes,
      }),
    );

  test('1 to 8 different devices of the target', () => {
    expect(seal({})).toBeUndefined();
    expect(seal({ recipients: [] })).toBe('bad_request');
    expect(seal({ recipients: [bob.certificate, bob.certificate] })).toBe('bad_request');
    expect(seal({ recipients: [carol.certificate] })).toBe('bad_request');
    expect(seal({ recipients: [bob.certificate, alice.certificate] })).toBe('bad_request');
  });

  test('sender boxes for own devices only, and none to oneself', () => {
    expect(seal({ senders: [alice.certificate] })).toBeUndefined();
    expect(seal({ senders: [] })).toBeUndefined();
    expect(seal({ senders: [bob.certificate] })).toBe('bad_request');
    expect(seal({ senders: [alice.certificate, alice.certificate] })).toBe('bad_request');
    const self = { to: alice.account, recipients: [alicePhone.certificate] };
    expect(seal(self)).toBeUndefined();
    expect(seal({ ...self, senders: [alice.certificate] })).toBe('bad_request');
  });

  test('a given message ID is used, a malformed one refused', () => {
    const made = sealMessage(network, {
      from: alice,
      to: bob.account,
      createdAt: now,
      messageId: 'msg_AAECAwQFBgcICQoLDA0ODw',
      content,
      recipients: [bob.certificate],
      random: counting(),
    });
    expect(made.envelope.message_id).toBe('msg_AAECAwQFBgcICQoLDA0ODw');
    expect(seal({ messageId: 'msg_x' })).toBe('bad_request');
  });

  test('an envelope that becomes too large is refused', () => {
    const sized = (length: number) => ({ content: { $type: 'x', text: 'x'.repeat(length) } });
    expect(seal(sized(195_000))).toBeUndefined();
    expect(seal(sized(197_000))).toBe('request_too_large');
  });

  test('every message draws its own key, nonces and ephemeral keys', () => {
    const drawn: string[] = [];
    const source = counting();
    const random = (length: number) => {
      const bytes = source(length);
      drawn.push(hex(bytes));
      return bytes;
    };
    seal({ senders: [alice.certificate, alicePhone.certificate], random });
    expect(drawn.length).toBe(1 + 1 + 1 + 3 * 2);
    expect(new Set(drawn).size).toBe(drawn.length);
  });
});

describe('04 §5: sets of boxes', () => {
  const box = message.recipient_boxes[0] as (typeof message.recipient_boxes)[number];
  const check = (value: unknown) => codeOf(() => checkKeyBoxes(value, 'recipient_boxes'));
  const boxes = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      ...box,
      device_id: `dev_${encodeBase64url(fill(index, 16))}`,
    }));

  test('1 and 8 pass, 0 and 9 do not', () => {
    expect([check(boxes(1)), check(boxes(8))]).toEqual([undefined, undefined]);
    expect([check(boxes(0)), check(boxes(9))]).toEqual(['bad_request', 'bad_request']);
  });

  test('a device twice is refused, whatever else differs', () => {
    expect(check([box, { ...box, enc: encodeBase64url(fill(7)) }])).toBe('bad_request');
  });

  test.each(Object.keys(box))('a box without %s is refused', (name) => {
    expect(check([without(box, name)])).toBe('bad_request');
  });

  test.each([
    ['device_id', 'dev_'],
    ['alg', 'X25519-HKDF-SHA256-AES128GCM'],
    ['enc', encodeBase64url(fill(1, 31))],
    ['enc', encodeBase64url(fill(1, 33))],
    ['sealed_key', encodeBase64url(fill(1, 59))],
    ['sealed_key', encodeBase64url(fill(1, 61))],
    ['sealed_key', null],
  ])('%s %j is refused', (name, value) => {
    expect(check([{ ...box, [name]: value }])).toBe('bad_request');
  });

  test.each([null, undefined, {}, 'boxes', [null], [[]]])('%j is no set', (value) => {
    expect(check(value)).toBe('bad_request');
  });
});

describe.each(implementations)('01 §5.3, 04 §6.2: wrapping keys, on %s', (_name, primitives) => {
  const { context } = network;
  const net = new Network({ context, primitives });
  const p = 2n ** 255n - 19n;
  /** 01 §5.3: every one of these gives a shared secret of zeros. */
  const points = [0n, 1n, p - 1n, p, p + 1n, 2n ** 255n, 2n ** 255n + 1n].map((value) =>
    Uint8Array.from(Buffer.from(value.toString(16).padStart(64, '0'), 'hex')).reverse(),
  );
  const parts = { info: () => utf8('info'), key: fill(1) };

  test.each(points.map((point) => encodeBase64url(point)))(
    'no box is made for or opened with %s',
    (publicKey) => {
      const wrap = () => wrapKey(net, { ...parts, publicKey, random: counting() });
      expect(codeOf(wrap)).toBe('bad_request');
      const sealed = encodeBase64url(fill(1, 60));
      const input = { privateKey: fill(0x22), enc: publicKey, sealed, info: utf8('info') };
      expect(unwrapKey(net, input)).toBeUndefined();
    },
  );

  test('what was wrapped unwraps, for the same context and key only', () => {
    const publicKey = encodeBase64url(primitives.x25519.publicKey(fill(0x22)));
    const { enc, sealed } = wrapKey(net, { ...parts, publicKey, random: counting() });
    const input = { privateKey: fill(0x22), enc, sealed, info: utf8('info') };
    expect(hex(unwrapKey(net, input) as Uint8Array)).toBe(hex(fill(1)));
    for (const change of [
      { privateKey: fill(0x23) },
      { enc: encodeBase64url(primitives.x25519.publicKey(fill(5))) },
      { enc: 'AA' },
      { sealed: tampered(sealed) },
      { sealed: sealed.slice(0, -4) },
      { info: utf8('other') },
    ]) {
      expect(unwrapKey(net, { ...input, ...change })).toBeUndefined();
    }
  });

  test('a sealed key of another length does not unwrap, though it authenticates', () => {
    const publicKey = encodeBase64url(primitives.x25519.publicKey(fill(0x22)));
    for (const length of [0, 31, 33]) {
      const other = { ...parts, key: fill(1, length), publicKey, random: counting() };
      const { enc, sealed } = wrapKey(net, other);
      const input = { privateKey: fill(0x22), enc, sealed, info: utf8('info') };
      expect(unwrapKey(net, input)).toBeUndefined();
    }
  });

  test('a public key that is no 32 bytes is refused', () => {
    for (const publicKey of ['', 'AA', '?', encodeBase64url(fill(1, 33))]) {
      const wrap = () => wrapKey(net, { ...parts, publicKey, random: counting() });
      expect(codeOf(wrap)).toBe('bad_request');
    }
  });
});
