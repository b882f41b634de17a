/** Messages that are refused before acceptance; nothing is stored (04 §12.2, §13, §15.1). */
import type { ErrorCode, MessageEnvelope, MessageKeyBox } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import { unixSeconds } from '../fixtures/account.ts';
import { grantFor, inviteOf } from '../fixtures/contacts.ts';
import {
  changeEnvelope,
  contactPair,
  directMessage,
  grantedMessage,
  readTimeline,
  sendUntilDelivered,
} from '../fixtures/direct-messages.ts';
import { tampered } from '../fixtures/tampered.ts';
import type { TestAccount, TestContext } from '../fixtures/test-context.ts';

const send = checksOf('message.send');
const method = 'message.send';

type Party = Pick<TestAccount, 'account' | 'device'>;
type Parties = { readonly context: TestContext; readonly from: Party; readonly to: Party };
type Build = (parties: Parties) => JsonObject | Promise<JsonObject>;

const good: Build = ({ from, to }) => grantedMessage(from.device, [to.device]);

function envelopeOf(params: JsonObject): MessageEnvelope {
  return params.envelope as MessageEnvelope;
}

function boxesOf(params: JsonObject): MessageKeyBox[] {
  return params.recipient_boxes as unknown as MessageKeyBox[];
}

/** Requests between two accounts that must be refused, and the error code of each. */
export const messageRefusals: Readonly<Record<string, [Build, ErrorCode]>> = {
  'envelope-missing': [
    async (parties) => {
      const { envelope: _, ...rest } = await good(parties);
      return rest;
    },
    'bad_request',
  ],
  'envelope-signature': [
    async (parties) => {
      const params = await good(parties);
      const envelope = envelopeOf(params);
      const device_signature = tampered(envelope.device_signature);
      return { ...params, envelope: { ...envelope, device_signature } };
    },
    'invalid_signature',
  ],
  'envelope-altered': [
    async (parties) => {
      const params = await good(parties);
      return { ...params, envelope: { ...envelopeOf(params), note: 'added' } };
    },
    'invalid_signature',
  ],
  'envelope-type': [
    async (parties) => changeEnvelope(parties.from.device, await good(parties), { $type: 'x' }),
    'bad_request',
  ],
  'envelope-context': [
    async (parties) => {
      const params = await good(parties);
      const $context = parties.context.network.context;
      return { ...params, envelope: { ...envelopeOf(params), $context } };
    },
    'bad_request',
  ],
  'envelope-null': [
    async (parties) => changeEnvelope(parties.from.device, await good(parties), { note: null }),
    'bad_request',
  ],
  'message-id': [
    async (parties) =>
      changeEnvelope(parties.from.device, await good(parties), {
        message_id: 'msg_AAECAwQFBgcICQoLDA0ODB',
      }),
    'bad_request',
  ],
  'payload-missing': [
    async (parties) => {
      const params = await good(parties);
      const { payload, ...rest } = envelopeOf(params);
      const stray = { ...rest, ciphertext: payload.ciphertext } as unknown as JsonObject;
      return { ...params, envelope: stray };
    },
    'bad_request',
  ],
  'payload-alg': [
    async (parties) => {
      const params = await good(parties);
      const payload = { ...envelopeOf(params).payload, alg: 'AES-128-GCM' };
      return changeEnvelope(parties.from.device, params, { payload });
    },
    'bad_request',
  ],
  'payload-short': [
    async (parties) => {
      const params = await good(parties);
      const payload = { ...envelopeOf(params).payload, ciphertext: 'A'.repeat(20) };
      return changeEnvelope(parties.from.device, params, { payload });
    },
    'bad_request',
  ],
  'from-another-account': [({ from, to }) => grantedMessage(to.device, [from.device]), 'forbidden'],
  'from-another-device': [
    async ({ from, to }) => grantedMessage(await from.account.device(), [to.device]),
    'forbidden',
  ],
  'created-far-ahead': [
    ({ from, to }) =>
      grantedMessage(from.device, [to.device], { createdAt: unixSeconds() + 31_536_000 }),
    'clock_skew',
  ],
  'created-years-ago': [
    ({ from, to }) =>
      grantedMessage(from.device, [to.device], { createdAt: unixSeconds() - 315_360_000 }),
    'message_expired',
  ],
  'boxes-missing': [
    async (parties) => {
      const { recipient_boxes: _, ...rest } = await good(parties);
      return rest;
    },
    'bad_request',
  ],
  'boxes-empty': [
    async (parties) => ({ ...(await good(parties)), recipient_boxes: [] }),
    'bad_request',
  ],
  'boxes-nine': [
    async (parties) => {
      const params = await good(parties);
      const [box] = boxesOf(params) as [MessageKeyBox];
      const letters = [...'ABCDEFGHI'];
      const recipient_boxes = letters.map((letter) => ({
        ...box,
        device_id: `dev_${letter.repeat(21)}A`,
      }));
      return { ...params, recipient_boxes };
    },
    'bad_request',
  ],
  'boxes-same-device': [
    async (parties) => {
      const params = await good(parties);
      const [box] = boxesOf(params) as [MessageKeyBox];
      return { ...params, recipient_boxes: [box, box] };
    },
    'bad_request',
  ],
  'box-alg': [
    async (parties) => {
      const params = await good(parties);
      const [box] = boxesOf(params) as [MessageKeyBox];
      return { ...params, recipient_boxes: [{ ...box, alg: 'x' }] };
    },
    'bad_request',
  ],
  'box-sealed-key': [
    async (parties) => {
      const params = await good(parties);
      const [box] = boxesOf(params) as [MessageKeyBox];
      return { ...params, recipient_boxes: [{ ...box, sealed_key: box.sealed_key.slice(4) }] };
    },
    'bad_request',
  ],
  'sender-boxes-empty': [
    async (parties) => ({ ...(await good(parties)), sender_boxes: [] }),
    'bad_request',
  ],
  'no-recipient-device': [
    async ({ from, to }) => {
      const unknown = await to.account.device();
      const params = grantedMessage(from.device, [unknown]);
      return { ...params, authorization: grantFor(to.device, from.account.id) };
    },
    'device_unknown',
  ],
  'no-sender-device': [
    async ({ from, to }) => {
      const unknown = await from.account.device();
      return grantedMessage(from.device, [to.device], { senders: [unknown.certificate] });
    },
    'device_unknown',
  ],
  'grant-expired': [
    async (parties) => ({
      ...(await good(parties)),
      authorization: grantFor(parties.to.device, parties.from.account.id, unixSeconds() - 60),
    }),
    'forbidden',
  ],
  'grant-for-another': [
    async (parties) => ({
      ...(await good(parties)),
      authorization: grantFor(parties.to.device, parties.context.account().id),
    }),
    'forbidden',
  ],
  'grant-of-sender': [
    async (parties) => ({
      ...(await good(parties)),
      authorization: grantFor(parties.from.device, parties.to.account.id),
    }),
    'forbidden',
  ],
  'grant-malformed': [
    async (parties) => ({
      ...(await good(parties)),
      authorization: { ...grantFor(parties.to.device, parties.from.account.id), signatures: [] },
    }),
    'bad_request',
  ],
  'grant-of-removed-device': [
    async (parties) => {
      const removed = await parties.to.account.device();
      const authorization = grantFor(removed, parties.from.account.id);
      return { ...(await good(parties)), authorization };
    },
    'forbidden',
  ],
  'invite-expired': [
    async (parties) => ({
      ...(await good(parties)),
      authorization: inviteOf(parties.to.device, unixSeconds() - 60),
    }),
    'forbidden',
  ],
  'invite-signature': [
    async (parties) => {
      const invite = inviteOf(parties.to.device);
      const device_signature = tampered(invite.device_signature);
      return { ...(await good(parties)), authorization: { ...invite, device_signature } };
    },
    'invalid_signature',
  ],
  'authorization-other-type': [
    async (parties) => ({ ...(await good(parties)), authorization: { $type: 'x' } }),
    'bad_request',
  ],
  'no-credential': [
    async (parties) => {
      const { authorization: _, ...rest } = await good(parties);
      return rest;
    },
    'forbidden',
  ],
  'self-with-sender-boxes': [
    ({ from }) => {
      const recipients = [from.device.certificate];
      const message = directMessage(from.device, { to: from.account.id, recipients });
      return { ...message, sender_boxes: message.recipient_boxes };
    },
    'bad_request',
  ],
  'self-with-credential': [
    ({ from, to }) => {
      const recipients = [from.device.certificate];
      const message = directMessage(from.device, { to: from.account.id, recipients });
      return { ...message, authorization: grantFor(to.device, from.account.id) };
    },
    'bad_request',
  ],
  'self-no-device': [
    async ({ from }) => {
      const unknown = await from.account.device();
      return {
        ...directMessage(from.device, { to: from.account.id, recipients: [unknown.certificate] }),
      };
    },
    'device_unknown',
  ],
};

for (const [word, [build, code]] of Object.entries(messageRefusals)) {
  send.check(
    `refused-${word}`,
    { source: '04 §12.2, §13', title: `a message with ${word} is ${code}, nothing is stored` },
    async (context) => {
      const [from, to] = await contactPair(context);
      const params = await build({ context, from, to });
      await context.expectError(from.caller, { method, params }, code);
      assertEqual((await readTimeline(context, to)).length, 0, 'the recipient has no record');
      assertEqual((await readTimeline(context, from)).length, 0, 'the sender has no record');
    },
  );
}

send.check(
  'no-fallback',
  { source: '04 §11', title: 'an invalid credential does not fall back to public bootstrap' },
  async (context) => {
    const [from, to] = await contactPair(context, true);
    const authorization = grantFor(to.device, from.account.id, unixSeconds() - 60);
    const params = { ...grantedMessage(from.device, [to.device]), authorization };
    await context.expectError(from.caller, { method, params }, 'forbidden');
  },
);

send.check(
  'after-refusal',
  { source: '04 §15.1', title: 'a refusal stores no result; the corrected request is accepted' },
  async (context) => {
    const [from, to] = await contactPair(context);
    const params = grantedMessage(from.device, [to.device]);
    const { authorization: _, ...without } = params;
    await context.expectError(from.caller, { method, params: without }, 'forbidden');
    const { message_id } = envelopeOf(params);
    const unknown = { method: 'message.delivery.status', params: { message_id } };
    await context.expectError(from.caller, unknown, 'not_found', 'message_expired');
    const status = await sendUntilDelivered(context, from, params);
    assertEqual(status.status, 'target_accepted', 'the corrected request is delivered');
  },
);

send.check(
  'removed-sender',
  { source: '04 §12.1', title: 'a sender whose device was removed is unauthorized' },
  async (context) => {
    const from = await context.testAccount();
    const to = await context.testAccount();
    const accountSession = await context.accountSession(from.account, 'https');
    await context.expectOk(accountSession, 'device.state.publish', await from.account.state([]));
    const params = grantedMessage(from.device, [to.device]);
    await context.expectError(from.caller, { method, params }, 'unauthorized');
  },
);

export const messageRefusalChecks = send.list;
