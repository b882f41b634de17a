import {
  canonicalJson,
  type ErrorCode,
  type JsonObject,
  type MessageEnvelope,
  type MessageKeyBox,
} from '@posthouse/protocol';
import { demand } from '../assert.ts';
import { checksOf } from '../check.ts';
import { type Device, unixSeconds } from '../fixtures/account.ts';
import { grantedMail, mail, resignedMail } from '../fixtures/direct-messages.ts';
import { flipped } from '../fixtures/tampered.ts';
import type { Resident, Stage } from '../fixtures/test-context.ts';
import { grantFor, inviteOf } from './device-query.ts';

const send = checksOf('message.send');
const method = 'message.send';

/** Two residents; the second has no profile, so that only a credential opens its door. */
async function pair(stage: Stage, publicDiscovery?: boolean): Promise<[Resident, Resident]> {
  const options = publicDiscovery === undefined ? {} : { publicDiscovery };
  return [await stage.resident(), await stage.resident(options)];
}

/** Entries a device's timeline holds. */
async function timelineOf(stage: Stage, { caller }: Pick<Resident, 'caller'>) {
  const page = await stage.succeed(caller, 'message.timeline.sync');
  return (page as unknown as { items: { sequence: number; envelope: MessageEnvelope }[] }).items;
}

/** Sends, and waits by asking again until delivery has ended. */
async function delivered(stage: Stage, from: Resident, params: JsonObject): Promise<JsonObject> {
  let status = (await stage.succeed(from.caller, method, params)) as JsonObject;
  const { message_id } = params.envelope as MessageEnvelope;
  for (let tries = 0; status.status === 'delivering' && tries < 100; tries += 1) {
    const answer = await stage.succeed(from.caller, 'message.delivery.status', { message_id });
    status = answer as JsonObject;
  }
  return status;
}

const credentials: Readonly<
  Record<string, [(from: Resident, to: Resident) => JsonObject, boolean | undefined]>
> = {
  grant: [(from, to) => ({ authorization: grantFor(to.device, from.account.id) }), undefined],
  invite: [(_from, to) => ({ authorization: inviteOf(to.device) }), false],
  public: [() => ({}), true],
};

for (const [word, [credential, publicDiscovery]] of Object.entries(credentials)) {
  send.check(
    `delivers-${word}`,
    { source: '04 §11, §12', title: `delivers once to the recipient's timeline by ${word}` },
    async (stage) => {
      const [from, to] = await pair(stage, publicDiscovery);
      const recipients = [to.device.certificate];
      const message = mail(from.device, { to: to.account.id, recipients });
      const params = { ...message, ...credential(from, to) } as JsonObject;
      const status = await delivered(stage, from, params);
      demand(status.status === 'target_accepted', `target_accepted, not ${status.status}`);
      demand(status.error === undefined, 'a success has no error');
      const [entry, ...more] = await timelineOf(stage, to);
      demand(more.length === 0, 'exactly one record');
      demand(
        entry !== undefined && canonicalJson(entry.envelope) === canonicalJson(message.envelope),
        'the envelope is the one that was sent',
      );
      demand((await timelineOf(stage, from)).length === 0, 'no sent record without sender boxes');
    },
  );
}

send.check(
  'sent-record',
  { source: '04 §12.1, §17.1', title: 'sender boxes make one sent record for own devices' },
  async (stage) => {
    const [from, to] = await pair(stage);
    const senders = [from.device.certificate];
    const params = grantedMail(from.device, [to.device], { senders });
    await delivered(stage, from, params);
    const [entry, ...more] = await timelineOf(stage, from);
    demand(entry !== undefined && more.length === 0, 'exactly one sent record');
    const [received] = await timelineOf(stage, to);
    demand(received !== undefined, 'the recipient has its record');
  },
);

send.check(
  'self',
  { source: '04 §12.3', title: 'self-delivery ends at once in exactly one record' },
  async (stage) => {
    const from = await stage.resident({ devices: 2 });
    const recipients = from.devices.map(({ certificate }) => certificate);
    const message = mail(from.device, { to: from.account.id, recipients });
    const status = (await stage.succeed(from.caller, method, { ...message })) as JsonObject;
    demand(status.status === 'target_accepted', 'target_accepted directly');
    demand((await timelineOf(stage, from)).length === 1, 'one record');
  },
);

send.check(
  'unknown-account',
  { source: '04 §14.2', title: 'a recipient whose home is unknown stays delivering' },
  async (stage) => {
    const from = await stage.resident();
    const stranger = await stage.account().device();
    const params = grantedMail(from.device, [stranger]);
    const status = (await stage.succeed(from.caller, method, params)) as JsonObject;
    demand(status.status === 'delivering', 'accepted and delivering');
    const again = (await stage.succeed(from.caller, method, params)) as JsonObject;
    demand(again.accepted_at === status.accepted_at, 'a repeat keeps accepted_at');
  },
);

send.check(
  'repeat',
  { source: '04 §15.1', title: 'an identical repeat gets the same result and adds nothing' },
  async (stage) => {
    const [from, to] = await pair(stage);
    const senders = [from.device.certificate];
    const params = grantedMail(from.device, [to.device], { senders });
    const first = await delivered(stage, from, params);
    const again = (await stage.succeed(from.caller, method, params)) as JsonObject;
    demand(again.status === first.status, 'the same status');
    demand(again.accepted_at === first.accepted_at, 'accepted_at unchanged');
    demand((await timelineOf(stage, to)).length === 1, 'one received record');
    demand((await timelineOf(stage, from)).length === 1, 'one sent record');
  },
);

send.check(
  'repeat-other-transport',
  { source: '04 §15.1', title: 'a repeat over the other transport is the same repeat' },
  async (stage) => {
    const [from, to] = await pair(stage);
    const params = grantedMail(from.device, [to.device]);
    const first = await delivered(stage, from, params);
    const other = await stage.visitor(stage.otherTransport);
    await stage.enterDevice(other, from.device);
    const again = (await stage.succeed(other, method, params)) as JsonObject;
    demand(again.accepted_at === first.accepted_at, 'accepted_at unchanged');
    demand((await timelineOf(stage, to)).length === 1, 'one record');
  },
);

send.check(
  'same-time',
  { source: '04 §15.1', title: 'the same request several times at once is accepted once' },
  async (stage) => {
    const [from, to] = await pair(stage);
    const params = grantedMail(from.device, [to.device]);
    const again = () => stage.succeed(from.caller, method, params);
    const answers = await Promise.all(Array.from({ length: 8 }, again));
    const times = new Set(answers.map((answer) => (answer as JsonObject).accepted_at));
    demand(times.size === 1, 'one acceptance');
    demand((await timelineOf(stage, to)).length === 1, 'one record');
  },
);

/** The same logical key with other content. */
const conflicts: Readonly<
  Record<string, (params: JsonObject, from: Device, to: Device) => JsonObject>
> = {
  'another-target': (params, from) => {
    const { message_id } = params.envelope as MessageEnvelope;
    const message = mail(from, {
      to: from.account.id,
      recipients: [from.certificate],
      messageId: message_id,
    });
    return { ...message };
  },
  'another-payload': (params, from, to) => {
    const { message_id } = params.envelope as MessageEnvelope;
    return grantedMail(from, [to], { messageId: message_id, text: 'other' });
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
    async (stage) => {
      const [from, to] = await pair(stage);
      // The second device is not registered, which leaves the message deliverable (04 §13).
      const unregistered = await to.account.device();
      const params = grantedMail(from.device, [to.device, unregistered]);
      const first = await delivered(stage, from, params);
      const other = change(params, from.device, to.device);
      await stage.fail(from.caller, { method, params: other }, 'state_conflict');
      const again = (await stage.succeed(from.caller, method, params)) as JsonObject;
      demand(again.accepted_at === first.accepted_at, 'the first result stands');
    },
  );
}

type Parties = { readonly stage: Stage; readonly from: Resident; readonly to: Resident };
type Build = (parties: Parties) => JsonObject | Promise<JsonObject>;

const good: Build = ({ from, to }) => grantedMail(from.device, [to.device]);

function envelopeOf(params: JsonObject): MessageEnvelope {
  return params.envelope as MessageEnvelope;
}

function boxesOf(params: JsonObject): MessageKeyBox[] {
  return params.recipient_boxes as unknown as MessageKeyBox[];
}

/** Requests that must be refused before acceptance, between two residents. */
const refusals: Readonly<Record<string, [Build, ErrorCode]>> = {
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
      const device_signature = flipped(envelope.device_signature);
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
    async (parties) => resignedMail(parties.from.device, await good(parties), { $type: 'x' }),
    'bad_request',
  ],
  'envelope-context': [
    async (parties) => {
      const params = await good(parties);
      const $context = parties.stage.network.context;
      return { ...params, envelope: { ...envelopeOf(params), $context } };
    },
    'bad_request',
  ],
  'envelope-null': [
    async (parties) => resignedMail(parties.from.device, await good(parties), { note: null }),
    'bad_request',
  ],
  'message-id': [
    async (parties) =>
      resignedMail(parties.from.device, await good(parties), {
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
      return resignedMail(parties.from.device, params, { payload });
    },
    'bad_request',
  ],
  'payload-short': [
    async (parties) => {
      const params = await good(parties);
      const payload = { ...envelopeOf(params).payload, ciphertext: 'A'.repeat(20) };
      return resignedMail(parties.from.device, params, { payload });
    },
    'bad_request',
  ],
  'from-another-account': [({ from, to }) => grantedMail(to.device, [from.device]), 'forbidden'],
  'from-another-device': [
    async ({ from, to }) => grantedMail(await from.account.device(), [to.device]),
    'forbidden',
  ],
  'created-far-ahead': [
    ({ from, to }) =>
      grantedMail(from.device, [to.device], { createdAt: unixSeconds() + 31_536_000 }),
    'clock_skew',
  ],
  'created-years-ago': [
    ({ from, to }) =>
      grantedMail(from.device, [to.device], { createdAt: unixSeconds() - 315_360_000 }),
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
      const params = grantedMail(from.device, [unknown]);
      return { ...params, authorization: grantFor(to.device, from.account.id) };
    },
    'device_unknown',
  ],
  'no-sender-device': [
    async ({ from, to }) => {
      const unknown = await from.account.device();
      return grantedMail(from.device, [to.device], { senders: [unknown.certificate] });
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
      authorization: grantFor(parties.to.device, parties.stage.account().id),
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
      const device_signature = flipped(invite.device_signature);
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
      const message = mail(from.device, { to: from.account.id, recipients });
      return { ...message, sender_boxes: message.recipient_boxes };
    },
    'bad_request',
  ],
  'self-with-credential': [
    ({ from, to }) => {
      const recipients = [from.device.certificate];
      const message = mail(from.device, { to: from.account.id, recipients });
      return { ...message, authorization: grantFor(to.device, from.account.id) };
    },
    'bad_request',
  ],
  'self-no-device': [
    async ({ from }) => {
      const unknown = await from.account.device();
      return { ...mail(from.device, { to: from.account.id, recipients: [unknown.certificate] }) };
    },
    'device_unknown',
  ],
};

for (const [word, [build, code]] of Object.entries(refusals)) {
  send.check(
    `refused-${word}`,
    { source: '04 §12.2, §13', title: `a message with ${word} is ${code}, nothing is stored` },
    async (stage) => {
      const [from, to] = await pair(stage);
      const params = await build({ stage, from, to });
      await stage.fail(from.caller, { method, params }, code);
      demand((await timelineOf(stage, to)).length === 0, 'the recipient has no record');
      demand((await timelineOf(stage, from)).length === 0, 'the sender has no record');
    },
  );
}

send.check(
  'no-fallback',
  { source: '04 §11', title: 'an invalid credential does not fall back to public bootstrap' },
  async (stage) => {
    const [from, to] = await pair(stage, true);
    const authorization = grantFor(to.device, from.account.id, unixSeconds() - 60);
    const params = { ...grantedMail(from.device, [to.device]), authorization };
    await stage.fail(from.caller, { method, params }, 'forbidden');
  },
);

send.check(
  'some-devices-unavailable',
  { source: '04 §13', title: 'some unavailable devices do not block a message' },
  async (stage) => {
    const [from, to] = await pair(stage);
    const unknown = await to.account.device();
    const params = {
      ...grantedMail(from.device, [to.device, unknown]),
      authorization: grantFor(to.device, from.account.id),
    };
    const status = await delivered(stage, from, params);
    demand(status.status === 'target_accepted', 'target_accepted');
  },
);

for (const bytes of [262_144, 262_145]) {
  send.check(
    `envelope-${bytes}`,
    {
      source: '04 §3',
      title: `an envelope of ${bytes} bytes ${bytes > 262_144 ? 'is request_too_large' : 'fits'}`,
    },
    async (stage) => {
      const [from, to] = await pair(stage);
      const empty = resignedMail(from.device, grantedMail(from.device, [to.device]), { note: '' });
      const note = 'x'.repeat(bytes - JSON.stringify(empty.envelope).length);
      const params = resignedMail(from.device, empty, { note });
      if (bytes > 262_144) {
        await stage.fail(from.caller, { method, params }, 'request_too_large');
      } else {
        const status = await delivered(stage, from, params);
        demand(status.status === 'target_accepted', 'the largest envelope is delivered');
        const [entry] = await timelineOf(stage, to);
        demand((entry?.envelope as JsonObject | undefined)?.note === note, 'and read back whole');
      }
    },
  );
}

send.check(
  'after-refusal',
  { source: '04 §15.1', title: 'a refusal leaves no result, the corrected request is taken' },
  async (stage) => {
    const [from, to] = await pair(stage);
    const params = grantedMail(from.device, [to.device]);
    const { authorization: _, ...without } = params;
    await stage.fail(from.caller, { method, params: without }, 'forbidden');
    const { message_id } = envelopeOf(params);
    const unknown = { method: 'message.delivery.status', params: { message_id } };
    await stage.fail(from.caller, unknown, 'not_found', 'message_expired');
    const status = await delivered(stage, from, params);
    demand(status.status === 'target_accepted', 'the corrected request is delivered');
  },
);

send.check(
  'removed-sender',
  { source: '04 §12.1', title: 'a sender whose device was removed is unauthorized' },
  async (stage) => {
    const from = await stage.resident();
    const to = await stage.resident();
    const keyHolder = await stage.keyHolder(from.account, 'https');
    await stage.succeed(keyHolder, 'device.state.publish', await from.account.state([]));
    const params = grantedMail(from.device, [to.device]);
    await stage.fail(from.caller, { method, params }, 'unauthorized');
  },
);

export const messageSendChecks = send.list;
