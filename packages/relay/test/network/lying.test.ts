/** Lies of another relay, and what this one and its clients do: the rows of docs/federation.md. */

import { type RelayDescriptor, utf8 } from '@posthouse/protocol';
import { deriveRouteKey } from '@posthouse/protocol/federation';
import type { JsonObject } from '@posthouse/protocol/json';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ForeignRelay } from '../federation/foreign-relay.ts';
import { Person } from '../fixtures/person.ts';
import { network } from '../support/in-process-relay.ts';
import { unlimitedHandshakes } from '../support/served-network.ts';
import { servedRelay } from '../support/served-relay.ts';
import { LyingRelay } from './lying-relay.ts';
import { differences } from './received.ts';
import { fateOf, send, statusOf, until, untilInTime } from './relay-network.ts';

const relay = servedRelay({
  limits: {
    ...unlimitedHandshakes,
    ...{ peerFaults: 1_000, relayRate: 50, relayBurst: 50, deliveryRetryMost: 5 },
    ...{
      relayStreamRate: 20,
      relayStreamBurst: 80,
      relayBytes: 1_000_000,
      relayBytesBurst: 1_200_000,
    },
  },
});
const ann = relay.person('ann');
let liar: LyingRelay;
let liam: Person;
beforeEach(async () => {
  liar = await LyingRelay.start(relay);
  liam = await liar.account('liam');
});
afterEach(() => liar[Symbol.asyncDispose]());

const session = () => ann.session();
/** Asks as ann; `ok` or the code that her client gets. */
async function codeOf(method: string, params: object = { account: liam.account }) {
  try {
    await relay.call(method, params, { session: session() });
    return 'ok';
  } catch (error) {
    return (error as { code: string }).code;
  }
}
const profileOf = (person: Person) => ({
  profile: person.profile(),
  signer_certificate: person.device().certificate,
});
/** Makes it answer a question about its account with a result. */
const answering = (method: string, result: unknown) => {
  liar.lies[method] = () => ({ result });
};

describe('07 §C6, §C7: as home relay of an account, it answers with', () => {
  test('the truth: a control', async () => {
    answering('profile.resolve', profileOf(liam));
    answering('device.state.resolve', await liam.state({ revision: 5 }));
    expect(await codeOf('profile.resolve')).toBe('ok');
    expect(await codeOf('device.state.resolve')).toBe('ok');
  });

  test('forged objects: bad_gateway', async () => {
    const { profile, signer_certificate } = profileOf(liam);
    answering('profile.resolve', { profile: { ...profile, nickname: 'Liar' }, signer_certificate });
    expect(await codeOf('profile.resolve')).toBe('bad_gateway');
    const state = await liam.state({ revision: 5 });
    answering('device.state.resolve', { ...state, certificates: [ann.device().certificate] });
    expect(await codeOf('device.state.resolve')).toBe('bad_gateway');
    const { account_signature } = await liam.state({ revision: 6 });
    answering('device.state.resolve', { ...state, account_signature });
    expect(await codeOf('device.state.resolve')).toBe('bad_gateway');
  });

  test('genuine objects of another account: bad_gateway', async () => {
    answering('profile.resolve', profileOf(ann));
    answering('device.state.resolve', await ann.state());
    expect(await codeOf('profile.resolve')).toBe('bad_gateway');
    expect(await codeOf('device.state.resolve')).toBe('bad_gateway');
  });

  test('an older state than one it showed before, or another of the same revision: bad_gateway', async () => {
    const older = await liam.state({ revision: 5 });
    await liam.addDevice('laptop');
    const newer = await liam.state({ revision: 6 });
    answering('device.state.resolve', newer);
    expect(await codeOf('device.state.resolve')).toBe('ok');
    answering('device.state.resolve', older);
    expect(await codeOf('device.state.resolve')).toBe('bad_gateway');
    answering('device.state.resolve', await liam.state({ revision: 6, devices: ['phone'] }));
    expect(await codeOf('device.state.resolve')).toBe('bad_gateway');
    answering('device.state.resolve', newer);
    expect(await codeOf('device.state.resolve')).toBe('ok');
  });

  test('the answers of two questions exchanged: both are bad_gateway', async () => {
    const leo = await liar.account('leo');
    const swapped = new Map([
      [liam.account, leo],
      [leo.account, liam],
    ]);
    liar.lies['profile.resolve'] = ({ account }) => ({
      result: profileOf(swapped.get(String(account))!),
    });
    const codes = [leo, liam].map(({ account }) => codeOf('profile.resolve', { account }));
    expect(await Promise.all(codes)).toEqual(['bad_gateway', 'bad_gateway']);
  });

  test('a large text of which little is the answer: ok; one of very many values: bad_gateway', async () => {
    const padding = Array(5_000).fill('x'.repeat(90));
    liar.lies['profile.resolve'] = () => ({ result: profileOf(liam), padding });
    expect(await codeOf('profile.resolve')).toBe('ok');
    const lists = Array(200_000).fill([1]);
    liar.lies['profile.resolve'] = () => ({ result: profileOf(liam), lists });
    expect(await codeOf('profile.resolve')).toBe('bad_gateway');
    const { metrics } = relay.server.context;
    expect(metrics.value('peer_faults', { fault: 'response' })).toBe(1);
  });

  test('the id of another request, or a malformed retry_after: bad_gateway', async () => {
    const result = profileOf(liam);
    liar.lies['profile.resolve'] = (_, { id }) => ({ id: Number(id) + 1, result });
    expect(await codeOf('profile.resolve')).toBe('bad_gateway');
    const error = { code: -32030, message: 'no', data: { retry_after: -1 } };
    liar.lies['profile.resolve'] = () => ({ error });
    expect(await codeOf('profile.resolve')).toBe('bad_gateway');
  });

  test('nothing: the client gets temporarily_unavailable in its time, others are not delayed', async () => {
    const never = Promise.withResolvers<object>();
    liar.lies['profile.resolve'] = () => never.promise;
    const code = codeOf('profile.resolve');
    await until(() => liar.asked.length > 0);
    expect(await codeOf('profile.resolve', { account: ann.account })).toBe('not_found');
    relay.clock.advance(30);
    expect(await code).toBe('temporarily_unavailable');
    never.resolve({});
  });
});

describe('07 §B4: when it connects again, it presents', () => {
  const refusals = (check: string) =>
    relay.server.context.metrics.value('peers_refused', { check });
  /** Connects once more; whether the relay under test admits it. */
  const isAdmitted = async (present: () => Promise<RelayDescriptor>) => {
    liar.foreign.present = present;
    return await liar.foreign.dial().then(
      () => true,
      () => false,
    );
  };
  const isAnswered = async (foreign: ForeignRelay) => {
    const { relayClient } = relay.server.context;
    const params = { account: ann.account };
    return (await relayClient.call(foreign.relayId, 'profile.resolve', params)).kind;
  };
  /** A relay that tells the truth, and what it was asked. */
  const honestRelay = async () => {
    const honest = await ForeignRelay.start(relay, { byte: 0x92 });
    const asked: string[] = [];
    honest.serveRpc = async (stream) => {
      const frame = await stream.readFrame();
      if (frame === undefined) return;
      const { id, method } = JSON.parse(Buffer.from(frame).toString());
      asked.push(method);
      const error = { code: -32_010, message: 'none' };
      await stream.writeFrame(utf8(JSON.stringify({ jsonrpc: '2.0', id, error })));
    };
    return { honest, asked };
  };

  test('a descriptor of another relay, or one that binds the other: refused, the other stays', async () => {
    const { honest, asked } = await honestRelay();
    await using _honest = honest;
    expect(await isAdmitted(() => honest.descriptor())).toBe(false);
    expect(refusals('peer_id_bound')).toBe(1);
    expect(await isAdmitted(() => liar.foreign.descriptor({ peerId: honest.peerId }))).toBe(false);
    expect(refusals('peer_id_bound')).toBe(2);
    const withOwnAddresses = async () => {
      const { endpoints } = await liar.foreign.descriptor();
      return { ...(await honest.descriptor()), endpoints };
    };
    expect(await isAdmitted(withOwnAddresses)).toBe(false);
    expect(refusals('descriptor_signature')).toBe(1);
    expect(await isAnswered(honest)).toBe('refused');
    expect(asked).toEqual(['profile.resolve']);
  });

  test('the descriptor of the relay under test: refused as its own', async () => {
    const { text } = await relay.http().call('relay.descriptor', {});
    expect(await isAdmitted(async () => JSON.parse(text))).toBe(false);
    expect(refusals('own_relay')).toBe(1);
  });

  test('a descriptor that has expired: refused; its earlier connection stays', async () => {
    const old = await liar.foreign.descriptor({ seconds: 10 });
    relay.clock.advance(10);
    expect(await isAdmitted(async () => old)).toBe(false);
    expect(refusals('descriptor_expired')).toBe(1);
    answering('profile.resolve', profileOf(liam));
    expect(await codeOf('profile.resolve')).toBe('ok');
  });

  test('an older or a newer one of its own: admitted, as the same relay', async () => {
    for (const seconds of [1_000, 200_000]) {
      expect(await isAdmitted(() => liar.foreign.descriptor({ seconds }))).toBe(true);
    }
    const { metrics } = relay.server.context;
    expect(metrics.value('peers', { state: 'connected' })).toBe(1);
    answering('profile.resolve', profileOf(liam));
    expect(await codeOf('profile.resolve')).toBe('ok');
  });

  test('the address of another relay: that one is dialled, and refused; it is asked nothing', async () => {
    const { honest, asked } = await honestRelay();
    await using _honest = honest;
    const { port } = honest;
    expect(await isAdmitted(() => liar.foreign.descriptor({ port }))).toBe(true);
    await liar.foreign.stop();
    await until(() => relay.server.context.relayClient.pausedUntil(liar.relayId) === undefined);
    await until(async () => (await isAnswered(liar.foreign)) === 'unreachable');
    expect(asked).toEqual([]);
    expect(relay.server.context.relayClient.pausedUntil(liar.relayId)).toBeDefined();
    expect(await isAnswered(honest)).toBe('refused');
    expect(asked).toEqual(['profile.resolve']);
  });
});

describe('07 §C5: about a device of its account, it answers with', () => {
  const signIn = async () => {
    const answer = await relay.bindDevice(await relay.socket(), liam.device());
    return answer.error?.code ?? (answer.result as { expires_at: number }).expires_at;
  };

  test('a certificate that ends late: the session ends when sessions do', async () => {
    answering('device.status', { status: 'active', expires_at: Number.MAX_SAFE_INTEGER });
    expect(await signIn()).toBe(relay.clock.now() + 86_400);
  });

  test('what is none of both, or has ended: no session', async () => {
    for (const result of [
      { status: 'active' },
      { status: 'active', expires_at: relay.clock.now() },
      { status: 'inactive', expires_at: relay.clock.now() + 60 },
      { status: 'yes' },
      null,
    ]) {
      answering('device.status', result);
      expect(await signIn()).toBe(-32_023);
    }
  });
});

describe('07 §B10, §B11: about routes', () => {
  const relayOf = async ({ account }: Person) => {
    const { text } = await relay.http().call('account.route.resolve', { account });
    return (JSON.parse(text) as { relay_id: string }).relay_id;
  };

  test('a route of an account of this relay that its owner did not sign is not stored', async () => {
    const forged = { ...(await liar.foreign.route(ann, 9_000)), account_signature: 'A'.repeat(86) };
    expect(await liar.put(forged)).toBe(false);
    expect(await relayOf(ann)).toBe(relay.relayId);
  });

  test('an account that it lost: it may go on to answer, and is not asked', async () => {
    const old = await liar.foreign.route(liam, 1_000);
    liar.routes.set(Buffer.from(deriveRouteKey(network, liam.account)).toString('hex'), old);
    answering('device.status', { status: 'active', expires_at: relay.clock.now() + 60 });
    // It echoes the new route, and stores nothing.
    await liam.moveTo(relay);
    expect(await liar.put(old)).toBe(false);
    expect(await relayOf(liam)).toBe(relay.relayId);
    liar.asked.length = 0;
    await relay.logInDevice(liam);
    expect(liar.asked).toEqual([]);
  });

  test('a forged route in its answer to GET_VALUE: the account stays unknown', async () => {
    const stranger = new Person(relay, 'stranger');
    const route = await liar.foreign.route(stranger, 5);
    const key = Buffer.from(deriveRouteKey(network, stranger.account)).toString('hex');
    const params = { account: stranger.account };
    liar.routes.set(key, { ...route, account_signature: 'A'.repeat(86) });
    expect(await codeOf('account.route.resolve', params)).toBe('not_found');
    liar.routes.set(key, route);
    relay.clock.advance(30);
    expect(await codeOf('account.route.resolve', params)).toBe('ok');
  });

  test('07 §C9: a hint about a device of a third relay changes nothing', async () => {
    await using third = await LyingRelay.start(relay, { byte: 0x92 });
    const leo = await third.account('leo');
    const result = { status: 'active', expires_at: relay.clock.now() + 86_400 };
    third.lies['device.status'] = () => ({ result });
    await relay.logInDevice(leo);
    const stale = async () => {
      const sql = 'SELECT stale FROM remote_devices';
      const rows = await relay.server.context.storage.read((tx) => tx.all(sql));
      return rows.map((row) => Number(row.stale));
    };
    const hint = { account: leo.account, device_id: leo.device().deviceId };
    await liar.notify('device.status.changed', hint);
    expect(await stale()).toEqual([0]);
    // The same hint of its home relay counts: it is asked again.
    third.asked.length = 0;
    await third.notify('device.status.changed', hint);
    await until(() => third.asked.length === 1);
  });

  test('07 §C9: a hint about an account that is not at home there makes no relay ask', async () => {
    const params = { account: ann.account, device_id: ann.device().deviceId };
    const { token } = await relay.logInDevice(ann);
    await liar.notify('device.status.changed', params);
    expect(liar.asked).toEqual([]);
    const answer = await relay.http().call('message.timeline.sync', {}, { token });
    expect(answer.status).toBe(200);
  });
});

describe('07 §C8: as target of a message', () => {
  const sendToLiam = async (lie: (typeof liar.lies)[string]) => {
    liar.lies['message.deliver'] = lie;
    const message = ann.message(liam, { authorization: liam.grant(ann) });
    await send(relay, { from: ann, message });
    return { from: ann, message };
  };

  const nextAttempt = async () => {
    const sql = 'SELECT next_attempt_at FROM deliveries';
    const rows = await relay.server.context.storage.read((tx) => tx.all(sql));
    return Number(rows[0]?.next_attempt_at);
  };

  test('results that confirm nothing are no confirmation: it is sent again, unchanged', async () => {
    const wrong = [
      {},
      { status: 'delivering', accepted_at: 1 },
      null,
      { status: 'target_accepted' },
    ];
    let count = 0;
    const sent = await sendToLiam(() => ({ result: wrong[count++ % wrong.length] }));
    const advance = (seconds: number) => {
      relay.clock.advance(seconds);
      relay.server.wakeJobs();
    };
    await untilInTime(async () => {
      expect(await statusOf(relay, sent)).toMatchObject({ status: 'delivering' });
      return liar.asked.length > wrong.length;
    }, advance);
    expect(new Set(liar.asked.map(({ params }) => JSON.stringify(params))).size).toBe(1);
    answering('message.deliver', { status: 'target_accepted', accepted_at: relay.clock.now() });
    await untilInTime(
      async () => (await statusOf(relay, sent)).status === 'target_accepted',
      advance,
    );
  });

  test('rate_limited: the client sees delivering, and no attempt is made before retry_after', async () => {
    const error = { code: -32_030, message: 'slow down', data: { retry_after: 60 } };
    const sent = await sendToLiam(() => ({ error }));
    await until(() => liar.asked.length === 1);
    answering('message.deliver', { status: 'target_accepted', accepted_at: relay.clock.now() });
    const due = relay.clock.now() + 60;
    await until(async () => (await nextAttempt()) === due);
    // Local backoff alone would be 5 seconds at the most here.
    relay.clock.advance(59);
    relay.server.wakeJobs();
    const status = await statusOf(relay, sent);
    expect(status.status).toBe('delivering');
    expect(status.error).toBeUndefined();
    expect(liar.asked).toHaveLength(1);
    const advance = (seconds: number) => {
      relay.clock.advance(seconds);
      relay.server.wakeJobs();
    };
    await untilInTime(
      async () => (await statusOf(relay, sent)).status === 'target_accepted',
      advance,
    );
    expect(liar.asked).toHaveLength(2);
  });

  test('a code that no chapter knows ends with bad_gateway, its text is cut', async () => {
    const error = { code: -1, message: `\u0000${'é'.repeat(5_000)}` };
    const sent = await sendToLiam(() => ({ error }));
    expect(await fateOf(relay, sent)).toBe('bad_gateway');
    const status = await statusOf(relay, sent);
    expect(status.error?.message.length).toBeLessThanOrEqual(512);
    expect(status.error?.message).not.toContain('\u0000');
  });
});

describe('07 §C8: as source of a message', () => {
  const delivery = (text: string, messageId?: string) => {
    const options = { authorization: ann.grant(liam), text, ...(messageId && { messageId }) };
    const message = liam.message(ann, options);
    return { ...message, signer_certificate: liam.device().certificate };
  };
  const deliver = async (params: object) => {
    const answer = (await liar.ask('message.deliver', params)) as {
      error?: { code: number };
      result?: JsonObject;
    };
    return answer.error?.code ?? answer.result?.status;
  };

  test('forged, repeated and changed deliveries: one record of the genuine one', async () => {
    const genuine = delivery('hello');
    const envelope = { ...genuine.envelope, created_at: genuine.envelope.created_at + 1 };
    expect(await deliver({ ...genuine, envelope })).toBe(-32_004);
    expect(await deliver({ ...genuine, signer_certificate: ann.device().certificate })).toBe(
      -32_602,
    );
    expect(await deliver(genuine)).toBe('target_accepted');
    expect(await deliver(genuine)).toBe('target_accepted');
    const changed = delivery('another', genuine.envelope.message_id);
    expect(await deliver(changed)).toBe(-32_011);
    const { signer_certificate: _, ...message } = genuine;
    const sent = [{ from: liam, to: ann, message }];
    expect(await differences(sent, new Map([[ann, [relay]]]))).toEqual([]);
  });

  test('a certificate that the account did not sign, or a credential of others: nothing arrives', async () => {
    const genuine = delivery('hello');
    const { signer_certificate: certificate } = genuine;
    const account_signature = ann.device().certificate.account_signature;
    const forged = { ...certificate, account_signature };
    expect(await deliver({ ...genuine, signer_certificate: forged })).toBe(-32_004);
    const { authorization: _, ...withoutCredential } = genuine;
    expect(await deliver(withoutCredential)).toBe(-32_003);
    // Even if anyone may write to ann, a wrong credential is not as good as none.
    await ann.publishProfile({ public_discovery: true });
    const leo = await liar.account('leo');
    for (const authorization of [
      ann.grant(leo),
      leo.grant(liam),
      ann.grant(liam, { expires_at: relay.clock.now() }),
    ]) {
      expect(await deliver({ ...genuine, authorization })).toBe(-32_003);
    }
    expect(await differences([], new Map([[ann, [relay]]]))).toEqual([]);
  });

  test('07 §C9: a flood is refused with rate_limited, then reset unread; clients are served', async () => {
    const params = { account: ann.account };
    const answers = await Promise.all(
      Array.from({ length: 120 }, () => liar.ask('profile.resolve', params)),
    );
    const codes = answers.map((answer) => (answer?.error as JsonObject | undefined)?.code);
    expect(codes.filter((code) => code === -32_030).length).toBeGreaterThanOrEqual(9);
    expect(answers.filter((answer) => answer === undefined).length).toBeGreaterThanOrEqual(40);
    expect(relay.server.context.metrics.value('peer_faults', { fault: 'frame' })).toBe(0);
    expect(await codeOf('profile.resolve', params)).toBe('not_found');
  });

  test('07 §C9: more bytes than it may send are reset; after a pause it is answered again', async () => {
    const params = { account: ann.account, padding: 'x'.repeat(1_000_000) };
    const notFound = { error: { code: -32_010 } };
    expect(await liar.ask('profile.resolve', params)).toMatchObject(notFound);
    // It costs 245 units: the second one is refused before it is read. Its bytes make a debt.
    const limited = { id: 1, error: { code: -32_030 } };
    expect(await liar.ask('profile.resolve', params)).toMatchObject(limited);
    expect(await liar.ask('profile.resolve', params)).toBeUndefined();
    relay.clock.advance(2);
    expect(await liar.ask('profile.resolve', params)).toMatchObject(notFound);
  });
});
