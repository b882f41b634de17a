import { isDeepStrictEqual } from 'node:util';
import {
  accountSigner,
  cosignRoute,
  type DeviceCertificate,
  deriveRelayId,
  encodeBase64url,
  type MessageEnvelope,
  type TimelinePage,
} from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import type { RelayAnswer } from '../../../src/context.ts';
import { insertReceived } from '../../../src/messages/received-store.ts';
import { type MessageOptions, Person, type SendParams } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { type InProcessRelay, network } from '../../support/in-process-relay.ts';
import { wiredRelays } from '../../support/wired-relays.ts';

const limits = { relayRate: 1e9, relayBurst: 1e9, relayAccountRate: 1e9, relayAccountBurst: 1e9 };
const wired = wiredRelays(2, limits);
const [source, target] = wired.relays as [InProcessRelay, InProcessRelay];
const ann = source.person('ann', ['phone', 'laptop']);
const ben = target.person('ben', ['phone', 'laptop']);

const elsewhere = accountSigner(network, new Uint8Array(32).fill(0x55));

beforeEach(() => {
  target.takeNotices();
});

/** Parameters of `message.deliver`, as the source makes them of a sent message. */
function delivery(message: SendParams, device = 'phone'): JsonObject {
  const { sender_boxes: _, ...submitted } = message;
  const params = { ...submitted, signer_certificate: ann.device(device).certificate };
  return params as unknown as JsonObject;
}
const message = (options: MessageOptions = {}) =>
  ann.message(ben, { authorization: ben.grant(ann), ...options });
const toBen = (options: MessageOptions = {}) => delivery(message(options));
const deliver = (params: JsonObject): Promise<RelayAnswer> =>
  source.context.relayClient.call(target.relayId, 'message.deliver', params);
const codeOf = async (params: JsonObject): Promise<string> => {
  const answer = await deliver(params);
  return answer.kind === 'refused' ? answer.code : 'ok';
};
const accepted = (accepted_at = target.clock.now()) => ({
  kind: 'result',
  value: { status: 'target_accepted', accepted_at },
});
const inbox = async (device = 'phone') =>
  (await target.call(
    'message.timeline.sync',
    {},
    { session: ben.session(device) },
  )) as unknown as TimelinePage;
const records = () => target.rows('timeline_records');

/** Stores that the account is at home elsewhere from now on, as the target learns of it. */
async function leave(person: Person, changes: JsonObject = {}): Promise<void> {
  const draft = await person.route({ relay_id: deriveRelayId(network, elsewhere.publicKey) });
  const route = await cosignRoute(network, elsewhere, draft);
  await target.context.storage.write(`account:${person.account}`, (tx) =>
    tx.run(
      `UPDATE account_routes SET revision = ?, relay_id = ?, conflict = ?, expires_at = ?,
          held_until = ? WHERE account = ?`,
      route.revision,
      route.relay_id,
      (changes.conflict as number) ?? 0,
      (changes.expires_at as number) ?? route.expires_at,
      (changes.expires_at as number) ?? route.expires_at,
      person.account,
    ),
  );
}

describe('07 §C8: the target accepts a message', () => {
  test('with one record, its own time of acceptance and the sender certificate', async () => {
    target.clock.advance(7);
    const sent = message({ senders: ['phone'] });
    expect(await deliver(delivery(sent))).toEqual(accepted());
    expect(target.takeNotices()).toEqual([ben.timelineNotice(0)]);
    const page = await inbox('laptop');
    expect(page).toEqual({
      items: [
        {
          sequence: 0,
          accepted_at: target.clock.now(),
          envelope: sent.envelope,
          key_box: sent.recipient_boxes[1],
        },
      ],
      certificates: [ann.device().certificate],
      has_more: false,
    });
    expect(await records()).toHaveLength(1);
  });

  test('boxes of devices that are not valid do not stop it, and are not kept', async () => {
    const params = toBen();
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    expect(await codeOf(params)).toBe('ok');
    expect(await target.rows('timeline_boxes')).toMatchObject([
      { device_id: ben.device('phone').deviceId },
    ]);
  });

  test('the sender may have left the source, and its device may be removed since', async () => {
    const params = toBen();
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf(params)).toBe('ok');
  });

  test('an expired sender certificate does not stop it', async () => {
    const now = target.clock.now();
    await ann.addDevice('old', { notBefore: now - 100, expiresAt: now });
    expect(await codeOf(delivery(message({ device: 'old' }), 'old'))).toBe('ok');
  });
});

describe('07 §C8, 04 §13.1: a home that is not here', () => {
  test('a valid route to another relay', async () => {
    await leave(ben);
    expect(await codeOf(toBen())).toBe('route_stale');
  });

  test('no route, or an expired one', async () => {
    const zoe = new Person(source, 'zoe');
    await zoe.addDevice('phone');
    const params = delivery(ann.message(zoe, { authorization: zoe.grant(ann) }));
    expect(await codeOf(params)).toBe('target_not_local');
    await leave(ben, { expires_at: target.clock.now() });
    expect(await codeOf(toBen())).toBe('target_not_local');
  });

  test('an unresolved conflict of routes', async () => {
    await leave(ben, { conflict: 1 });
    expect(await codeOf(toBen())).toBe('invalid_state');
  });

  test('an account that moves away while signatures are verified', async () => {
    target.afterProof = () => leave(ben);
    expect(await codeOf(toBen())).toBe('route_stale');
    expect(await records()).toEqual([]);
    expect(await target.rows('received_results')).toEqual([]);
  });
});

describe('07 §C8, 04 §12.2: malformed requests and sizes', () => {
  test('structure, certificate of another sender, to = from', async () => {
    const params = toBen();
    const { envelope, recipient_boxes: boxes } = message();
    const self = ann.message(ann);
    const other = await ann.addDevice('tablet');
    for (const wrong of [
      {},
      { ...params, envelope: undefined },
      { ...params, signer_certificate: undefined },
      { ...params, extra: null },
      { ...params, recipient_boxes: [] },
      { ...params, recipient_boxes: [boxes[0], boxes[0]] },
      { ...params, recipient_boxes: Array.from({ length: 9 }, () => boxes[0]) },
      { ...params, envelope: { ...envelope, created_at: '1' } },
      { ...params, envelope: { ...envelope, to: 'ben' } },
      { ...params, authorization: {} },
      { ...params, signer_certificate: other.certificate },
      { ...params, signer_certificate: ben.device().certificate },
      { ...self, signer_certificate: ann.device().certificate },
    ]) {
      expect(await codeOf(JSON.parse(JSON.stringify(wrong)) as JsonObject)).toBe('bad_request');
    }
    expect(await records()).toEqual([]);
  });

  const filled = (object: object, bytes: number) => {
    const room = bytes - canonicalJson({ ...object, extra: '' } as never).length;
    return { ...object, extra: 'x'.repeat(room) };
  };

  test('262,144 bytes of envelope pass, one more is too large', async () => {
    const params = toBen();
    const sized = (bytes: number) => ({
      ...params,
      envelope: signed(filled(message().envelope, bytes) as unknown as MessageEnvelope),
    });
    expect(await codeOf(sized(262_145) as never)).toBe('request_too_large');
    expect(await codeOf(sized(262_144) as never)).toBe('ok');
    expect((await inbox()).items).toHaveLength(1);
  });

  test('key boxes and credentials at their limits pass, one byte more is too large', async () => {
    const { keyBoxBytes, credentialBytes } = target.context.limits;
    const { recipient_boxes: boxes } = message();
    const boxOf = (bytes: number) => ({
      ...toBen(),
      recipient_boxes: [filled(boxes[0] as object, bytes)],
    });
    expect(await codeOf(boxOf(keyBoxBytes + 1) as never)).toBe('request_too_large');
    expect(await codeOf(boxOf(keyBoxBytes) as never)).toBe('ok');
    const credentialOf = (bytes: number) => ({
      ...toBen(),
      authorization: filled(ben.grant(ann), bytes),
    });
    expect(await codeOf(credentialOf(credentialBytes + 1) as never)).toBe('request_too_large');
    // It fits, but its signature covers what was added.
    expect(await codeOf(credentialOf(credentialBytes) as never)).toBe('forbidden');
  });
});

describe('07 §C8: signatures', () => {
  const certificate = () => ann.device().certificate;

  test.each([
    ['the envelope', () => ({ envelope: { ...message().envelope, extra: 1 } })],
    [
      'the certificate by its account',
      () => ({ signer_certificate: tampered('account_signature') }),
    ],
    ['the certificate by its device', () => ({ signer_certificate: tampered('device_signature') })],
    ['an invite', () => ({ authorization: { ...ben.invite(), extra: 1 } })],
  ])('an invalid signature of %s', async (_, changes) => {
    expect(await codeOf({ ...toBen(), ...changes() } as never)).toBe('invalid_signature');
    expect(await records()).toEqual([]);
  });

  test('a certificate with one more member does not verify, though the original did', async () => {
    expect(await codeOf(toBen())).toBe('ok');
    const signer_certificate = { ...certificate(), extra: 1 };
    expect(await codeOf({ ...toBen(), signer_certificate } as never)).toBe('invalid_signature');
  });

  function tampered(member: string): DeviceCertificate {
    expect(certificate()).toHaveProperty(member);
    return { ...certificate(), [member]: encodeBase64url(new Uint8Array(64).fill(1)) };
  }
});

test('07 §C8: created_at exactly at either limit passes, one second more does not', async () => {
  const now = target.clock.now();
  const { futureTolerance, deliveryAgeLimit } = target.context.limits;
  for (const [createdAt, code] of [
    [now + futureTolerance, 'ok'],
    [now + futureTolerance + 1, 'clock_skew'],
    [now - deliveryAgeLimit, 'ok'],
    [now - deliveryAgeLimit - 1, 'message_expired'],
  ] as const) {
    expect(await codeOf(toBen({ createdAt })), String(createdAt)).toBe(code);
  }
});

describe('07 §C8, 04 §11: access', () => {
  const eve = source.person('eve');

  test.each([
    ['a grant of the recipient', () => ben.grant(ann), 'ok'],
    ['a grant for another account', () => ben.grant(eve), 'forbidden'],
    ['a grant of another account', () => eve.grant(ann), 'forbidden'],
    ['a grant that has just ended', () => ben.grant(ann, { expires_at: now() }), 'forbidden'],
    ['a grant in its last second', () => ben.grant(ann, { expires_at: now() + 1 }), 'ok'],
    ['an invite of the recipient', () => ben.invite(), 'ok'],
    ['an invite of another account', () => eve.invite(), 'forbidden'],
    ['an invite that has just ended', () => ben.invite(now()), 'forbidden'],
    ['nothing, with public discovery off', () => undefined, 'forbidden'],
  ])('%s: %s', async (_, authorization, code) => {
    const params = delivery(ann.message(ben, { authorization: authorization() as never }));
    expect(await codeOf(params)).toBe(code);
    expect(await records()).toHaveLength(code === 'ok' ? 1 : 0);
  });

  test('public discovery decides without a credential; a bad credential never falls back', async () => {
    await ben.publishProfile({ public_discovery: true });
    expect(await codeOf(delivery(ann.message(ben)))).toBe('ok');
    expect(await codeOf(toBen({ authorization: ben.invite(now()) }))).toBe('forbidden');
    await ben.publishProfile({ public_discovery: false });
    expect(await codeOf(delivery(ann.message(ben)))).toBe('forbidden');
  });

  test.each([
    ['grant', () => ben.grant(ann, {}, 'laptop')],
    ['invite', () => ben.invite(undefined, 'laptop')],
  ])('a %s of a device that was removed, before or while it is verified', async (_, credential) => {
    const params = toBen({ authorization: credential() });
    const state = await ben.state({ devices: ['phone'] });
    target.afterProof = () => ben.publishState(state);
    expect(await codeOf(params)).toBe('forbidden');
    expect(await codeOf(params)).toBe('forbidden');
    expect(await records()).toEqual([]);
  });

  const now = () => target.clock.now();
});

test('07 §C8: no boxed device is valid', async () => {
  const params = toBen({ boxes: ['laptop'] });
  await ben.publishState(await ben.state({ devices: ['phone'] }));
  expect(await codeOf(params)).toBe('device_unknown');
  expect(await records()).toEqual([]);
});

describe('07 §C8: idempotency', () => {
  test('a repeat gets the first result, and changes nothing', async () => {
    const params = toBen();
    const first = await deliver(params);
    const before = await target.dump();
    target.takeNotices();
    target.clock.advance(1_000);
    expect(await deliver(params)).toEqual(first);
    expect(await target.dump()).toEqual(before);
    expect(target.takeNotices()).toEqual([]);
  });

  test('it holds after a restart, a move of the account, lost access and removed devices', async () => {
    const params = toBen({ boxes: ['laptop'] });
    const first = await deliver(params);
    await target.restart();
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    await leave(ben);
    expect(await deliver(params)).toEqual(first);
    target.clock.advance(target.context.limits.deliveryAgeLimit + 1);
    expect(await deliver(params)).toEqual(first);
  });

  test('any difference in the parameters is a conflict that changes nothing', async () => {
    const params = toBen();
    const {
      envelope,
      recipient_boxes: boxes,
      authorization: _,
      ...rest
    } = params as never as {
      envelope: MessageEnvelope;
      recipient_boxes: object[];
      authorization: object;
      signer_certificate: DeviceCertificate;
    };
    await deliver(params);
    const before = await target.dump();
    const { message_id: messageId } = envelope;
    for (const other of [
      { ...params, extra: 1 },
      { ...params, recipient_boxes: boxes.toReversed() },
      { ...params, recipient_boxes: boxes.slice(1) },
      { ...params, authorization: ben.grant(ann, { expires_at: target.clock.now() + 5 }) },
      { ...rest, envelope, recipient_boxes: boxes },
      { ...params, envelope: signed({ ...envelope, extra: 1 } as never) },
      toBen({ messageId }),
    ]) {
      expect(await codeOf(other as never)).toBe('state_conflict');
    }
    expect(await target.dump()).toEqual(before);
  });

  test('member order is no difference, and another sender is another key', async () => {
    const messageId = 'msg_AAECAwQFBgcICQoLDA0ODw';
    const params = toBen({ messageId });
    const first = await deliver(params);
    expect(await deliver(Object.fromEntries(Object.entries(params).reverse()))).toEqual(first);
    const eve = await source.register('eve');
    const hers = eve.message(ben, { messageId, authorization: ben.grant(eve) });
    const signer_certificate = eve.device().certificate;
    expect(await codeOf({ ...hers, signer_certificate } as never)).toBe('ok');
    expect(await records()).toHaveLength(2);
  });

  test('the same request several times at once is one record', async () => {
    const params = toBen();
    const answers = await Promise.all([1, 2, 3, 4].map(() => deliver(params)));
    expect(new Set(answers.map((answer) => canonicalJson(answer as never))).size).toBe(1);
    expect(answers[0]).toEqual(accepted());
    expect(await records()).toHaveLength(1);
    expect(target.takeNotices()).toHaveLength(1);
  });

  test('of different requests of one ID at once, one is accepted', async () => {
    const messageId = 'msg_AAECAwQFBgcICQoLDA0ODw';
    const rivals = [toBen({ messageId, text: 'one' }), toBen({ messageId, text: 'two' })];
    expect((await Promise.all(rivals.map(codeOf))).sort()).toEqual(['ok', 'state_conflict']);
    expect(await records()).toHaveLength(1);
  });

  test('a refusal leaves nothing: the same request is accepted later', async () => {
    const params = toBen({ boxes: ['laptop'] });
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    const before = await target.dump();
    expect(await codeOf(params)).toBe('device_unknown');
    expect(await target.dump()).toEqual(before);
    await ben.publishState();
    expect(await codeOf(params)).toBe('ok');
  });

  test('the result is kept until the retention fixed at acceptance, then the message is too old', async () => {
    const params = toBen();
    const first = await deliver(params);
    await target.restart({ messageRetention: 10, deliveryAgeLimit: 5 });
    const retention = 2_592_000;
    target.clock.advance(retention - 1);
    await target.runJob('messages.retention');
    expect(await deliver(params)).toEqual(first);
    target.clock.advance(1);
    expect(await target.runJob('messages.retention')).not.toBe(target.clock.now());
    expect(await target.rows('received_results')).toEqual([]);
    expect(await codeOf(params)).toBe('message_expired');
  });

  test('the result is kept until a repeat would be too old to be new', async () => {
    await target.restart({ messageRetention: 1_000, deliveryAgeLimit: 5_000 });
    const params = toBen();
    const first = await deliver(params);
    target.clock.advance(5_000);
    await target.runJob('messages.retention');
    expect(await deliver(params)).toEqual(first);
    target.clock.advance(1);
    await target.runJob('messages.retention');
    expect(await codeOf(params)).toBe('message_expired');
  });

  test('any number of expired results is removed in one run', async () => {
    const keepUntil = target.clock.now();
    await target.context.storage.write('test', async (tx) => {
      for (let index = 0; index < 202; index += 1) {
        const key = { sender: ann.account, messageId: `m${index}` };
        const result = { request: 'r', content: 'c', acceptedAt: 0 };
        const until = keepUntil + (index === 0 ? 1 : 0);
        await tx.run(...insertReceived(key, { ...result, keepUntil: until }));
      }
    });
    expect(await target.runJob('messages.retention')).toBe(keepUntil + 1);
    expect(await target.rows('received_results')).toHaveLength(1);
  });

  test('its short way answers, notifies and stores as the general one does', async () => {
    const params = toBen();
    await deliver(toBen());
    const before = await target.dump();
    target.takeNotices();
    const way = async () => {
      const answer = await deliver(params);
      return { answer, notices: target.takeNotices(), stored: await target.dump() };
    };
    const short = await way();
    await target.restart();
    await target.context.storage.write('test', async (tx) => {
      for (const [table, rows] of Object.entries(before)) {
        const columns = Object.keys(rows[0] ?? {});
        if (isDeepStrictEqual(rows, short.stored[table])) continue;
        await tx.run(`DELETE FROM ${table}`);
        for (const row of rows as Record<string, string>[]) {
          const values = columns.map((name) => row[name] as string);
          const places = values.map(() => '?').join(', ');
          await tx.run(`INSERT INTO ${table} (${columns}) VALUES (${places})`, ...values);
        }
      }
    });
    expect(await target.dump()).toEqual(before);
    // Nothing is remembered.
    target.context.knownAccounts.find = async () => undefined;
    expect(await way()).toEqual(short);
  });

  test('02 §18: a repeat costs no signature', async () => {
    const params = toBen();
    const first = await deliver(params);
    const { verifier } = target.context;
    verifier.verify = () => Promise.reject(new Error('a signature'));
    verifier.verifyOnce = () => Promise.reject(new Error('a signature'));
    expect(await deliver(params)).toEqual(first);
    expect(await codeOf({ ...params, note: 1 })).toBe('state_conflict');
  });

  test('if storage fails at any write, nothing is stored, and the repeat succeeds', async () => {
    const params = toBen();
    expect(await throughEveryFault(target, () => codeOf(params))).toBeGreaterThan(5);
    expect(await deliver(params)).toEqual(accepted());
    expect(await records()).toHaveLength(1);
  });
});

describe('04 §15.1, decision: one message by both methods is one record', () => {
  /** Registers the sender at the target as well, as after its move there. */
  async function moveSender(): Promise<void> {
    const session = ann.accountSession();
    await target.call('device.state.publish', await ann.state(), { session });
    const route = await ann.route({ relay_id: target.relayId });
    await target.call('account.route.publish', route, { session });
  }
  const send = (params: SendParams) =>
    target.call('message.send', params, { session: ann.session() });

  test('sent here, then delivered by the new home of the sender', async () => {
    await moveSender();
    const sent = message();
    const { accepted_at } = (await send(sent)) as { accepted_at: number };
    target.takeNotices();
    target.clock.advance(60);
    await leave(ben);
    const again = await deliver(delivery(sent));
    expect(again).toEqual(accepted(accepted_at));
    expect(await deliver(delivery(sent))).toEqual(again);
    expect(await codeOf({ ...delivery(sent), extra: 1 })).toBe('state_conflict');
    expect(await records()).toHaveLength(1);
    expect(target.takeNotices()).toEqual([]);
  });

  test('delivered here, then sent here by the sender, who moved in', async () => {
    const sent = message({ senders: ['phone'] });
    await deliver(delivery(sent));
    await moveSender();
    target.takeNotices();
    await ben.publishState(await ben.state({ devices: [] }));
    expect(await send(sent)).toMatchObject({ status: 'target_accepted' });
    expect((await records()).map(({ account }) => account).sort()).toEqual(
      [ann.account, ben.account].sort(),
    );
    expect(await target.rows('deliveries')).toEqual([]);
  });

  test('other content under the same ID is another message', async () => {
    await moveSender();
    const messageId = 'msg_AAECAwQFBgcICQoLDA0ODw';
    await send(message({ messageId, text: 'one' }));
    expect(await codeOf(toBen({ messageId, text: 'two' }))).toBe('ok');
    expect(await records()).toHaveLength(2);
  });

  test('sent from here, still queued, and delivered here meanwhile: one record', async () => {
    await moveSender();
    await leave(ben);
    const sent = message();
    expect(await send(sent)).toMatchObject({ status: 'delivering' });
    await ben.publishState();
    await ben.publishRoute();
    expect(await deliver(delivery(sent))).toEqual(accepted());
    expect(await records()).toHaveLength(1);
    await target.runJob('messages.delivery');
    expect(await target.rows('deliveries')).toEqual([]);
    expect(await target.rows('sent_results')).toMatchObject([{ status: 'target_accepted' }]);
    expect(await records()).toHaveLength(1);
  });

  test('a message sent from here that another relay received does not count', async () => {
    await moveSender();
    await leave(ben);
    const sent = message();
    target.callRelay = () => Promise.resolve(accepted() as RelayAnswer);
    await send(sent);
    await target.runJob('messages.delivery');
    await ben.publishState();
    await ben.publishRoute();
    expect(await codeOf(delivery(sent))).toBe('ok');
    expect(await records()).toHaveLength(1);
  });
});

/** The envelope, signed anew by ann's phone. */
function signed(envelope: MessageEnvelope): MessageEnvelope {
  const input = network.bytes(envelope, ['device_signature']);
  const device_signature = encodeBase64url(ann.device().signer.sign(input));
  return { ...envelope, device_signature };
}
