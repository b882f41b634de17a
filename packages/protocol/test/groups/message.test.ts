import { describe, expect, test } from 'vitest';
import { verifySignatures } from '../../src/crypto/index.ts';
import {
  checkGroupContent,
  checkGroupMemberNicknameUpdate,
  checkGroupMessage,
  checkGroupMessageEnvelope,
  deriveGroupMessageKey,
  deviceSignatures,
  encodeBase64url,
  type GroupMessageEnvelope,
  openGroupMessage,
  readGroupContent,
  sealGroupMessage,
  signAsDevice,
  utf8,
  utf8Length,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import { alice, bob, codeOf, counting, fill, groupId, network, now } from './fixture.ts';

const applicationSecret = fill(9, 32);
const body = { content_type: 'text/plain', text: 'hello' };
const content = { $type: network.type('group.message.content'), body };
const seal = (changes: object = {}): GroupMessageEnvelope =>
  sealGroupMessage(network, {
    group_id: groupId,
    from: alice,
    epoch: 3,
    applicationSecret,
    createdAt: now,
    content,
    random: counting(),
    ...changes,
  });
const envelope = seal();
const open = (changes: JsonObject = {}, sender: { account: string; deviceId: string } = alice) =>
  openGroupMessage(
    network,
    { ...envelope, ...changes },
    { applicationSecret, sender: { account: sender.account, deviceId: sender.deviceId } },
  );

describe('05 §3.9: sealing and opening', () => {
  test('a sealed envelope verifies, opens and reads', () => {
    expect(() => checkGroupMessageEnvelope(network, envelope)).not.toThrow();
    const checks = deviceSignatures(network, envelope, alice.certificate);
    expect(() => verifySignatures(network.primitives, checks, 'x')).not.toThrow();
    const plaintext = open() as Uint8Array;
    expect(readGroupContent(network, plaintext, 5)).toEqual({ kind: 'message', content });
  });

  test('the plaintext is bound to group, epoch, message, time, account and device', () => {
    const id = `msg_${encodeBase64url(fill(3, 16))}`;
    expect(open({ group_id: `grp_${'A'.repeat(22)}` })).toBeUndefined();
    expect(open({ epoch: 4 })).toBeUndefined();
    expect(open({ message_id: id })).toBeUndefined();
    expect(open({ created_at: now + 1 })).toBeUndefined();
    expect(open({}, { ...alice, account: bob.account })).toBeUndefined();
    expect(open({}, { ...alice, deviceId: bob.deviceId })).toBeUndefined();
    expect(open({ extension: 1 })).toBeDefined();
  });

  test('two members with one message ID have different keys', () => {
    const context = { ...envelope, from: alice.account, from_device_id: alice.deviceId };
    const key = deriveGroupMessageKey(network, applicationSecret, context);
    const other = { ...context, from: bob.account, from_device_id: bob.deviceId };
    expect(deriveGroupMessageKey(network, applicationSecret, other)).not.toEqual(key);
    expect(key).toHaveLength(32);
  });

  test('message ID and nonce are fresh', () => {
    const random = counting();
    const [first, second] = [seal({ random }), seal({ random })];
    expect(first.message_id).not.toBe(second.message_id);
    expect(first.payload.nonce).not.toBe(second.payload.nonce);
    expect(seal({ messageId: first.message_id }).message_id).toBe(first.message_id);
  });

  test('signature and AEAD are separate conditions: each can fail alone', () => {
    const { device_signature: _, ...unsigned } = envelope;
    const resigned = signAsDevice(network, unsigned, bob);
    const checks = deviceSignatures(network, resigned, bob.certificate);
    expect(() => verifySignatures(network.primitives, checks, 'x')).not.toThrow();
    expect(open({}, bob)).toBeUndefined();
    const wrong = deviceSignatures(network, envelope, bob.certificate);
    expect(codeOf(() => verifySignatures(network.primitives, wrong, 'x'))).toBe(
      'invalid_signature',
    );
    expect(open()).toBeDefined();
  });
});

describe('05 §4.12: the envelope', () => {
  const check = (change: JsonObject) => () =>
    checkGroupMessageEnvelope(network, { ...envelope, ...change });

  test('each member is required and has its form', () => {
    for (const name of Object.keys(envelope)) {
      const rest = Object.entries(envelope).filter(([member]) => member !== name);
      const missing = () => checkGroupMessageEnvelope(network, Object.fromEntries(rest));
      expect(codeOf(missing)).toBe('bad_request');
      expect(codeOf(check({ [name]: null }))).toBe('bad_request');
    }
    const { payload } = envelope;
    const wrong: JsonObject[] = [
      { $type: network.type('group.message.v1') },
      { message_id: 'msg_x' },
      { epoch: -1 },
      { epoch: 1.5 },
      { created_at: '1' },
      { payload: { ...payload, alg: 'AES-128-GCM' } },
      { payload: { ...payload, nonce: encodeBase64url(fill(1, 11)) } },
      { payload: { ...payload, ciphertext: encodeBase64url(fill(1, 15)) } },
      { payload: { ...payload, $context: 'x' } },
      { $context: network.context },
    ];
    for (const change of wrong) expect(codeOf(check(change))).toBe('bad_request');
    const tagOnly = { ...payload, ciphertext: encodeBase64url(fill(1, 16)) };
    expect(check({ payload: tagOnly })).not.toThrow();
  });

  test('262,144 bytes of Canonical JSON pass, one more does not; unknown members count', () => {
    const padded = (bytes: number) => {
      const empty = { ...envelope, padding: '' };
      const size = utf8Length(canonicalJson(empty));
      return { ...empty, padding: 'x'.repeat(bytes - size) };
    };
    expect(() => checkGroupMessageEnvelope(network, padded(262_144))).not.toThrow();
    const over = () => checkGroupMessageEnvelope(network, padded(262_145));
    expect(codeOf(over)).toBe('request_too_large');
    const text = 'x'.repeat(262_144);
    const large = () => seal({ content: { ...content, body: { ...body, text } } });
    expect(codeOf(large)).toBe('request_too_large');
  });
});

describe('05 §4.13: plaintext', () => {
  const attachment = (hash: number) => ({
    uri: 'https://example.com/x',
    hash: `sha256:${encodeBase64url(fill(hash, 32))}`,
    content_type: 'image/png',
    size: 1,
  });
  const message = (members: JsonObject, sequence?: number) => () =>
    checkGroupMessage(network, { $type: content.$type, ...members }, sequence);

  test('a message has a body or attachments, and no attachment twice', () => {
    expect(message({ body })).not.toThrow();
    expect(message({ attachments: [attachment(1), attachment(2)] })).not.toThrow();
    expect(message({ body, attachments: [] })).not.toThrow();
    for (const members of [
      {},
      { attachments: [] },
      { body: { ...body, text: ' ' } },
      { body: { ...body, content_type: 'text' } },
      { body: null, attachments: [attachment(1)] },
      { attachments: [attachment(1), attachment(1)] },
      { attachments: [{ ...attachment(1), uri: 'http://example.com' }] },
      { body, $context: 'x' },
    ]) {
      expect(codeOf(message(members))).toBe('bad_request');
    }
  });

  test('a reply names a positive sequence before its own', () => {
    expect(message({ body, reply_to_seq: 4 }, 5)).not.toThrow();
    expect(message({ body, reply_to_seq: 4 })).not.toThrow();
    for (const reply_to_seq of [0, -1, 5, 6, 1.5]) {
      expect(codeOf(message({ body, reply_to_seq }, 5))).toBe('bad_request');
    }
  });

  test('a nickname is a text of 1 to 256 bytes, or null; null is allowed nowhere else', () => {
    const $type = network.type('group.member.nickname.update');
    const nickname =
      (value: unknown, more: JsonObject = {}) =>
      () =>
        checkGroupMemberNicknameUpdate(network, { $type, nickname: value, ...more });
    expect(nickname(null)).not.toThrow();
    expect(nickname('n'.repeat(256), { account: 'x', role: 'owner' })).not.toThrow();
    for (const value of ['', ' \u3000', 'n'.repeat(257), 1, undefined]) {
      expect(codeOf(nickname(value))).toBe('bad_request');
    }
    expect(codeOf(nickname('x', { future: null }))).toBe('bad_request');
    expect(codeOf(nickname('x', { $context: 'x' }))).toBe('bad_request');
  });

  test('dispatch is by the complete type; unknown ones are kept, missing ones refused', () => {
    const other = { $type: `${content.$type}.v2`, anything: [1] };
    expect(checkGroupContent(network, other)).toEqual({ kind: 'unknown', content: other });
    const nameless = [{ type: content.$type, body }, { $type: 1 }, [], 'x', null];
    for (const value of nameless) {
      expect(codeOf(() => checkGroupContent(network, value))).toBe('bad_request');
    }
    const bound = () => checkGroupContent(network, { ...other, $context: 'x' });
    expect(codeOf(bound)).toBe('bad_request');
  });

  test('the bytes are JSON of chapter 01', () => {
    const read = (text: string) => () => readGroupContent(network, utf8(text));
    expect(read(JSON.stringify(content))).not.toThrow();
    const twice = `{"$type":"${content.$type}","$type":"x"}`;
    for (const text of ['', '{', '[1]', twice, `${JSON.stringify(content)} x`]) {
      expect(codeOf(read(text))).toBe('bad_request');
    }
    expect(codeOf(() => readGroupContent(network, fill(0xff, 3)))).toBe('bad_request');
  });
});
