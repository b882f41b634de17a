import { describe, expect, test } from 'vitest';
import {
  checkDeviceStateChanged,
  checkDirectMessage,
  encodeBase64url,
  isReplyWithin,
} from '../../src/index.ts';
import { alice, bob, carol, codeOf, fill, network, without } from '../contacts/accounts.ts';

const body = { content_type: 'text/plain', text: 'hi' };
const attachment = {
  uri: 'https://example.com/a',
  hash: `sha256:${encodeBase64url(fill(1))}`,
  content_type: 'image/png',
  size: 1,
};
const reply = { from: bob.account, message_id: 'msg_AAECAwQFBgcICQoLDA0ODw' };
const check = (members: object) =>
  codeOf(() => checkDirectMessage(network, { $type: 'svc.message.direct', ...members }));

describe('04 §7.3: DirectMessage', () => {
  test('a body, attachments, or both', () => {
    expect(check({ body })).toBeUndefined();
    expect(check({ body, attachments: [] })).toBeUndefined();
    expect(check({ attachments: [attachment] })).toBeUndefined();
    expect(check({ body, attachments: [attachment], reply_to: reply, x: 1 })).toBeUndefined();
  });

  test.each([
    ['nothing', {}],
    ['no attachments', { attachments: [] }],
    ['only a reply', { reply_to: reply }],
    ['a null body', { body: null, attachments: [attachment] }],
    ['null attachments', { body, attachments: null }],
    ['a null reply', { body, reply_to: null }],
    ['a body without text', { body: { content_type: 'text/plain' } }],
    ['a body of white space', { body: { ...body, text: '\n' } }],
    ['another charset', { body: { ...body, content_type: 'text/plain;charset=latin1' } }],
    ['an attachment twice', { attachments: [attachment, { ...attachment, size: 2 }] }],
    ['a malformed attachment', { body, attachments: [{ ...attachment, uri: 'x' }] }],
    ['a reply without sender', { body, reply_to: without(reply, 'from') }],
    ['a reply without ID', { body, reply_to: without(reply, 'message_id') }],
    ['a reply to no message', { body, reply_to: { ...reply, message_id: 'msg_' } }],
    ['a reply to no account', { body, reply_to: { ...reply, from: `${bob.account}x` } }],
    [
      'a reply to a wrong checksum',
      { body, reply_to: { ...reply, from: bob.account.replace(/.$/, '8') } },
    ],
    ['another type', { $type: 'svc.message.direct.v2', body }],
    ['$context', { $context: network.context, body }],
    ['01 §4 K2: $context in the body', { body: { ...body, $context: 'x' } }],
    ['01 §4 K2: $context in an attachment', { attachments: [{ ...attachment, $context: 'x' }] }],
    ['01 §4 K2: $context in the reply', { body, reply_to: { ...reply, $context: 'x' } }],
    ['null in an unknown member', { body, x: { y: null } }],
  ])('%s is refused', (_name, members) => {
    expect(check(members)).toBe('bad_request');
  });

  test('a reply relates to one of the two accounts, or is ignored', () => {
    const envelope = { from: alice.account, to: bob.account };
    expect(isReplyWithin(reply, envelope)).toBe(true);
    expect(isReplyWithin({ ...reply, from: alice.account }, envelope)).toBe(true);
    expect(isReplyWithin({ ...reply, from: carol.account }, envelope)).toBe(false);
    expect(check({ body, reply_to: { ...reply, from: carol.account } })).toBeUndefined();
  });
});

describe('04 §7.4: DeviceStateChanged', () => {
  const changed = (members: object) =>
    codeOf(() =>
      checkDeviceStateChanged(network, { $type: 'svc.device.state.changed', ...members }),
    );
  test('revisions from 0 to the edge of safe integers', () => {
    expect(changed({ revision: 0 })).toBeUndefined();
    expect(changed({ revision: Number.MAX_SAFE_INTEGER, x: 1 })).toBeUndefined();
  });
  test.each([
    {},
    { revision: -1 },
    { revision: 2 ** 53 },
    { revision: '1' },
    { revision: null },
    { revision: 1, x: null },
    { revision: 1, $context: network.context },
    { revision: 1, $type: 'svc.device.state' },
  ])('%j is refused', (members) => {
    expect(changed(members)).toBe('bad_request');
  });
});
