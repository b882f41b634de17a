import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  type ContactInvite,
  checkInvite,
  checkInviteUse,
  decodeInvite,
  encodeBase64url,
  encodeInvite,
  inviteSignatures,
  inviteSigningInput,
  Network,
  signInvite,
  utf8,
  verifyInvite,
} from '../../src/index.ts';
import { canonicalBytes, canonicalJson } from '../../src/json/index.ts';
import {
  alice,
  bob,
  bobOld,
  bobState,
  carolState,
  codeOf,
  network,
  now,
  otherNetwork,
  stateOf,
  tampered,
  without,
} from './accounts.ts';

const expiresAt = 1_760_000_000;
/** 03 appendix A. */
const example: ContactInvite = {
  $type: 'svc.contact.invite',
  inviter: 'neo:860833102:Ng7WntSTvyrhDM1kYNYoC4buZ54XRYW6F7',
  signer_device_id: 'dev_LGi9NgK2EbwUKxumZuu1Xw',
  expires_at: expiresAt,
  device_signature:
    '8HmXEhAUhXqvEKl7asS9xe3038gUYsDFBVzl4YvEOAR0XKN2YZKclaqrEwudvFRbwb1CndFO-414k3-aR2ijCA',
};
const check = (value: unknown) => codeOf(() => checkInvite(network, value));
const verify = (value: unknown, expected = {}) =>
  codeOf(() => verifyInvite(network, value, { state: bobState, now, ...expected }));

describe('03 appendix A: the worked invite', () => {
  test('bytes to sign', () => {
    expect(new TextDecoder().decode(inviteSigningInput(network, example))).toBe(
      '{"$context":"neo:860833102:0x1234567890abcdef1234567890abcdef12345678",' +
        '"$type":"svc.contact.invite","expires_at":1760000000,' +
        '"inviter":"neo:860833102:Ng7WntSTvyrhDM1kYNYoC4buZ54XRYW6F7",' +
        '"signer_device_id":"dev_LGi9NgK2EbwUKxumZuu1Xw"}',
    );
  });

  test('signature', () => {
    expect(signInvite(network, bob, { expires_at: expiresAt })).toEqual(example);
    expect(verify(example)).toBeUndefined();
  });
});

describe('03 §14: ContactInvite', () => {
  test.each(['$type', 'inviter', 'signer_device_id', 'expires_at', 'device_signature'])(
    'without %s it is refused',
    (name) => {
      expect(check(without(example, name))).toBe('bad_request');
    },
  );

  test.each([
    ['another type', { $type: 'svc.friend.invite' }],
    ['a type in other letters', { $type: 'svc.Contact.invite' }],
    ['$context', { $context: network.context }],
    ['a malformed account', { inviter: 'neo:860833102:NUz6' }],
    ['a wrong checksum', { inviter: example.inviter.replace(/.$/, '8') }],
    ['a malformed device', { signer_device_id: 'dev_' }],
    ['a text as expires_at', { expires_at: `${expiresAt}` }],
    ['null as expires_at', { expires_at: null }],
    ['a short signature', { device_signature: example.device_signature.slice(1) }],
    ['null in an unknown member', { x: [null] }],
  ])('%s is refused', (_name, change) => {
    expect(check({ ...example, ...change })).toBe('bad_request');
  });

  test('a type that was signed as such is refused all the same, and never rewritten', () => {
    const unsigned = { ...without(example, 'device_signature'), $type: 'svc.friend.invite' };
    const signature = bob.sign(network.bytes(unsigned as never));
    const former = { ...unsigned, device_signature: encodeBase64url(signature) };
    expect(verify(former)).toBe('bad_request');
    expect(verify({ ...former, $type: 'svc.contact.invite' })).toBe('invalid_signature');
  });

  test('expires_at must be later than now', () => {
    expect(verify(example, { now: expiresAt - 1 })).toBeUndefined();
    expect(verify(example, { now: expiresAt })).toBe('forbidden');
  });

  test('offline: account and period', () => {
    const use = (expected: { inviter?: string; now: number }) =>
      codeOf(() => checkInviteUse(example, expected));
    expect(use({ now })).toBeUndefined();
    expect(use({ inviter: bob.account, now })).toBeUndefined();
    expect(use({ inviter: alice.account, now })).toBe('forbidden');
    expect(use({ now: expiresAt })).toBe('forbidden');
  });

  test('a signer that is removed, expired or of another state is forbidden', async () => {
    expect(verify(example, { state: await stateOf(0x02, []) })).toBe('forbidden');
    expect(verify(example, { state: carolState })).toBe('forbidden');
    const mixed = { ...carolState, certificates: bobState.certificates };
    expect(verify(example, { state: mixed })).toBe('forbidden');
    const old = signInvite(network, bobOld, { expires_at: expiresAt });
    expect(verify(old)).toBe('forbidden');
    expect(verify(old, { now: now - 1 })).toBeUndefined();
  });

  test('other devices coming and going leave it alone', async () => {
    expect(verify(example, { state: await stateOf(0x02, [bob], 9) })).toBeUndefined();
  });

  test('a bad signature, and one made for another network', () => {
    const forged = { ...example, device_signature: tampered(example.device_signature) };
    expect(verify(forged)).toBe('invalid_signature');
    expect(codeOf(() => verifyInvite(otherNetwork, example, { state: bobState, now }))).toBe(
      'forbidden',
    );
    const checks = inviteSignatures(network, example, { state: bobState, now });
    expect(checks.length).toBe(1);
  });

  test('what is no invite is not signed', () => {
    const sign = (end: unknown) =>
      codeOf(() => signInvite(network, bob, { expires_at: end as number }));
    expect([sign(expiresAt), sign(null), sign('soon')]).toEqual([
      undefined,
      'bad_request',
      'bad_request',
    ]);
  });

  test('unknown members are signed', () => {
    const invite = signInvite(network, bob, { expires_at: expiresAt, x: 1 } as never);
    expect(verify(invite)).toBeUndefined();
    expect(verify({ ...invite, x: 2 })).toBe('invalid_signature');
  });
});

describe('03 §21: an invite as one word of text', () => {
  const text = encodeInvite(network, example);

  test('prefix and base64url, and back', () => {
    expect(text).toMatch(/^svc-invite:[A-Za-z0-9_-]+$/);
    expect(decodeInvite(network, text)).toEqual(example);
  });

  test('the prefix carries the service word', () => {
    const { context } = network;
    const other = new Network({ context, word: 'meshline', primitives: noblePrimitives });
    const invite = signInvite(other, bob, { expires_at: expiresAt });
    expect(encodeInvite(other, invite)).toMatch(/^meshline-invite:/);
    expect(codeOf(() => decodeInvite(network, encodeInvite(other, invite)))).toBe('bad_request');
  });

  const packed = (content: Uint8Array) => `svc-invite:${encodeBase64url(content)}`;
  test.each([
    ['nothing', ''],
    ['the prefix alone', 'svc-invite:'],
    ['another prefix', text.replace('svc-', 'SVC-')],
    ['space in front', ` ${text}`],
    ['a line feed after it', `${text}\n`],
    ['padding', `${text}=`],
    ['no JSON', packed(utf8('{'))],
    ['invalid UTF-8', packed(Uint8Array.of(0x22, 0xff, 0x22))],
    ['a repeated member', packed(utf8('{"$type":"svc.contact.invite","$type":"x"}'))],
    ['no invite', packed(canonicalBytes({ $type: 'svc.contact.grant' }))],
    ['JSON null', packed(utf8('null'))],
    ['JSON that is not canonical', packed(utf8(JSON.stringify({ ...example, a: 1 })))],
    ['white space in the JSON', packed(utf8(`${canonicalJson(example)} `))],
  ])('%s is refused', (_name, word) => {
    expect(codeOf(() => decodeInvite(network, word))).toBe('bad_request');
  });
});
