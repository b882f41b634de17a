import { describe, expect, test } from 'vitest';
import { verifySignatures } from '../../src/crypto/index.ts';
import {
  checkChannelContentSize,
  checkChannelPost,
  checkChannelPostDelete,
  checkChannelPostEdit,
  checkChannelPostReport,
  deviceSignatures,
  utf8Length,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject } from '../../src/json/index.ts';
import {
  attachment,
  channelId,
  codeOf,
  deletion,
  edit,
  network,
  owner,
  post,
  resigned,
  stranger,
  text,
} from './fixture.ts';

const verifies = (object: JsonObject & { device_signature: string }) =>
  verifySignatures(
    network.primitives,
    deviceSignatures(network, object, owner.certificate),
    'test',
  );

describe('06 §13: the worked example', () => {
  test.each([
    [
      'post',
      post({ body: text('Version 1.0 is out') }),
      'WMmlS9hkBUZBfkalagV_uaUU6vLgeJgf0kePp5VEjhnqw17TQgRzPCgYvrJC1W0q-mCjZ3ib9zdlAcLr8Xk3DA',
    ],
    [
      'edit',
      edit({ body: text('Version 1.0.1 is out') }),
      'tceQ6kSSp55gkmxeJeXW0RTGXrcVZXM25uVjaJS79cniVjwHxK5oJMIbLWhRSxCsU7i6T4Ls9e9C-HXgxm8ZBg',
    ],
    [
      'deletion',
      deletion({ reason: 'Posted in error' }),
      'g_XSQvOVSLVb4br_qxgaACfF5SuuNQjTXjhA7lJHW72AR545Hb89HKwFoMrCvKjqGhYr9qfnODyKxA6fcGE6DQ',
    ],
  ])('the %s is signed to the same signature', (_, object, signature) => {
    expect(object.device_signature).toBe(signature);
    expect(verifies(object)).toBeUndefined();
  });
});

describe('06 §6.1: posts', () => {
  const check = (members: JsonObject) => checkChannelPost(network, post(members));

  test.each<[string, JsonObject]>([
    ['a body', { body: text('x') }],
    ['an attachment', { attachments: [attachment(1)] }],
    ['both', { body: text('x'), attachments: [attachment(1), attachment(2)] }],
    ['a body and an empty array', { body: text('x'), attachments: [] }],
    ['a body of an unknown format', { body: { content_type: 'x/y; a=b', text: 'x' } }],
    ['unknown members', { body: text('x'), extra: { a: [1] } }],
  ])('%s passes', (_, members) => {
    expect(check(members)).toBeUndefined();
  });

  test.each<[string, JsonObject]>([
    ['neither body nor attachment', {}],
    ['only an empty array', { attachments: [] }],
    ['a body as null', { body: null, attachments: [attachment(1)] }],
    ['attachments as null', { body: text('x'), attachments: null }],
    ['null in an unknown member', { body: text('x'), extra: null }],
    ['a body of white space', { body: text(' \n') }],
    ['a body without a type', { body: { text: 'x' } }],
    ['a body in another charset', { body: { content_type: 'text/plain; charset=x', text: 'x' } }],
    ['a hash twice', { attachments: [attachment(1), { ...attachment(1), uri: 'https://b.c/d' }] }],
    ['an attachment over http', { attachments: [{ ...attachment(1), uri: 'http://b.c/d' }] }],
    ['$context', { body: text('x'), $context: network.context }],
    ['another type', { body: text('x'), $type: 'svc.channel.post.edit' }],
    ['a message ID with pad bits', { body: text('x'), message_id: 'msg_EBESExQVFhcYGRobHB0eHx' }],
    ['a channel ID with another prefix', { body: text('x'), channel_id: channelId.slice(1) }],
  ])('%s is bad_request', (_, members) => {
    expect(codeOf(() => check(members))).toBe('bad_request');
  });
});

describe('06 §6.2: edits', () => {
  const check = (members: JsonObject) => checkChannelPostEdit(network, edit(members));

  test.each<[string, JsonObject]>([
    ['a body', { body: text('x') }],
    ['a body as null', { body: null }],
    ['attachments as null', { attachments: null }],
    ['an empty array', { attachments: [] }],
    ['an unknown member alone', { extra: 1 }],
    ['an unknown member as null', { extra: null }],
    ['an unknown member with the name of a prototype', JSON.parse('{"__proto__":null}')],
  ])('%s passes', (_, members) => {
    expect(check(members)).toBeUndefined();
  });

  test.each<[string, JsonObject]>([
    ['nothing to change', {}],
    ['message_id', { body: text('x'), message_id: 'msg_EBESExQVFhcYGRobHB0eHw' }],
    ['message_id as null', { body: text('x'), message_id: null }],
    ['$context', { body: text('x'), $context: 1 }],
    ['$context as null', { body: text('x'), $context: null }],
    ['null deeper in an unknown member', { extra: { a: null } }],
    ['null deeper in the body', { body: { ...text('x'), extra: null } }],
    ['null for what cannot be removed', { body: text('x'), target_sequence: null }],
    ['target 0', { body: text('x'), target_sequence: 0 }],
    ['a target above 2^53-1', { body: text('x'), target_sequence: 2 ** 53 }],
    ['a body without a type', { body: { text: 'x' } }],
    ['attachments as a number', { attachments: 42 }],
    ['a hash twice', { attachments: [attachment(1), attachment(1)] }],
  ])('%s is bad_request', (_, members) => {
    const value = { ...edit({}), ...members };
    expect(codeOf(() => checkChannelPostEdit(network, value))).toBe('bad_request');
  });
});

describe('06 §6.3: deletions', () => {
  test.each<[string, JsonObject]>([
    ['no reason', {}],
    ['a reason', { reason: 'x' }],
  ])('%s passes', (_, members) => {
    expect(checkChannelPostDelete(network, deletion(members))).toBeUndefined();
  });

  test.each<[string, JsonObject]>([
    ['an empty reason', { reason: '' }],
    ['a reason of white space', { reason: '\u2003' }],
    ['a reason as null', { reason: null }],
    ['a negative target', { target_sequence: -1 }],
    ['the type of a post', { $type: 'svc.channel.post' }],
  ])('%s is bad_request', (_, members) => {
    const value = deletion(members);
    expect(codeOf(() => checkChannelPostDelete(network, value))).toBe('bad_request');
  });
});

describe('06 §8.10: reports', () => {
  const report = { channel_id: channelId, target_sequence: 1, reason: 'spam' };

  test('a reason up to the relay’s cap passes', () => {
    expect(checkChannelPostReport(report, 4)).toBeUndefined();
    expect(codeOf(() => checkChannelPostReport(report, 3))).toBe('bad_request');
  });

  test.each<[string, JsonObject]>([
    ['an empty reason', { reason: '' }],
    ['a reason of white space', { reason: ' ' }],
    ['target 0', { target_sequence: 0 }],
  ])('%s is bad_request', (_, change) => {
    const value = { ...report, ...change };
    expect(codeOf(() => checkChannelPostReport(value, 100))).toBe('bad_request');
  });
});

describe('06 §6: size', () => {
  test.each([
    ['post', post({ body: text('x'), extra: '' })],
    ['edit', edit({ body: null, extra: '' })],
    ['deletion', deletion({ extra: '' })],
  ])('a %s has at most 65,536 bytes, unknown members and signature included', (_, empty) => {
    const room = 65_536 - canonicalJson(empty).length;
    const fits = resigned(empty, { extra: `${'é'.repeat(room >> 1)}${'x'.repeat(room & 1)}` });
    const above = resigned(empty, { extra: 'x'.repeat(room + 1) });
    expect(utf8Length(checkChannelContentSize(fits))).toBe(65_536);
    expect(codeOf(() => checkChannelContentSize(above))).toBe('request_too_large');
  });
});

describe('06 §14: signature sensitivity', () => {
  const signed = post({ body: text('x'), attachments: [attachment(1)], extra: { a: 1 } });

  test.each<[string, JsonObject]>([
    ['the message ID', { message_id: 'msg_AAECAwQFBgcICQoLDA0ODw' }],
    ['the type of the body', { body: { content_type: 'text/markdown', text: 'x' } }],
    ['the text', { body: text('y') }],
    ['an attachment', { attachments: [attachment(2)] }],
    ['attachments emptied', { attachments: [] }],
    ['attachments as null', { attachments: null }],
    ['an unknown member', { extra: { a: 2 } }],
    ['an added member', { added: 1 }],
    ['the type', { $type: 'svc.channel.post.edit' }],
  ])('%s changed without signing again: invalid_signature', (_, change) => {
    expect(codeOf(() => verifies({ ...signed, ...change }))).toBe('invalid_signature');
  });

  test.each(['body', 'attachments', 'extra'])('%s left out: invalid_signature', (name) => {
    const rest = Object.fromEntries(Object.entries(signed).filter(([member]) => member !== name));
    expect(codeOf(() => verifies(rest as typeof signed))).toBe('invalid_signature');
  });

  test('omitted, null and [] sign differently', () => {
    const signatures = [{}, { attachments: null }, { attachments: [] }].map(
      (members) => edit({ body: text('x'), ...members }).device_signature,
    );
    expect(new Set(signatures).size).toBe(3);
  });

  test('another device’s signature does not verify', () => {
    expect(codeOf(() => verifies(post({ body: text('x') }, stranger)))).toBe('invalid_signature');
  });
});
