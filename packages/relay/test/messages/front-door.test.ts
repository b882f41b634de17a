import { errorCodeOfRpc, type MethodName } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { Person } from '../fixtures/person.ts';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';
import type { WebSocketClient } from '../support/websocket.ts';

/** Calls a method as one client; returns a code, and the response object if the code is `ok`. */
type Way = (method: MethodName, params: unknown, verb?: string) => Promise<Answer>;
interface Answer {
  readonly code: string | undefined;
  readonly result: unknown;
}

const relay = servedRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');

async function overHttp(person: Person, mode: string): Promise<Way> {
  const logIn = mode === 'account' ? relay.logInAccount(person) : relay.logInDevice(person);
  const { token } = await logIn;
  const client = relay.http();
  return async (method, params, verb) => {
    const answer = await client.call(method, params, { token, ...(verb && { verb }) });
    const code = codeOf(answer);
    const result = code === 'ok' && answer.text !== '' ? JSON.parse(answer.text) : null;
    return { code, result };
  };
}

async function overSocket(person: Person, mode: string): Promise<Way> {
  const socket = await relay.socket();
  if (mode === 'account') await relay.bindAccount(socket, person);
  else await relay.bindDevice(socket, person.device());
  return async (method, params) => answerOf(await socket.call(method, params));
}

function answerOf(answer: Awaited<ReturnType<WebSocketClient['call']>>): Answer {
  if (answer.error === undefined) return { code: 'ok', result: answer.result };
  return { code: errorCodeOfRpc(answer.error.code), result: null };
}

describe.each([
  ['HTTP', overHttp],
  ['WebSocket', overSocket],
])('over %s', (transport, way) => {
  test('03, 04: every method of accounts and messages, once each', async () => {
    const asAnn = await way(ann, 'device');
    const asBen = await way(ben, 'device');
    const byKey = await way(ann, 'account');

    const profile = ben.profile({ nickname: 'Ben é😀' });
    expect(await asBen('profile.publish', profile)).toEqual({ code: 'ok', result: null });
    expect(await asAnn('profile.resolve', { account: ben.account })).toEqual({
      code: 'ok',
      result: { profile, signer_certificate: ben.device().certificate },
    });
    const found = await asAnn('device.state.resolve', { account: ben.account });
    expect(found.result).toMatchObject({ certificates: [ben.device().certificate] });
    const query = ann.stateQuery(ben.account, ben.invite());
    expect(await asAnn('device.state.resolve', query, 'POST')).toEqual(found);

    const state = await ann.state();
    expect(await byKey('device.state.publish', state)).toEqual({
      code: 'ok',
      result: { status: 'accepted' },
    });
    const route = await ann.route();
    const published = await byKey('account.route.publish', route);
    expect(published.result).toMatchObject(route as unknown as JsonObject);
    expect(await asBen('account.route.resolve', { account: ann.account })).toEqual(published);

    const message = ann.message(ben, { senders: ['laptop'], text: 'grüß dich 😀' });
    const accepted = { status: 'target_accepted', accepted_at: relay.clock.now() };
    expect(await asAnn('message.send', message)).toEqual({ code: 'ok', result: accepted });
    const { message_id } = message.envelope;
    expect((await asAnn('message.delivery.status', { message_id })).result).toEqual(accepted);
    expect((await asBen('message.timeline.sync', { after: -1, limit: 10 })).result).toEqual({
      items: [
        {
          sequence: 0,
          accepted_at: relay.clock.now(),
          envelope: message.envelope,
          key_box: message.recipient_boxes[0],
        },
      ],
      certificates: [ann.device().certificate],
      has_more: false,
    });
  });

  test('02 §2: refusals are the same over both transports', async () => {
    const asAnn = await way(ann, 'device');
    const byKey = await way(ann, 'account');
    const message = ann.message(ben);
    const codes = async (all: Promise<Answer>[]) =>
      (await Promise.all(all)).map(({ code }) => code);
    expect(
      await codes([
        asAnn('message.send', message),
        asAnn('message.send', { ...message, recipient_boxes: [] }),
        asAnn('message.send', { ...message, envelope: { ...message.envelope, to: ann.account } }),
        byKey('message.send', message),
        asAnn('message.delivery.status', { message_id: message.envelope.message_id }),
        asAnn('message.timeline.sync', { after: 0 }),
        asAnn('message.timeline.sync', { limit: 0 }),
        asAnn('profile.resolve', { account: ben.account }),
        asAnn('profile.resolve', { account: 'neo:1:x' }),
        asAnn('device.state.resolve', { account: ben.account }),
        byKey('device.state.resolve', { account: ben.account }),
        byKey('profile.resolve', { account: ben.account }),
        asAnn('account.route.publish', await ann.route()),
        byKey('account.route.publish', await ann.route({ revision: 1 })),
        byKey('device.state.publish', await ben.state()),
        byKey('device.state.publish', await ann.state({ revision: 1 })),
        asAnn('profile.publish', { ...ann.profile(), nickname: 'Eve' }),
      ]),
    ).toEqual([
      'forbidden',
      'bad_request',
      'invalid_signature',
      'forbidden',
      'not_found',
      'bad_request',
      'bad_request',
      'not_found',
      'bad_request',
      'forbidden',
      'forbidden',
      'forbidden',
      'forbidden',
      'stale_state',
      'forbidden',
      'stale_state',
      'invalid_signature',
    ]);
  });

  test('04 §3: the largest envelope can be sent and read', async () => {
    const asAnn = await way(ann, 'device');
    const room = 262_144 - JSON.stringify(ann.message(ann).envelope).length;
    // Four characters of base64url are three bytes of ciphertext.
    const text = 'x'.repeat(Math.floor(room / 4) * 3);
    const message = ann.message(ann, { text });
    expect(await asAnn('message.send', message)).toMatchObject({ code: 'ok' });
    const { result } = await asAnn('message.timeline.sync', {});
    expect(result).toMatchObject({ items: [{ envelope: message.envelope }] });
  });

  test(`${transport}: what was answered exists after a restart`, async () => {
    const message = ann.message(ann);
    const before = await (await way(ann, 'device'))('message.send', message);
    await relay.restart();
    const again = await way(ann, 'device');
    expect(await again('message.send', message)).toEqual(before);
    const { result } = await again('message.timeline.sync', {});
    expect((result as { items: unknown[] }).items).toHaveLength(1);
  });
});

describe('notices over WebSocket', () => {
  test('04 §19: sender and recipient are notified of a message, but not of a repeat', async () => {
    const sender = await relay.socket();
    const receiver = await relay.socket();
    await relay.bindDevice(sender, ann.device());
    await relay.bindDevice(receiver, ben.device());
    const message = ann.message(ben, { authorization: ben.grant(ann), senders: ['laptop'] });
    await sender.call('message.send', message);
    const told = { method: 'message.timeline.changed', params: { head: 0 } };
    expect(await receiver.notification()).toMatchObject(told);
    expect(await sender.notification()).toMatchObject(told);
    await sender.call('message.send', message);
    expect(await receiver.notificationsSoFar()).toEqual([]);
    expect(await sender.notificationsSoFar()).toEqual([]);
  });

  test('03 §6: a removed device gets no notification and can do nothing; the others are notified', async () => {
    const phone = await relay.socket();
    const laptop = await relay.socket();
    await relay.bindDevice(phone, ann.device('phone'));
    await relay.bindDevice(laptop, ann.device('laptop'));
    const { token } = await relay.logInDevice(ann, 'laptop');
    const state = await ann.state({ devices: ['phone'] });
    expect(answerOf(await phone.call('device.state.publish', state)).code).toBe('ok');
    expect(await phone.notification()).toMatchObject({
      method: 'device.state.changed',
      params: { revision: state.revision },
    });
    expect(await laptop.notificationsSoFar()).toEqual([]);
    expect(answerOf(await laptop.call('message.timeline.sync')).code).toBe('unauthorized');
    expect(codeOf(await relay.http().call('message.timeline.sync', {}, { token }))).toBe(
      'unauthorized',
    );
  });

  test('04 §16: a queued message is delivered when its account comes home', async () => {
    const socket = await relay.socket();
    await relay.bindDevice(socket, ann.device());
    const eve = await stranger();
    const message = ann.message(eve, { authorization: eve.grant(ann) });
    const sent = answerOf(await socket.call('message.send', message));
    expect(sent.result).toMatchObject({ status: 'delivering' });
    await eve.moveIn();
    const reader = await relay.socket();
    await relay.bindDevice(reader, eve.device());
    relay.clock.advance(3_600);
    expect(await reader.notification()).toMatchObject({ params: { head: 0 } });
    const { message_id } = message.envelope;
    const status = answerOf(await socket.call('message.delivery.status', { message_id }));
    expect(status.result).toMatchObject({ status: 'target_accepted' });
  });
});

/** A person with a device who is not at home here yet. */
async function stranger(): Promise<Person> {
  const eve = new Person(relay, 'eve');
  await eve.addDevice('phone');
  return eve;
}
