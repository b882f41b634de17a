import { describe, expect, test } from 'vitest';
import {
  checkSchema,
  checkTimelinePage,
  type MessageTimelineEntry,
  openMessage,
  sealMessage,
  TimelineChanged,
  TimelineSyncRequest,
  verifyTimelinePage,
} from '../../src/index.ts';
import {
  alice,
  alicePhone,
  bob,
  carol,
  codeOf,
  counting,
  network,
  now,
  type TestDevice,
  tampered,
  without,
} from '../contacts/accounts.ts';

const random = counting();
const content = { $type: 'svc.message.direct', body: { content_type: 'text/plain', text: 'hi' } };

/** A record of Alice's timeline, for her first device. */
function entry(sequence: number, from: TestDevice, to: string): MessageTimelineEntry {
  const boxes = { recipients: [] as TestDevice[], senders: [] as TestDevice[] };
  if (to === alice.account) boxes.recipients.push(alice);
  else boxes.senders.push(alice);
  if (boxes.recipients.length === 0) boxes.recipients.push(bob);
  const message = sealMessage(network, {
    from,
    to,
    createdAt: now,
    content,
    recipients: boxes.recipients.map(({ certificate }) => certificate),
    senders: boxes.senders.map(({ certificate }) => certificate),
    random,
  });
  const [box] = message.sender_boxes ?? message.recipient_boxes;
  if (box === undefined) throw new Error('a box was made');
  return { sequence, envelope: message.envelope, key_box: box, accepted_at: now };
}

const received = entry(3, bob, alice.account);
const sent = entry(7, alicePhone, bob.account);
const self = entry(9, alicePhone, alice.account);
const page = {
  items: [received, sent, self],
  certificates: [alicePhone.certificate, bob.certificate],
  has_more: true,
};
const reading = { account: alice.account, deviceId: alice.deviceId, after: 2 };
const verify = (value: unknown, changes = {}) =>
  codeOf(() => verifyTimelinePage(network, value, { ...reading, ...changes }));

describe('04 §18.1: a page as a whole', () => {
  test('gives the certificates by device, with which every record opens', () => {
    const certificates = verifyTimelinePage(network, page, reading);
    expect([...certificates.keys()].sort()).toEqual([alicePhone.deviceId, bob.deviceId].sort());
    for (const item of page.items) {
      const certificate = certificates.get(item.envelope.from_device_id);
      if (certificate === undefined) throw new Error('the page covers its senders');
      const account = item === sent ? item.envelope.from : item.envelope.to;
      const plaintext = openMessage(network, {
        envelope: item.envelope,
        keyBox: item.key_box,
        certificate,
        account,
        deviceId: alice.deviceId,
        encryptionPrivateKey: alice.encryptionPrivateKey,
      });
      expect(JSON.parse(new TextDecoder().decode(plaintext))).toEqual(content);
    }
  });

  test('an empty page must not have has_more', () => {
    const empty = { items: [], certificates: [], has_more: false };
    expect(verify(empty)).toBeUndefined();
    expect(verify({ ...empty, has_retention_gap: true })).toBeUndefined();
    expect(verify({ ...empty, has_more: true })).toBe('bad_request');
  });

  test('an extra certificate that verifies is no fault, one that does not is', () => {
    const extra = [...page.certificates, carol.certificate];
    expect(verify({ ...page, certificates: extra })).toBeUndefined();
    const { device_signature: signature } = carol.certificate;
    const forged = { ...carol.certificate, device_signature: tampered(signature) };
    const certificates = [...page.certificates, forged];
    expect(verify({ ...page, certificates })).toBe('invalid_signature');
    expect(codeOf(() => checkTimelinePage(network, { ...page, certificates }, reading))).toBe(
      undefined,
    );
  });

  test('certificates: none missing, none twice, each of the sender’s account', () => {
    const { certificates } = page;
    expect(verify({ ...page, certificates: certificates.slice(1) })).toBe('bad_request');
    expect(verify({ ...page, certificates: [] })).toBe('bad_request');
    expect(verify({ ...page, certificates: [...certificates, bob.certificate] })).toBe(
      'bad_request',
    );
    const posed = { ...received, envelope: { ...received.envelope, from: carol.account } };
    expect(verify({ ...page, items: [posed] })).toBe('bad_request');
    const { account_signature: signature } = bob.certificate;
    const forged = { ...bob.certificate, account_signature: tampered(signature) };
    const altered = [alicePhone.certificate, forged];
    expect(verify({ ...page, certificates: altered })).toBe('invalid_signature');
  });

  test('a certificate over 4,096 bytes', () => {
    const large = { ...bob.certificate, x: 'x'.repeat(4_096) };
    const certificates = [alicePhone.certificate, large];
    expect(verify({ ...page, certificates })).toBe('request_too_large');
  });

  test('sequences lie after the position and ascend', () => {
    expect(verify(page, { after: -1 })).toBeUndefined();
    expect(verify(page, { after: 3 })).toBe('bad_request');
    expect(verify({ ...page, items: [sent, received] })).toBe('bad_request');
    expect(verify({ ...page, items: [received, { ...sent, sequence: 3 }] })).toBe('bad_request');
    const first = { ...received, sequence: 0 };
    expect(verify({ ...page, items: [first] }, { after: -1 })).toBeUndefined();
  });

  test('never more entries than asked for', () => {
    expect(verify(page, { limit: 3 })).toBeUndefined();
    expect(verify(page, { limit: 2 })).toBe('bad_request');
  });

  test('records of this account, with the box of this device', () => {
    expect(verify(page, { account: carol.account })).toBe('bad_request');
    expect(verify(page, { account: bob.account })).toBe('bad_request');
    expect(verify(page, { deviceId: alicePhone.deviceId })).toBe('bad_request');
    const key_box = { ...received.key_box, device_id: alicePhone.deviceId };
    expect(verify({ ...page, items: [{ ...received, key_box }] })).toBe('bad_request');
  });

  test.each([
    ['no page', null],
    ['no items', without(page, 'items')],
    ['no certificates', without(page, 'certificates')],
    ['no has_more', without(page, 'has_more')],
    ['has_more as number', { ...page, has_more: 1 }],
    ['null has_retention_gap', { ...page, has_retention_gap: null }],
    ['null in an unknown member', { ...page, x: null }],
    ['a negative sequence', { ...page, items: [{ ...received, sequence: -1 }] }],
    ['an entry without envelope', { ...page, items: [without(received, 'envelope')] }],
    ['an entry without box', { ...page, items: [without(received, 'key_box')] }],
    ['an entry without accepted_at', { ...page, items: [without(received, 'accepted_at')] }],
    ['several boxes', { ...page, items: [{ ...received, key_box: [received.key_box] }] }],
  ])('%s is refused', (_name, value) => {
    expect(verify(value)).toBe('bad_request');
  });
});

describe('04 §18, §19: parameters', () => {
  const sync = (value: unknown) => codeOf(() => checkSchema(TimelineSyncRequest, value));
  test.each([
    {},
    { after: -1 },
    { after: 0 },
    { after: 2 ** 53 - 1, limit: 1 },
    { limit: 2 ** 53 - 1 },
  ])('sync: %j passes', (value) => {
    expect(sync(value)).toBeUndefined();
  });
  test.each([
    { after: -2 },
    { after: 2 ** 53 },
    { after: null },
    { after: '0' },
    { limit: 0 },
    { limit: -1 },
    { limit: 2 ** 53 },
  ])('sync: %j is refused', (value) => {
    expect(sync(value)).toBe('bad_request');
  });
  test('changed: the head is nonnegative', () => {
    const changed = (head: unknown) => codeOf(() => checkSchema(TimelineChanged, { head }));
    expect([changed(0), changed(-1), changed(null)]).toEqual([
      undefined,
      'bad_request',
      'bad_request',
    ]);
  });
});
