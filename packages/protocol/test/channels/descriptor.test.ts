import { describe, expect, test } from 'vitest';
import { verifySignatures } from '../../src/crypto/index.ts';
import {
  accountSigner,
  ChannelClose,
  type ChannelDescriptor,
  checkChannelDescriptor,
  checkChannelDescriptorSize,
  checkDescriptorUpdate,
  checkInitialDescriptor,
  checkNextRevision,
  checkSchema,
  closedDescriptor,
  deviceSignatures,
  deviceSigningInput,
  hex,
  mayWriteChannel,
  signChannelClose,
  signChannelDescriptor,
  signChannelUpdate,
  utf8Length,
  verifyChannelDescriptor,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import {
  channelId,
  codeOf,
  descriptor,
  facts,
  moderator,
  network,
  owner,
  relayId,
  resigned,
  revision,
  stranger,
} from './fixture.ts';

const known = { channelId, relayId, certificate: owner.certificate };
const passes = (changes: JsonObject) => {
  const entries = Object.entries({ ...descriptor, ...changes });
  const value = Object.fromEntries(entries.filter(([, member]) => member !== undefined));
  return checkChannelDescriptor(network, value);
};
const check = (changes: JsonObject) => codeOf(() => passes(changes));

/** Accounts that exist in form only. */
const accounts = Array.from({ length: 11 }, (_, index) => {
  const key = network.primitives.sha256(Uint8Array.of(index));
  return accountSigner(network, key).account;
});

describe('06 §13: the worked example', () => {
  test('the owner signs the same bytes to the same signature', () => {
    expect(descriptor.device_signature).toBe(
      'A6UynfjxNS0rx_HkbA4-3M3XlhSng2lkCphi07WF4-j6j8m4Z8KOyVTRHzl70OIiO-224tO5NN3tkLFuxmrUCQ',
    );
    expect(utf8Length(canonicalJson(descriptor))).toBe(474);
    expect(hex(network.primitives.sha256(deviceSigningInput(network, descriptor)))).toBe(
      'c00b8f4e4145432d5d7e6cde0f0f6c77d04df07e65a5f1f75baeb84e2f7ac28f',
    );
  });

  test('closing it is signed to the same signature', () => {
    const close = signChannelClose(network, owner.device, {
      current: descriptor,
      updatedAt: 1_750_000_600,
    });
    expect(close).toEqual({
      channel_id: 'chan_0NM6hMaxkR3u59ygBrOYew',
      revision: 1,
      updated_at: 1_750_000_600,
      device_signature:
        'T7uoPQft5yw4E8I07XV1mDIyS43F_1FMnd70kkx4AU3-qyRrkyxsC1htWpuRZS8XDB89FkiVbSUiCqZ6jEXeCQ',
    });
  });
});

describe('06 §4: structure of a descriptor', () => {
  test('a complete one passes, unknown members too', () => {
    expect(passes({ moderators: [moderator.account], extra: { a: [1, { b: 'c' }] } })).toBe(
      undefined,
    );
  });

  test.each(Object.keys(descriptor).filter((name) => name !== 'description'))(
    'a missing %s is bad_request',
    (name) => {
      expect(check({ [name]: undefined })).toBe('bad_request');
    },
  );

  test.each<[string, JsonObject]>([
    ['another $type', { $type: 'svc.channel.post' }],
    ['the $type of another service', { $type: 'other.channel.descriptor' }],
    ['$context, whatever its value', { $context: network.context }],
    ['$context as null', { $context: null }],
    ['null in an optional member', { description: null }],
    ['null in an unknown member', { extra: [{ a: null }] }],
    ['a nonce of 15 bytes', { nonce: 'AAECAwQFBgcICQoLDA0O' }],
    ['a nonce with pad bits', { nonce: 'AAECAwQFBgcICQoLDA0ODx' }],
    ['an ID with pad bits', { channel_id: 'chan_0NM6hMaxkR3u59ygBrOYex' }],
    ['a creator of another magic', { creator: 'neo:1:NYyxNvpALEX66F1QrykS5ZGktqRMxPb5MT' }],
    ['a creator with a wrong checksum', { creator: owner.account.replace(/.$/, 'U') }],
    ['an uppercase relay ID', { relay_id: relayId.toUpperCase() }],
    ['a negative revision', { revision: -1 }],
    ['a revision above 2^53-1', { revision: 2 ** 53 }],
    ['a revision as text', { revision: '0' }],
    ['an unknown status', { status: 'paused' }],
    ['a fraction of a second', { updated_at: 1.5 }],
    ['an empty name', { name: '' }],
    ['a name of white space', { name: ' \u3000\u0085' }],
    ['a description of white space', { description: '\n' }],
    ['a moderator twice', { moderators: [moderator.account, moderator.account] }],
    ['the owner as moderator', { moderators: [owner.account] }],
    ['a moderator that is no account', { moderators: ['neo:860833102:N'] }],
    ['a moderator with a wrong checksum', { moderators: [moderator.account.replace(/.$/, '1')] }],
  ])('%s is bad_request', (_, changes) => {
    expect(check(changes)).toBe('bad_request');
  });

  test('an empty description and empty moderators pass', () => {
    expect(passes({ description: '', moderators: [] })).toBeUndefined();
  });

  test('a name has at most 256 bytes of UTF-8', () => {
    expect(passes({ name: 'é'.repeat(128) })).toBeUndefined();
    expect(check({ name: `${'é'.repeat(128)}x` })).toBe('bad_request');
  });

  test('a description has at most 4,096 bytes of UTF-8', () => {
    expect(passes({ description: '€'.repeat(1365) })).toBeUndefined();
    expect(passes({ description: `${'€'.repeat(1365)}x` })).toBeUndefined();
    expect(check({ description: `${'€'.repeat(1365)}xy` })).toBe('bad_request');
  });

  test('there are at most 10 moderators', () => {
    expect(passes({ moderators: accounts.slice(0, 10) })).toBeUndefined();
    expect(check({ moderators: accounts })).toBe('bad_request');
  });

  test('the complete object has at most 8,192 bytes, unknown members and signature included', () => {
    const empty = resigned<JsonObject>(descriptor, { extra: '' });
    const room = 8_192 - canonicalJson(empty).length;
    const fits = resigned(descriptor, { extra: 'x'.repeat(room) });
    const above = resigned(descriptor, { extra: 'x'.repeat(room + 1) });
    expect(utf8Length(checkChannelDescriptorSize(fits))).toBe(8_192);
    expect(codeOf(() => checkChannelDescriptorSize(above))).toBe('request_too_large');
  });
});

describe('06 §8.2: revision 0', () => {
  test('is active, with equal times', () => {
    expect(checkInitialDescriptor(descriptor)).toBeUndefined();
  });

  test.each<[string, Partial<ChannelDescriptor>]>([
    ['another revision', { revision: 1 }],
    ['closed', { status: 'closed' }],
    ['unequal times', { updated_at: descriptor.created_at + 1 }],
  ])('%s is bad_request', (_, change) => {
    expect(codeOf(() => checkInitialDescriptor({ ...descriptor, ...change }))).toBe('bad_request');
  });
});

describe('06 §8.4: update', () => {
  test('may change texts and moderators, and leave out what is optional', () => {
    const next = signChannelUpdate(network, owner.device, {
      current: resigned<ChannelDescriptor>(descriptor, { extra: 1 }),
      change: { name: 'News', description: null, moderators: [moderator.account], updated_at: 7 },
    });
    expect(checkDescriptorUpdate(descriptor, next)).toBeUndefined();
    expect(Object.hasOwn(next, 'description')).toBe(false);
    expect(next).toMatchObject({ name: 'News', revision: 1, updated_at: 7, extra: 1 });
    expect(verifyChannelDescriptor(network, next, known)).toBe(next);
  });

  test.each<[string, JsonObject]>([
    ['channel_id', { channel_id: 'chan_AAAAAAAAAAAAAAAAAAAAAA' }],
    ['nonce', { nonce: 'AQECAwQFBgcICQoLDA0ODw' }],
    ['creator', { creator: moderator.account }],
    ['relay_id', { relay_id: '0x0123456789abcdef0123456789abcdef01234567' }],
    ['created_at', { created_at: 1 }],
    ['status', { status: 'closed' }],
  ])('another %s is bad_request', (_, change) => {
    const next = revision(1, change);
    expect(codeOf(() => checkDescriptorUpdate(descriptor, next))).toBe('bad_request');
  });

  test.each([0, 5, 7, Number.MAX_SAFE_INTEGER])(
    'revision %d does not follow 5: state_conflict',
    (number) => {
      expect(codeOf(() => checkNextRevision(revision(5), number))).toBe('state_conflict');
    },
  );

  test('the next revision follows, of a channel that is open', () => {
    expect(checkNextRevision(revision(5), 6)).toBeUndefined();
    const closed = revision(5, { status: 'closed' });
    expect(codeOf(() => checkNextRevision(closed, 6))).toBe('state_conflict');
  });

  test('01 §2.4: exhausted revisions end updates and closing', () => {
    const last = revision(Number.MAX_SAFE_INTEGER, { updated_at: 1 });
    const change = { current: last, change: { updated_at: 1 } };
    expect(() => signChannelUpdate(network, owner.device, change)).toThrow(RangeError);
    const close = { current: last, updatedAt: 1 };
    expect(() => signChannelClose(network, owner.device, close)).toThrow(RangeError);
    expect(codeOf(() => checkNextRevision(last, 2 ** 53))).toBe('state_conflict');
  });
});

describe('06 §8.5: close', () => {
  const current = resigned<ChannelDescriptor>(descriptor, { extra: { keep: [true] } });
  const close = signChannelClose(network, owner.device, { current, updatedAt: 1_750_000_600 });

  test('the final descriptor keeps everything else, unknown members too, and verifies', () => {
    const final = closedDescriptor(current, close);
    const { device_signature, ...rest } = final;
    const { device_signature: _, ...before } = current;
    const changed = { revision: 1, updated_at: 1_750_000_600, status: 'closed' };
    expect(rest).toEqual({ ...before, ...changed });
    expect(device_signature).toBe(close.device_signature);
    expect(verifyChannelDescriptor(network, final, known)).toBe(final);
  });

  test('other members of the request are never mapped', () => {
    const extended = { ...close, name: 'Taken over', other: 1 };
    expect(closedDescriptor(current, extended)).toEqual(closedDescriptor(current, close));
  });

  test('a signature over another state does not verify', () => {
    const final = closedDescriptor(resigned<ChannelDescriptor>(current, { name: 'x' }), close);
    const signatures = deviceSignatures(network, final, owner.certificate);
    expect(codeOf(() => verifySignatures(network.primitives, signatures, 'final'))).toBe(
      'invalid_signature',
    );
  });

  test.each(['channel_id', 'revision', 'updated_at', 'device_signature'])(
    'a missing %s is bad_request',
    (name) => {
      const entries = Object.entries(close).filter(([member]) => member !== name);
      expect(codeOf(() => checkSchema(ChannelClose, Object.fromEntries(entries)))).toBe(
        'bad_request',
      );
    },
  );
});

describe('06 §1: the right to write', () => {
  const moderated = revision(1, { moderators: [moderator.account] });

  test('only the owner and listed moderators may write', () => {
    expect(mayWriteChannel(descriptor, owner.account)).toBe(true);
    expect(mayWriteChannel(descriptor, moderator.account)).toBe(false);
    expect(mayWriteChannel(moderated, moderator.account)).toBe(true);
    expect(mayWriteChannel(moderated, stranger.account)).toBe(false);
  });

  test('accounts are compared as whole, case-sensitive texts', () => {
    const upper = moderator.account.toUpperCase();
    expect(mayWriteChannel(moderated, upper)).toBe(false);
  });
});

describe('06 §4: verification', () => {
  test('a good descriptor verifies, of every revision', () => {
    expect(verifyChannelDescriptor(network, descriptor, known)).toBe(descriptor);
    const next = revision(3, { name: 'x' });
    expect(verifyChannelDescriptor(network, next, known)).toBe(next);
  });

  test.each<[string, unknown, string]>([
    ['a changed name', { ...descriptor, name: 'Other' }, 'invalid_signature'],
    ['an added member', { ...descriptor, extra: [] }, 'invalid_signature'],
    ['a moderator put in', { ...descriptor, moderators: [] }, 'invalid_signature'],
    ['an ID that does not follow', revision(1, { creator: moderator.account }), 'bad_request'],
    ['a closed revision 0', resigned(descriptor, { status: 'closed' }), 'bad_request'],
    ['a signature of another device', resigned(descriptor, {}, moderator), 'invalid_signature'],
    ['too much of it', resigned(descriptor, { extra: 'x'.repeat(8_000) }), 'request_too_large'],
  ])('%s does not: %3$s', (_, value, code) => {
    expect(codeOf(() => verifyChannelDescriptor(network, value, known))).toBe(code);
  });

  test.each<[string, Partial<typeof known>]>([
    ['of another channel', { channelId: 'chan_AAAAAAAAAAAAAAAAAAAAAA' }],
    ['from another relay', { relayId: '0x0123456789abcdef0123456789abcdef01234567' }],
    ['with the certificate of another account', { certificate: moderator.certificate }],
  ])('%s it is bad_request', (_, change) => {
    const rule = { ...known, ...change };
    expect(codeOf(() => verifyChannelDescriptor(network, descriptor, rule))).toBe('bad_request');
  });

  test('a producer cannot make what a verifier refuses', () => {
    const bad = { ...facts, name: ' ' };
    expect(codeOf(() => signChannelDescriptor(network, owner.device, bad))).toBe('bad_request');
  });
});
