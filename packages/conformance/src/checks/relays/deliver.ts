/** `message.deliver` to an account at home here (07 §C8). */
import type { MessageEnvelope, MessageKeyBox } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertEqual } from '../../assert.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { grantFor, inviteOf } from '../../fixtures/contacts.ts';
import {
  changeEnvelope,
  directMessage,
  grantedMessage,
  readTimeline,
} from '../../fixtures/direct-messages.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { routeTo } from '../../seat/home-account.ts';
import { messageRefusals } from '../message-refusals.ts';
import { relayChecksOf } from './common.ts';
import {
  asDelivery,
  type DeliveryFixture,
  delivery,
  expectAccepted,
  openDelivery,
} from './delivery-fixture.ts';

const deliver = relayChecksOf('rpc.message.deliver');
const method = 'message.deliver';

for (const [word, publicDiscovery, credential] of [
  ['grant', undefined, ({ from, to }: DeliveryFixture) => grantFor(to.device, from.id)],
  ['invite', false, ({ to }: DeliveryFixture) => inviteOf(to.device)],
  ['public-profile', true, () => undefined],
] as const) {
  deliver.check(
    `accepts-by-${word}`,
    { source: '07 §C8', title: `appends the complete message to the timeline once, by ${word}` },
    async (context) => {
      const fixture = await openDelivery(context, publicDiscovery);
      const { connection, from, to } = fixture;
      const recipients = [to.device.certificate];
      const message = directMessage(from.device, { to: to.account.id, recipients });
      const authorization = credential(fixture);
      const params = asDelivery(from, {
        ...message,
        ...(authorization === undefined ? {} : { authorization }),
      });
      await expectAccepted(connection, params);
      const [record, ...more] = await readTimeline(context, to);
      assertEqual(more.length, 0, 'further records of one delivery');
      assertEqual(record?.envelope, params.envelope, 'the envelope in the timeline');
    },
  );
}

deliver.check(
  'repeat',
  { source: '07 §C8', title: 'answers a repeat with the same accepted_at and appends nothing' },
  async (context) => {
    const fixture = await openDelivery(context);
    const { connection, to } = fixture;
    const params = delivery(fixture);
    const first = await expectAccepted(connection, params);
    assertEqual(await expectAccepted(connection, params), first, 'accepted_at of a repeat');
    // The order of members is none of the content.
    const reordered = Object.fromEntries(Object.entries(params).reverse());
    assertEqual(await expectAccepted(connection, reordered), first, 'accepted_at of a repeat');
    assertEqual((await readTimeline(context, to)).length, 1, 'records after repeats');
  },
);

deliver.check(
  'repeat-at-once',
  { source: '07 §C8', title: 'appends one record for ten deliveries of one message at once' },
  async (context) => {
    const fixture = await openDelivery(context);
    const params = delivery(fixture);
    const times = await Promise.all(
      Array.from({ length: 10 }, () => expectAccepted(fixture.connection, params)),
    );
    assertEqual(new Set(times).size, 1, 'different times of one acceptance');
    assertEqual((await readTimeline(context, fixture.to)).length, 1, 'records after repeats');
  },
);

deliver.check(
  'repeat-by-another-relay',
  { source: '07 §C8', title: 'recognizes a message that another relay delivers again' },
  async (context) => {
    const fixture = await openDelivery(context);
    const params = delivery(fixture);
    const first = await expectAccepted(fixture.connection, params);
    const other = await (await context.seat()).connect();
    assertEqual(await expectAccepted(other, params), first, 'accepted_at of a repeat');
    assertEqual((await readTimeline(context, fixture.to)).length, 1, 'records after repeats');
  },
);

deliver.check(
  'repeat-after-move',
  { source: '07 §C8', title: 'confirms an accepted message also after the account has left' },
  async (context) => {
    const fixture = await openDelivery(context);
    const { connection, seat, to } = fixture;
    const params = delivery(fixture);
    const first = await expectAccepted(connection, params);
    await connection.storeRoute(await routeTo(to.account, seat, { revision: Date.now() + 1_000 }));
    assertEqual(await expectAccepted(connection, params), first, 'accepted_at after the move');
    const call = { method, params: delivery(fixture, 'another message') };
    await connection.expectRefused(call, 'route_stale');
  },
);

/** Other parameters with the message ID of an accepted delivery. */
const conflicts: Readonly<
  Record<string, (params: JsonObject, fixture: DeliveryFixture) => JsonObject>
> = {
  'an-unknown-member': (params) => ({ ...params, future: 1 }),
  'another-credential': (params, { to }) => ({ ...params, authorization: inviteOf(to.device) }),
  'other-boxes': (params) => {
    const [box] = params.recipient_boxes as unknown as [MessageKeyBox];
    return { ...params, recipient_boxes: [{ ...box, future: 1 }] };
  },
  'another-envelope': (params, fixture) => {
    const { message_id: messageId } = params.envelope as MessageEnvelope;
    const { from, to } = fixture;
    return asDelivery(from, grantedMessage(from.device, [to.device], { messageId, text: 'other' }));
  },
};

for (const [word, change] of Object.entries(conflicts)) {
  deliver.check(
    `conflict-${word}`,
    { source: '07 §C8', title: `a repeat with ${word} is state_conflict and appends nothing` },
    async (context) => {
      const fixture = await openDelivery(context);
      const { connection, to } = fixture;
      const params = delivery(fixture);
      const first = await expectAccepted(connection, params);
      const call = { method, params: change(params, fixture), what: word };
      await connection.expectRefused(call, 'state_conflict');
      assertEqual((await readTimeline(context, to)).length, 1, 'records after a conflict');
      assertEqual(await expectAccepted(connection, params), first, 'accepted_at after a conflict');
    },
  );
}

/** Faults of `message.send` that a delivery cannot have: of the session, or of sender boxes. */
const notOfDelivery = /^(?:from-another|sender-boxes|no-sender-device|self-)/;

for (const [word, [build, code]] of Object.entries(messageRefusals)) {
  if (notOfDelivery.test(word)) continue;
  deliver.check(
    `refused-${word}`,
    { source: '07 §C8', title: `a delivery with ${word} is ${code} and appends nothing` },
    async (context) => {
      const fixture = await openDelivery(context);
      const { connection, from, to } = fixture;
      const params = asDelivery(from, await build({ context, from, to }));
      await connection.expectRefused({ method, params, what: word }, code);
      assertEqual((await readTimeline(context, to)).length, 0, 'records after a refusal');
    },
  );
}

type Change = (params: JsonObject, fixture: DeliveryFixture) => JsonObject | Promise<JsonObject>;

/** Deliveries with one fault, and the accepted codes. */
const faults: Readonly<Record<string, readonly [Change, ...string[]]>> = {
  'no-certificate': [({ signer_certificate: _, ...others }) => others, 'bad_request'],
  'the-certificate-of-another-device': [
    async (params, { from }) => ({
      ...params,
      signer_certificate: (await from.account.device()).certificate,
    }),
    'bad_request',
  ],
  'the-certificate-of-another-account': [
    (params, { to }) => ({ ...params, signer_certificate: to.device.certificate }),
    'bad_request',
  ],
  'the-account-signature-of-the-certificate-altered': [
    (params, { from }) => {
      const { certificate } = from.device;
      const account_signature = tampered(certificate.account_signature);
      return { ...params, signer_certificate: { ...certificate, account_signature } };
    },
    'invalid_signature',
  ],
  'the-device-signature-of-the-certificate-altered': [
    (params, { from }) => {
      const { certificate } = from.device;
      const device_signature = tampered(certificate.device_signature);
      return { ...params, signer_certificate: { ...certificate, device_signature } };
    },
    'invalid_signature',
  ],
  'a-null-member': [(params) => ({ ...params, note: null }), 'bad_request'],
  'the-sender-as-recipient': [
    // The account is at home at the relay under test, which would otherwise be asked in vain.
    (_params, { to }) => {
      const recipients = [to.device.certificate];
      return asDelivery(to, { ...directMessage(to.device, { to: to.account.id, recipients }) });
    },
    'bad_request',
  ],
  'an-envelope-over-262144-bytes': [
    (_params, { from, to }) => {
      const sent = grantedMessage(from.device, [to.device]);
      return asDelivery(from, changeEnvelope(from.device, sent, { note: 'x'.repeat(262_144) }));
    },
    'request_too_large',
  ],
};

for (const [word, [change, ...codes]] of Object.entries(faults)) {
  deliver.check(
    `refused-${word}`,
    { source: '07 §C8', title: `a delivery with ${word} is ${codes.join(' or ')}` },
    async (context) => {
      const fixture = await openDelivery(context);
      const { connection, to } = fixture;
      const params = await change(delivery(fixture), fixture);
      await connection.expectRefused({ method, params, what: word }, ...codes);
      assertEqual((await readTimeline(context, to)).length, 0, 'records after a refusal');
    },
  );
}

deliver.check(
  'no-fallback',
  { source: '07 §C8', title: 'an invalid credential does not fall back to the public profile' },
  async (context) => {
    const fixture = await openDelivery(context, true);
    const { connection, from, to } = fixture;
    const authorization = grantFor(to.device, from.id, unixSeconds() - 60);
    const params = { ...delivery(fixture), authorization };
    await connection.expectRefused({ method, params }, 'forbidden');
    assertEqual((await readTimeline(context, to)).length, 0, 'records after a refusal');
  },
);

deliver.check(
  'after-refusal',
  { source: '07 §C8', title: 'a refusal leaves no result: the corrected delivery is accepted' },
  async (context) => {
    const fixture = await openDelivery(context);
    const { connection, to } = fixture;
    const params = delivery(fixture);
    const { authorization: _, ...without } = params;
    await connection.expectRefused({ method, params: without }, 'forbidden');
    await expectAccepted(connection, params);
    assertEqual((await readTimeline(context, to)).length, 1, 'records after the correction');
  },
);

deliver.check(
  'some-devices',
  { source: '07 §C8', title: 'accepts boxes of which only some are for current devices' },
  async (context) => {
    const fixture = await openDelivery(context);
    const { connection, from, to } = fixture;
    const unknown = await to.account.device();
    const sent = grantedMessage(from.device, [to.device, unknown]);
    await expectAccepted(connection, asDelivery(from, sent));
    assertEqual((await readTimeline(context, to)).length, 1, 'records of the current device');
  },
);

deliver.check(
  'unknown-recipient',
  { source: '07 §C8', title: 'a recipient whose home cannot be determined is target_not_local' },
  async (context) => {
    const { connection, from } = await openDelivery(context);
    const device = await context.account().device();
    const params = asDelivery(from, grantedMessage(from.device, [device]));
    await connection.expectRefused({ method, params }, 'target_not_local');
  },
);

deliver.check(
  'conflicting-recipient',
  {
    source: '07 §C8, §C4',
    title: 'a recipient with an unresolved route conflict is invalid_state',
  },
  async (context) => {
    const fixture = await openDelivery(context);
    const { connection, seat, to } = fixture;
    const known = JSON.parse(String(await connection.getRoute(to.account.id)));
    await connection.putRoute(await routeTo(to.account, seat, { revision: known.revision }));
    await connection.expectRefused({ method, params: delivery(fixture) }, 'invalid_state');
  },
);

export const deliverChecks = deliver.list;
