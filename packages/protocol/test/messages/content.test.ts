import { describe, expect, test } from 'vitest';
import { noblePrimitives } from '../../src/crypto/index.ts';
import {
  admitContent,
  type ContentName,
  encodeBase64url,
  messageDirection,
  Network,
  parseContent,
  signGrant,
  utf8,
} from '../../src/index.ts';
import { canonicalBytes } from '../../src/json/index.ts';
import { contentNames } from '../../src/messages/content.ts';
import { alice, bob, bobState, carol, fill, network } from '../contacts/accounts.ts';

const grant = signGrant(network, bob, { grantee: alice.account });
const groupId = `grp_${encodeBase64url(fill(1, 16))}`;
const key = encodeBase64url(fill(1));
/** One of each. */
const samples: Record<ContentName, object> = {
  'message.direct': { body: { content_type: 'text/plain', text: 'hi' } },
  'contact.consent': { device_state: bobState, grant },
  'contact.grant': grant,
  'account.contacts.sync': { records: [{ account: bob.account, status: 'active', updated_at: 1 }] },
  'device.state.changed': { revision: 1 },
  'account.group.state.request': {},
  'account.group.state.sync': {
    states: [
      {
        group_id: groupId,
        relay_id: `0x${'ab'.repeat(20)}`,
        member_encryption_private_key: key,
      },
    ],
  },
  'account.group.history_secret.sync': {
    secrets: [{ group_id: groupId, epoch: 1, application_secret: key }],
  },
};
const own = { account: alice.account };
const parse = (value: object) => parseContent(network, canonicalBytes(value as never), own);
const text = (source: string) => parseContent(network, utf8(source), own);

describe('04 §7.1: dispatch', () => {
  test.each(contentNames)('%s is known and checked', (name) => {
    const content = { ...samples[name], $type: network.type(name) };
    expect(parse(content)).toEqual({ kind: 'known', name, content });
    expect(parse({ ...content, $context: network.context })).toMatchObject({ kind: 'invalid' });
    expect(parse({ ...content, x: null })).toMatchObject({
      kind: 'invalid',
      reason: { code: 'bad_request' },
    });
  });

  test.each([
    'svc.message.direct.v2',
    'svc.message.Direct',
    'SVC.message.direct',
    'other.message.direct',
    'message.direct',
    'svc.toString',
    'svc.profile',
    '',
    'x',
  ])('%j is unknown, and kept as it is', (type) => {
    const content = { $type: type, body: null, x: [1] };
    expect(parse(content)).toEqual({ kind: 'unknown', type, content });
  });

  test('01 §4 K2: an unknown type is invalid with $context in it or in a typed object below', () => {
    const inner = { $type: 'x', $context: network.context };
    expect(parse(inner).kind).toBe('invalid');
    expect(parse({ $type: 'x', more: [inner] }).kind).toBe('invalid');
    expect(parse({ $type: 'x', more: { $context: 'y' } }).kind).toBe('unknown');
  });

  test('the service word decides', () => {
    const { context } = network;
    const other = new Network({ context, word: 'meshline', primitives: noblePrimitives });
    const bytes = canonicalBytes({
      ...samples['device.state.changed'],
      $type: 'svc.device.state.changed',
    });
    expect(parseContent(other, bytes, own).kind).toBe('unknown');
  });

  test.each([
    ['no text', ''],
    ['no JSON', '{'],
    ['two values', '{"$type":"x"} {}'],
    ['a repeated member', '{"$type":"x","$type":"x"}'],
    ['a fraction', '{"$type":"x","a":1.5}'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a text', '"svc.message.direct"'],
    ['no $type', '{"body":{}}'],
    ['type instead of $type', '{"type":"svc.message.direct"}'],
    ['$type null', '{"$type":null}'],
    ['$type a number', '{"$type":1}'],
    ['$type an object', '{"$type":{}}'],
    ['a known type of the wrong shape', '{"$type":"svc.message.direct"}'],
    ['a value at depth 17', `{"$type":"x","a":${'['.repeat(17)}${']'.repeat(17)}}`],
  ])('%s is invalid', (_name, source) => {
    expect(text(source)).toMatchObject({ kind: 'invalid', reason: { code: 'bad_request' } });
  });

  test('depth 16 is read; the text need not be canonical', () => {
    expect(text(`{"$type":"x","a":${'['.repeat(16)}${']'.repeat(16)}}`).kind).toBe('unknown');
    expect(text(' {"revision" : 1, "$type":"svc.device.state.changed"}\n').kind).toBe('known');
  });

  test('bytes that are no UTF-8, and a byte order mark, are invalid', () => {
    expect(parseContent(network, Uint8Array.of(0xff), own).kind).toBe('invalid');
    expect(text('\ufeff{"$type":"x"}').kind).toBe('invalid');
  });

  test('a record of the reading account itself is invalid', () => {
    const content = { ...samples['account.contacts.sync'], $type: 'svc.account.contacts.sync' };
    const bytes = canonicalBytes(content);
    expect(parseContent(network, bytes, { account: bob.account }).kind).toBe('invalid');
  });
});

describe('04 §7.2: direction', () => {
  test('by the reading account', () => {
    const envelope = { from: alice.account, to: bob.account };
    expect(messageDirection(envelope, alice.account)).toBe('sent');
    expect(messageDirection(envelope, bob.account)).toBe('received');
    expect(messageDirection(envelope, carol.account)).toBeUndefined();
    const self = { from: alice.account, to: alice.account };
    expect(messageDirection(self, alice.account)).toBe('self');
    expect(messageDirection(self, bob.account)).toBeUndefined();
  });

  const refuse = 'refuse';
  const table: [ContentName | undefined, string, string, string][] = [
    // type, self-delivery, received, sent
    ['message.direct', 'apply current-device', 'apply issued-grant', 'store nothing'],
    ['contact.consent', refuse, 'apply consent-rules', 'store nothing'],
    ['contact.grant', refuse, 'apply issued-grant', 'store nothing'],
    ['device.state.changed', refuse, 'apply issued-grant', 'store nothing'],
    ['account.contacts.sync', 'apply current-device', refuse, refuse],
    ['account.group.state.request', 'apply current-device', refuse, refuse],
    ['account.group.state.sync', 'apply current-device', refuse, refuse],
    ['account.group.history_secret.sync', 'apply current-device', refuse, refuse],
    [undefined, 'store nothing', 'store issued-grant', 'store nothing'],
  ];
  test.each(table)('%s', (name, ...expected) => {
    const admitted = (['self', 'received', 'sent'] as const).map((direction) => {
      const admission = admitContent({ direction, name });
      return admission.admit === refuse ? refuse : `${admission.admit} ${admission.requires}`;
    });
    expect(admitted).toEqual(expected);
  });

  test('the table names every type', () => {
    const named = table.flatMap(([name]) => (name === undefined ? [] : [name]));
    expect(named.sort()).toEqual(contentNames.toSorted());
  });
});
