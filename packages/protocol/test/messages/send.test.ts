import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  checkAuthorization,
  checkDeliverRequest,
  checkDeliveryAuthorization,
  checkEnvelope,
  checkKeyBoxes,
  checkNoNull,
  checkSchema,
  checkSendRequest,
  deliveryKind,
  envelopeSigningInput,
  readSendRequest,
  SendRequest,
  sealMessage,
  signGrant,
  signInvite,
  utf8,
} from '../../src/index.ts';
import { canonicalJson } from '../../src/json/index.ts';
import {
  alice,
  alicePhone,
  bob,
  bobPhone,
  carol,
  codeOf,
  counting,
  network,
  now,
  tampered,
  without,
} from '../contacts/accounts.ts';

const content = { $type: 'svc.message.direct', body: { content_type: 'text/plain', text: 'hi' } };
const parts = { from: alice, createdAt: now, content, random: counting() };
const recipients = [bob.certificate, bobPhone.certificate];
const request = sealMessage(network, { ...parts, to: bob.account, recipients });
const [box] = request.recipient_boxes;
const own = sealMessage(network, {
  ...parts,
  to: alice.account,
  recipients: [alicePhone.certificate],
});
const sent = sealMessage(network, {
  ...parts,
  to: bob.account,
  recipients,
  senders: [alice.certificate],
});
const grant = signGrant(network, bob, { grantee: alice.account, expires_at: now + 100 });
const invite = signInvite(network, bob, { expires_at: now + 100 });
const check = (value: unknown) => codeOf(() => checkSendRequest(network, value));

describe('04 §12: parameters of message.send', () => {
  test('with and without sender boxes and authorization, unknown members allowed', () => {
    expect(check(request)).toBeUndefined();
    expect(check(sent)).toBeUndefined();
    expect(check({ ...sent, authorization: grant })).toBeUndefined();
    expect(check({ ...request, authorization: invite, x: 1 })).toBeUndefined();
    expect(check(own)).toBeUndefined();
  });

  test.each(['envelope', 'recipient_boxes'])('without %s they are refused', (name) => {
    expect(check(without(request, name))).toBe('bad_request');
  });

  const nine = Array.from({ length: 9 }, (_, index) => ({
    ...box,
    device_id: `dev_${'A'.repeat(20)}${index}A`,
  }));
  test.each([
    ['no parameters', null],
    ['an array', []],
    ['no recipient boxes', { ...request, recipient_boxes: [] }],
    ['nine recipient boxes', { ...request, recipient_boxes: nine }],
    ['a device twice', { ...request, recipient_boxes: [box, box] }],
    ['an empty set of sender boxes', { ...request, sender_boxes: [] }],
    ['nine sender boxes', { ...request, sender_boxes: nine }],
    ['a sender device twice', { ...request, sender_boxes: [box, box] }],
    ['null sender boxes', { ...request, sender_boxes: null }],
    ['null authorization', { ...request, authorization: null }],
    ['null in an unknown member', { ...request, x: [null] }],
    ['an authorization of neither type', { ...request, authorization: { $type: 'svc.profile' } }],
    ['a malformed grant', { ...request, authorization: { ...grant, signatures: {} } }],
    ['a malformed invite', { ...request, authorization: without(invite, 'expires_at') }],
    ['$context in the envelope', { ...request, envelope: { ...request.envelope, $context: 'x' } }],
    ['$context in the grant', { ...request, authorization: { ...grant, $context: null } }],
    ['another type of envelope', { ...request, envelope: { ...request.envelope, $type: 'x' } }],
  ])('%s is refused', (_name, value) => {
    expect(check(value)).toBe('bad_request');
  });

  test('eight boxes pass', () => {
    expect(check({ ...request, recipient_boxes: nine.slice(1) })).toBeUndefined();
    expect(check({ ...request, sender_boxes: nine.slice(1) })).toBeUndefined();
  });

  test('an envelope over 262,144 bytes is too large', () => {
    const envelope = { ...request.envelope, x: 'x'.repeat(262_144) };
    expect(check({ ...request, envelope })).toBe('request_too_large');
  });

  test('04 §5, §11: self-delivery has neither sender boxes nor authorization', () => {
    expect(check({ ...own, sender_boxes: own.recipient_boxes })).toBe('bad_request');
    expect(check({ ...own, authorization: grant })).toBe('bad_request');
    expect(check({ ...own, authorization: invite })).toBe('bad_request');
  });

  test('signatures, accounts and period of the authorization come later', () => {
    const forged = {
      ...request.envelope,
      device_signature: tampered(request.envelope.device_signature),
    };
    expect(check({ ...request, envelope: forged })).toBeUndefined();
    const other = signGrant(network, carol, { grantee: bob.account, expires_at: 1 });
    expect(check({ ...request, authorization: other })).toBeUndefined();
  });
});

describe('04 §11: kinds of delivery', () => {
  test('by accounts and authorization', () => {
    expect(deliveryKind(network, own)).toBe('self');
    expect(deliveryKind(network, request)).toBe('public');
    expect(deliveryKind(network, { ...request, authorization: grant })).toBe('granted');
    expect(deliveryKind(network, { ...request, authorization: invite })).toBe('invited');
  });

  const authorized = (authorization: SendRequest['authorization'], at = now) =>
    codeOf(() =>
      checkDeliveryAuthorization(
        network,
        { ...request, ...(authorization !== undefined && { authorization }) },
        at,
      ),
    );

  test('a grant from recipient to sender, an invite of the recipient, or nothing', () => {
    expect([authorized(undefined), authorized(grant), authorized(invite)]).toEqual(
      Array(3).fill(undefined),
    );
  });

  test('between other accounts: forbidden', () => {
    expect(authorized(signGrant(network, alice, { grantee: bob.account }))).toBe('forbidden');
    expect(authorized(signGrant(network, bob, { grantee: carol.account }))).toBe('forbidden');
    expect(authorized(signInvite(network, alice, { expires_at: now + 1 }))).toBe('forbidden');
  });

  test('expired: forbidden, at the very second', () => {
    expect([authorized(grant, now + 99), authorized(invite, now + 99)]).toEqual([
      undefined,
      undefined,
    ]);
    expect([authorized(grant, now + 100), authorized(invite, now + 100)]).toEqual([
      'forbidden',
      'forbidden',
    ]);
  });
});

describe('04 §13.1: parameters of message.deliver', () => {
  const deliver = (changes: object) => ({
    envelope: request.envelope,
    recipient_boxes: request.recipient_boxes,
    signer_certificate: alice.certificate,
    ...changes,
  });
  const checkDeliver = (changes: object) =>
    codeOf(() => checkDeliverRequest(network, deliver(changes)));

  test('with and without authorization', () => {
    expect(checkDeliver({})).toBeUndefined();
    expect(checkDeliver({ authorization: grant, x: 1 })).toBeUndefined();
    expect(checkDeliver({ authorization: invite })).toBeUndefined();
  });

  test.each(['envelope', 'recipient_boxes', 'signer_certificate'])('without %s', (name) => {
    const value = without(deliver({}), name);
    expect(codeOf(() => checkDeliverRequest(network, value))).toBe('bad_request');
  });

  test.each([
    ['the certificate of another account', { signer_certificate: bob.certificate }],
    ['the certificate of another device', { signer_certificate: alicePhone.certificate }],
    [
      'a key that does not derive its account',
      {
        signer_certificate: {
          ...alice.certificate,
          account_public_key: bob.certificate.account_public_key,
        },
      },
    ],
    ['no boxes', { recipient_boxes: [] }],
    ['a device twice', { recipient_boxes: [box, box] }],
    ['self-delivery', { envelope: own.envelope, recipient_boxes: own.recipient_boxes }],
    ['a malformed authorization', { authorization: {} }],
    ['null', { x: null }],
  ])('%s is refused', (_name, changes) => {
    expect(checkDeliver(changes)).toBe('bad_request');
  });

  test('sizes', () => {
    const envelope = { ...request.envelope, x: 'x'.repeat(262_144) };
    expect(checkDeliver({ envelope })).toBe('request_too_large');
    const certificate = { ...alice.certificate, x: 'x'.repeat(4_096) };
    expect(checkDeliver({ signer_certificate: certificate })).toBe('request_too_large');
  });
});

describe('04 §12.1: a request whose schema and nulls were checked before', () => {
  /** Every check of the parts, each complete, in the order of the chapter. */
  function plain(value: SendRequest): void {
    checkSchema(SendRequest, value);
    checkNoNull(value);
    checkEnvelope(network, value.envelope, 'envelope');
    checkKeyBoxes(value.recipient_boxes, 'recipient_boxes');
    if (value.sender_boxes !== undefined) checkKeyBoxes(value.sender_boxes, 'sender_boxes');
    if (value.authorization !== undefined) checkAuthorization(network, value.authorization);
    if (value.envelope.from !== value.envelope.to) return;
    if (value.sender_boxes !== undefined) throw new Error('sender_boxes');
    if (value.authorization !== undefined) throw new Error('authorization');
  }

  const refusalOf = (check: () => void): unknown => {
    try {
      check();
      return undefined;
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      return code === undefined ? 'self-delivery' : `${code} ${message}`;
    }
  };

  const paths = [
    ...['envelope', 'recipient_boxes', 'sender_boxes', 'authorization', 'unknown'],
    ...[
      'from',
      'to',
      'payload',
      'created_at',
      '$type',
      '$context',
      'device_signature',
      'unknown',
    ].map((name) => `envelope.${name}`),
    ...['alg', 'nonce', 'ciphertext', '$context', 'unknown'].map(
      (name) => `envelope.payload.${name}`,
    ),
    ...['device_id', '$context', 'enc'].map((name) => `recipient_boxes.0.${name}`),
    ...['grantor', 'grantee', 'inviter', '$type', '$context'].map(
      (name) => `authorization.${name}`,
    ),
  ];
  const values = fc.constantFrom<unknown>(
    ...[null, 0, '', 'A', [], {}, alice.account, bob.account, 'svc.message.envelope'],
    ...[{ $type: 'x', $context: 'y' }, [null], request.recipient_boxes, 'x'.repeat(300_000)],
    ...[request.recipient_boxes.concat(request.recipient_boxes), undefined],
  );

  test('is refused as by each check in turn, or gives its texts', () => {
    const requests = fc.constantFrom(request, own, sent, { ...request, authorization: grant });
    const changes = fc.array(fc.tuple(fc.constantFrom(...paths), values), { maxLength: 3 });
    fc.assert(
      fc.property(requests, changes, (start, all) => {
        const value = structuredClone(start) as unknown as Record<string, unknown>;
        for (const [path, change] of all) {
          const names = path.split('.');
          const last = names.pop() as string;
          const parent = names.reduce<unknown>(
            (node, name) => (node as Record<string, unknown> | undefined)?.[name],
            value,
          );
          if (typeof parent !== 'object' || parent === null) continue;
          if (change === undefined) delete (parent as Record<string, unknown>)[last];
          // A copy: the next change may be inside it, and would make it contain itself.
          else (parent as Record<string, unknown>)[last] = structuredClone(change);
        }
        const checked = value as unknown as SendRequest;
        const expected = refusalOf(() => plain(checked));
        const refusal = refusalOf(() => checkSendRequest(network, checked));
        if (expected === 'self-delivery') expect(refusal).toMatch(/self-delivery has none/);
        else expect(refusal).toBe(expected);
        if (expected !== undefined) return;
        const { device_signature: _, ...unsigned } = checked.envelope;
        const texts = readSendRequest(network, checked);
        expect(texts.complete).toBe(canonicalJson(checked.envelope));
        expect(texts.bytes).toBe(Buffer.byteLength(texts.complete));
        expect(utf8(texts.bound)).toEqual(envelopeSigningInput(network, unsigned));
      }),
      { numRuns: 600 },
    );
  });
});
