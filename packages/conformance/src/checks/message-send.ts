/** Sending direct messages: delivery, repeats, conflicts and sizes (04 §3, §11 to §15). */
import type { MessageEnvelope } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../assert.ts';
import { checksOf } from '../check.ts';
import type { Device } from '../fixtures/account.ts';
import { grantFor, inviteOf } from '../fixtures/contacts.ts';
import {
  changeEnvelope,
  contactPair,
  directMessage,
  grantedMessage,
  readTimeline,
  sendUntilDelivered,
} from '../fixtures/direct-messages.ts';
import type { TestAccount } from '../fixtures/test-context.ts';

const send = checksOf('message.send');
const method = 'message.send';

const credentials: Readonly<
  Record<string, [(from: TestAccount, to: TestAccount) => JsonObject, boolean | undefined]>
> = {
  grant: [(from, to) => ({ authorization: grantFor(to.device, from.account.id) }), undefined],
  invite: [(_from, to) => ({ authorization: inviteOf(to.device) }), false],
  public: [() => ({}), true],
};

for (const [word, [credential, publicDiscovery]] of Object.entries(credentials)) {
  send.check(
    `delivers-${word}`,
    { source: '04 §11, §12', title: `delivers once to the recipient's timeline by ${word}` },
    async (context) => {
      const [from, to] = await contactPair(context, publicDiscovery);
      const recipients = [to.device.certificate];
      const message = directMessage(from.device, { to: to.account.id, recipients });
      const params = { ...message, ...credential(from, to) } as JsonObject;
      const status = await sendUntilDelivered(context, from, params);
      assertConforms(status.status === 'target_accepted', `target_accepted, not ${status.status}`);
      assertEqual(status.error, undefined, 'a success has no error');
      const [entry, ...more] = await readTimeline(context, to);
      assertEqual(more.length, 0, 'exactly one record');
      assertConforms(
        entry !== undefined && canonicalJson(entry.envelope) === canonicalJson(message.envelope),
        'the envelope is the one that was sent',
      );
      assertEqual(
        (await readTimeline(context, from)).length,
        0,
        'no sent record without sender boxes',
      );
    },
  );
}

send.check(
  'sent-record',
  { source: '04 §12.1, §17.1', title: 'sender boxes cause one sent record for the own devices' },
  async (context) => {
    const [from, to] = await contactPair(context);
    const senders = [from.device.certificate];
    const params = grantedMessage(from.device, [to.device], { senders });
    await sendUntilDelivered(context, from, params);
    const [entry, ...more] = await readTimeline(context, from);
    assertConforms(entry !== undefined && more.length === 0, 'exactly one sent record');
    const [received] = await readTimeline(context, to);
    assertConforms(received !== undefined, 'the recipient has its record');
  },
);

send.check(
  'self',
  { source: '04 §12.3', title: 'self-delivery ends at once in exactly one record' },
  async (context) => {
    const from = await context.testAccount({ devices: 2 });
    const recipients = from.devices.map(({ certificate }) => certificate);
    const message = directMessage(from.device, { to: from.account.id, recipients });
    const status = (await context.expectOk(from.caller, method, { ...message })) as JsonObject;
    assertEqual(status.status, 'target_accepted', 'target_accepted directly');
    assertEqual((await readTimeline(context, from)).length, 1, 'one record');
  },
);

send.check(
  'unknown-account',
  { source: '04 §14.2', title: 'a recipient whose home is unknown stays delivering' },
  async (context) => {
    const from = await context.testAccount();
    const stranger = await context.account().device();
    const params = grantedMessage(from.device, [stranger]);
    const status = (await context.expectOk(from.caller, method, params)) as JsonObject;
    assertEqual(status.status, 'delivering', 'accepted and delivering');
    const again = (await context.expectOk(from.caller, method, params)) as JsonObject;
    assertEqual(again.accepted_at, status.accepted_at, 'a repeat keeps accepted_at');
  },
);

send.check(
  'repeat',
  { source: '04 §15.1', title: 'an identical repeat gets the same result and adds nothing' },
  async (context) => {
    const [from, to] = await contactPair(context);
    const senders = [from.device.certificate];
    const params = grantedMessage(from.device, [to.device], { senders });
    const first = await sendUntilDelivered(context, from, params);
    const again = (await context.expectOk(from.caller, method, params)) as JsonObject;
    assertEqual(again.status, first.status, 'the same status');
    assertEqual(again.accepted_at, first.accepted_at, 'accepted_at unchanged');
    assertEqual((await readTimeline(context, to)).length, 1, 'one received record');
    assertEqual((await readTimeline(context, from)).length, 1, 'one sent record');
  },
);

send.check(
  'repeat-other-transport',
  { source: '04 §15.1', title: 'a repeat over the other transport gets the same result' },
  async (context) => {
    const [from, to] = await contactPair(context);
    const params = grantedMessage(from.device, [to.device]);
    const first = await sendUntilDelivered(context, from, params);
    const other = await context.anonymous(context.otherTransport);
    await context.authenticateDevice(other, from.device);
    const again = (await context.expectOk(other, method, params)) as JsonObject;
    assertEqual(again.accepted_at, first.accepted_at, 'accepted_at unchanged');
    assertEqual((await readTimeline(context, to)).length, 1, 'one record');
  },
);

send.check(
  'same-time',
  { source: '04 §15.1', title: 'the same request several times at once is accepted once' },
  async (context) => {
    const [from, to] = await contactPair(context);
    const params = grantedMessage(from.device, [to.device]);
    const again = () => context.expectOk(from.caller, method, params);
    const answers = await Promise.all(Array.from({ length: 8 }, again));
    const times = new Set(answers.map((answer) => (answer as JsonObject).accepted_at));
    assertEqual(times.size, 1, 'one acceptance');
    assertEqual((await readTimeline(context, to)).length, 1, 'one record');
  },
);

/** Changes of a request with the same logical key. */
const conflicts: Readonly<
  Record<string, (params: JsonObject, from: Device, to: Device) => JsonObject>
> = {
  'another-target': (params, from) => {
    const { message_id } = params.envelope as MessageEnvelope;
    const message = directMessage(from, {
      to: from.account.id,
      recipients: [from.certificate],
      messageId: message_id,
    });
    return { ...message };
  },
  'another-payload': (params, from, to) => {
    const { message_id } = params.envelope as MessageEnvelope;
    return grantedMessage(from, [to], { messageId: message_id, text: 'other' });
  },
  'unknown-member': (params) => ({ ...params, note: 1 }),
  'boxes-in-another-order': (params) => ({
    ...params,
    recipient_boxes: (params.recipient_boxes as JsonObject[]).toReversed(),
  }),
  'one-box-less': (params) => ({
    ...params,
    recipient_boxes: (params.recipient_boxes as JsonObject[]).slice(0, 1),
  }),
  'sender-boxes': (params) => ({
    ...params,
    sender_boxes: (params.recipient_boxes as JsonObject[]).slice(0, 1),
  }),
  'without-credential': ({ authorization: _, ...params }) => params,
};

for (const [word, change] of Object.entries(conflicts)) {
  send.check(
    `conflict-${word}`,
    { source: '04 §15.1', title: `the same key with ${word} is state_conflict` },
    async (context) => {
      const [from, to] = await contactPair(context);
      // The second device is not registered; the message is deliverable nevertheless (04 §13).
      const unregistered = await to.account.device();
      const params = grantedMessage(from.device, [to.device, unregistered]);
      const first = await sendUntilDelivered(context, from, params);
      const other = change(params, from.device, to.device);
      await context.expectError(from.caller, { method, params: other }, 'state_conflict');
      const again = (await context.expectOk(from.caller, method, params)) as JsonObject;
      assertEqual(again.accepted_at, first.accepted_at, 'the first accepted_at');
    },
  );
}

send.check(
  'some-devices-unavailable',
  { source: '04 §13', title: 'a message is delivered although some devices are unavailable' },
  async (context) => {
    const [from, to] = await contactPair(context);
    const unknown = await to.account.device();
    const params = {
      ...grantedMessage(from.device, [to.device, unknown]),
      authorization: grantFor(to.device, from.account.id),
    };
    const status = await sendUntilDelivered(context, from, params);
    assertEqual(status.status, 'target_accepted', 'target_accepted');
  },
);

for (const bytes of [262_144, 262_145]) {
  send.check(
    `envelope-${bytes}`,
    {
      source: '04 §3',
      title: `an envelope of ${bytes} bytes ${bytes > 262_144 ? 'is request_too_large' : 'fits'}`,
    },
    async (context) => {
      const [from, to] = await contactPair(context);
      const empty = changeEnvelope(from.device, grantedMessage(from.device, [to.device]), {
        note: '',
      });
      const note = 'x'.repeat(bytes - JSON.stringify(empty.envelope).length);
      const params = changeEnvelope(from.device, empty, { note });
      if (bytes > 262_144) {
        await context.expectError(from.caller, { method, params }, 'request_too_large');
      } else {
        const status = await sendUntilDelivered(context, from, params);
        assertEqual(status.status, 'target_accepted', 'the largest envelope is delivered');
        const [entry] = await readTimeline(context, to);
        assertEqual(
          (entry?.envelope as JsonObject | undefined)?.note,
          note,
          'the envelope is stored unchanged',
        );
      }
    },
  );
}

export const messageSendChecks = send.list;
