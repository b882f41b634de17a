import { encodeBase64url, type MessageEnvelope } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { digest } from '../../../src/digest.ts';
import { contentDigest, envelopeId } from '../../../src/messages/message-parts.ts';
import { type MessageOptions, Person, type SendParams } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const method = 'message.send';
const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben', ['phone', 'laptop']);

const toBen = (options: MessageOptions = {}): SendParams =>
  ann.message(ben, { authorization: ben.grant(ann), ...options });
const send = (params: unknown, session = ann.session()) => relay.call(method, params, { session });
const codeOf = (params: unknown, session = ann.session()) =>
  relay.codeOf(method, params, { session });
const sync = async (person: Person, device = 'phone', params = {}) =>
  (await relay.call('message.timeline.sync', params, {
    session: person.session(device),
  })) as unknown as { items: Record<string, never>[]; certificates: unknown[]; has_more: boolean };

describe('04 §12: a message between accounts of this relay', () => {
  test('is accepted and received in one call, on both timelines', async () => {
    const message = toBen({ senders: ['phone', 'laptop'] });
    const accepted_at = relay.clock.now();
    expect(await send(message)).toEqual({ status: 'target_accepted', accepted_at });
    expect(await sync(ben, 'laptop')).toEqual({
      items: [
        {
          sequence: 0,
          accepted_at,
          envelope: message.envelope,
          key_box: message.recipient_boxes[1],
        },
      ],
      certificates: [ann.device('phone').certificate],
      has_more: false,
    });
    expect(await sync(ann, 'laptop')).toEqual({
      items: [
        {
          sequence: 0,
          accepted_at,
          envelope: message.envelope,
          key_box: message.sender_boxes?.[1],
        },
      ],
      certificates: [ann.device('phone').certificate],
      has_more: false,
    });
    expect(relay.takeNotices()).toEqual([ann.timelineNotice(0), ben.timelineNotice(0)]);
  });

  test('without sender boxes the sender has no record', async () => {
    await send(toBen());
    expect((await sync(ann)).items).toEqual([]);
    expect((await sync(ben)).items).toHaveLength(1);
  });

  test('the envelope is stored once for both timelines, the certificate once for all', async () => {
    await send(toBen({ senders: ['phone'] }));
    await send(toBen({ senders: ['phone'] }));
    const { message_envelopes, message_certificates } = await relay.dump();
    expect(message_envelopes).toHaveLength(2);
    expect(message_certificates).toHaveLength(1);
  });

  test('unknown members of envelope and boxes are kept', async () => {
    const message = toBen();
    const [box] = message.recipient_boxes;
    await send({ ...message, recipient_boxes: [{ ...box, extra: { deep: 'é' } }] });
    expect((await sync(ben)).items[0]?.key_box).toMatchObject({ extra: { deep: 'é' } });
  });

  test.each([
    ['a grant of the recipient', () => toBen(), 'ok'],
    ['a grant for another account', () => toBen({ authorization: ben.grant(ben2()) }), 'forbidden'],
    ['a grant of another account', () => toBen({ authorization: ann.grant(ben) }), 'forbidden'],
    [
      'a grant that ends this very second',
      () => toBen({ authorization: ben.grant(ann, { expires_at: relay.clock.now() }) }),
      'forbidden',
    ],
    ['an invite of the recipient', () => toBen({ authorization: ben.invite() }), 'ok'],
    ['an own invite', () => toBen({ authorization: ann.invite() }), 'forbidden'],
    [
      'an invite that ends this very second',
      () => toBen({ authorization: ben.invite(relay.clock.now()) }),
      'forbidden',
    ],
    [
      'an invite with a changed body',
      () => toBen({ authorization: { ...ben.invite(), extra: 1 } as never }),
      'invalid_signature',
    ],
    ['nothing, discovery closed', () => ann.message(ben), 'forbidden'],
  ])('03 §13.3, 04 §11: %s', async (_, message, code) => {
    expect(await codeOf(message())).toBe(code);
    expect((await sync(ben)).items).toHaveLength(code === 'ok' ? 1 : 0);
  });

  test('a message needs no authorization exactly while public discovery is on', async () => {
    await ben.publishProfile({ public_discovery: true });
    expect(await codeOf(ann.message(ben))).toBe('ok');
    await ben.publishProfile({ public_discovery: false });
    expect(await codeOf(ann.message(ben))).toBe('forbidden');
  });

  test('an invalid credential never falls back to public discovery', async () => {
    await ben.publishProfile({ public_discovery: true });
    const authorization = ben.invite(relay.clock.now());
    expect(await codeOf(toBen({ authorization }))).toBe('forbidden');
  });

  test('a grant or invite is invalid after its signer is removed', async () => {
    const grant = toBen({ authorization: ben.grant(ann, {}, 'laptop') });
    const invite = toBen({ authorization: ben.invite(undefined, 'laptop') });
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    expect(await codeOf(grant)).toBe('forbidden');
    expect(await codeOf(invite)).toBe('forbidden');
  });

  test('an invite can be used by any number of senders', async () => {
    const authorization = ben.invite();
    const eve = await Person.register(relay, 'eve');
    expect(await codeOf(toBen({ authorization }))).toBe('ok');
    expect(await codeOf(eve.message(ben, { authorization }), eve.session())).toBe('ok');
  });
});

describe('04 §12.3: self-delivery', () => {
  const note = (options: MessageOptions = {}) => ann.message(ann, options);

  test('one record, received at once', async () => {
    const message = note();
    const accepted_at = relay.clock.now();
    expect(await send(message)).toEqual({ status: 'target_accepted', accepted_at });
    expect((await sync(ann, 'laptop')).items).toEqual([
      { sequence: 0, accepted_at, envelope: message.envelope, key_box: message.recipient_boxes[1] },
    ]);
    expect(relay.takeNotices()).toEqual([ann.timelineNotice(0)]);
  });

  test('sender boxes and authorization are refused', async () => {
    const message = note();
    const sender_boxes = message.recipient_boxes;
    expect(await codeOf({ ...message, sender_boxes })).toBe('bad_request');
    expect(await codeOf({ ...message, authorization: ben.grant(ann) })).toBe('bad_request');
  });

  test('no valid device among the boxes is an error, not a failed delivery', async () => {
    const message = note({ boxes: ['laptop'] });
    await ann.publishState(await ann.state({ devices: ['phone'] }));
    expect(await codeOf(message)).toBe('device_unknown');
  });
});

describe('04 §12.1: who may send', () => {
  test('no session, an account session', async () => {
    expect(await relay.codeOf(method, toBen())).toBe('unauthorized');
    expect(await relay.codeOf(method, toBen(), { session: ann.accountSession() })).toBe(
      'forbidden',
    );
  });

  test('an envelope of another account or device than the calling one', async () => {
    expect(await codeOf(toBen(), ben.session())).toBe('forbidden');
    expect(await codeOf(toBen(), ann.session('laptop'))).toBe('forbidden');
  });

  test("an account cannot read another account's result by repeating its request", async () => {
    const message = toBen();
    await send(message);
    expect(await codeOf(message, ben.session())).toBe('forbidden');
  });

  test('a device removed after its session was checked', async () => {
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await codeOf(toBen())).toBe('unauthorized');
  });

  test('an account that is not at home here: undetermined, elsewhere, in conflict', async () => {
    const eve = new Person(relay, 'eve');
    await eve.addDevice('phone');
    const message = eve.message(ben, { authorization: ben.grant(eve) });
    expect(await codeOf(message, eve.session())).toBe('target_not_local');
    const { account_routes: routes } = await relay.dump();
    expect(routes).toHaveLength(2);
    const setRoute = (relayId: string, conflict: number) =>
      relay.context.storage.write(`account:${ann.account}`, (tx) =>
        tx.run(
          'UPDATE account_routes SET relay_id = ?, conflict = ? WHERE account = ?',
          relayId,
          conflict,
          ann.account,
        ),
      );
    await setRoute('0x0000000000000000000000000000000000000000', 0);
    expect(await codeOf(toBen())).toBe('route_stale');
    await setRoute(relay.relayId, 1);
    expect(await codeOf(toBen())).toBe('invalid_state');
  });
});

describe('04 §12.2: refusals', () => {
  test('structure and values', async () => {
    const message = toBen({ senders: ['phone'] });
    const { envelope, recipient_boxes: boxes } = message;
    const [box] = boxes;
    for (const wrong of [
      {},
      { ...message, envelope: undefined },
      { ...message, extra: null },
      { ...message, envelope: { ...envelope, $context: network.context } },
      { ...message, envelope: { ...envelope, $type: 'svc.message' } },
      { ...message, envelope: { ...envelope, message_id: 'msg_AAECAwQFBgcICQoLDA0ODx' } },
      { ...message, envelope: { ...envelope, created_at: '1' } },
      { ...message, envelope: { ...envelope, payload: undefined, ciphertext: 'AAAA' } },
      { ...message, envelope: { ...envelope, payload: { ...envelope.payload, nonce: 'AAAA' } } },
      { ...message, envelope: { ...envelope, payload: { ...envelope.payload, extra: null } } },
      { ...message, envelope: { ...envelope, payload: { ...envelope.payload, $context: 'x' } } },
      { ...message, recipient_boxes: [{ ...box, $context: 'x' }] },
      { ...message, sender_boxes: [{ ...message.sender_boxes?.[0], $context: 'x' }] },
      { ...message, recipient_boxes: [] },
      { ...message, recipient_boxes: [box, box] },
      { ...message, recipient_boxes: Array.from({ length: 9 }, () => box) },
      { ...message, recipient_boxes: [{ ...box, sealed_key: 'AAAA' }] },
      { ...message, sender_boxes: [] },
      { ...message, authorization: { ...ben.grant(ann), signatures: {} } },
      { ...message, authorization: {} },
    ]) {
      expect(await codeOf(wrong)).toBe('bad_request');
    }
  });

  test('262,144 bytes of envelope pass and can be read, one more is too large', async () => {
    const message = toBen();
    const empty = canonicalJson({ ...message.envelope, extra: '' }).length;
    const sized = (length: number) =>
      resigned(message, { ...message.envelope, extra: 'x'.repeat(length) } as never);
    const room = 262_144 - empty;
    expect(await codeOf(sized(room + 1))).toBe('request_too_large');
    expect(await codeOf(sized(room))).toBe('ok');
    expect((await sync(ben)).items).toHaveLength(1);
  });

  test('boxes and credentials are bounded too (04 §21, decision)', async () => {
    const { keyBoxBytes, credentialBytes } = relay.context.limits;
    const message = toBen();
    const [box] = message.recipient_boxes;
    const filled = (object: object, bytes: number) => {
      const room = bytes - canonicalJson({ ...object, extra: '' } as never).length;
      return { ...object, extra: 'x'.repeat(room) };
    };
    const boxOf = (bytes: number) => ({
      ...toBen(),
      recipient_boxes: [filled(box as object, bytes)],
    });
    expect(await codeOf(boxOf(keyBoxBytes))).toBe('ok');
    expect(await codeOf(boxOf(keyBoxBytes + 1))).toBe('request_too_large');
    const credentialOf = (bytes: number) => ({
      ...toBen(),
      authorization: filled(ben.grant(ann), bytes),
    });
    expect(await codeOf(credentialOf(credentialBytes))).toBe('forbidden');
    expect(await codeOf(credentialOf(credentialBytes + 1))).toBe('request_too_large');
  });

  test('a bad envelope signature', async () => {
    const message = toBen();
    const envelope = { ...message.envelope, created_at: message.envelope.created_at - 1 };
    expect(await codeOf({ ...message, envelope })).toBe('invalid_signature');
    const signature = encodeBase64url(new Uint8Array(64));
    const unsigned = { ...message.envelope, device_signature: signature };
    expect(await codeOf({ ...message, envelope: unsigned })).toBe('invalid_signature');
  });

  test('created_at exactly at either limit passes, one second more does not', async () => {
    const now = relay.clock.now();
    const { futureTolerance, deliveryAgeLimit } = relay.context.limits;
    for (const [createdAt, code] of [
      [now + futureTolerance, 'ok'],
      [now + futureTolerance + 1, 'clock_skew'],
      [now - deliveryAgeLimit, 'ok'],
      [now - deliveryAgeLimit - 1, 'message_expired'],
      [Number.MAX_SAFE_INTEGER, 'clock_skew'],
      [Number.MIN_SAFE_INTEGER, 'message_expired'],
    ] as const) {
      expect(await codeOf(toBen({ createdAt })), String(createdAt)).toBe(code);
    }
  });

  test('no boxed device of the recipient, or of the sender, is valid', async () => {
    const old = toBen({ boxes: ['laptop'] });
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    expect(await codeOf(old)).toBe('device_unknown');
    const mine = toBen({ boxes: ['phone'], senders: ['laptop'] });
    await ann.publishState(await ann.state({ devices: ['phone'] }));
    expect(await codeOf(mine)).toBe('device_unknown');
    expect((await sync(ben)).items).toEqual([]);
  });

  test('one valid device is enough; the invalid ones never see the message', async () => {
    const message = toBen();
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    expect(await codeOf(message)).toBe('ok');
    await ben.publishState(await ben.state());
    expect((await sync(ben, 'phone')).items).toHaveLength(1);
    expect((await sync(ben, 'laptop')).items).toEqual([]);
  });

  test("a box for another account's device makes nothing visible to it", async () => {
    const eve = await Person.register(relay, 'eve');
    const message = toBen();
    const [foreign] = ann.message(eve, { authorization: eve.grant(ann) }).recipient_boxes;
    await send({ ...message, recipient_boxes: [...message.recipient_boxes, foreign] });
    expect((await sync(eve)).items).toEqual([]);
    const { timeline_boxes: boxes } = await relay.dump();
    expect(boxes).toHaveLength(2);
  });

  test('a request refused before acceptance stores nothing, and its ID can be used again', async () => {
    const refused = toBen({ authorization: ben.invite(relay.clock.now()), senders: ['phone'] });
    const before = await relay.dump();
    expect(await codeOf(refused)).toBe('forbidden');
    expect(await relay.dump()).toEqual(before);
    const messageId = refused.envelope.message_id;
    expect(await codeOf(toBen({ messageId }))).toBe('ok');
  });
});

describe('04 §15: idempotency', () => {
  test('a repeat returns the first result and changes nothing, as long as the result is stored', async () => {
    const message = toBen({ senders: ['phone'] });
    const first = await send(message);
    relay.takeNotices();
    const before = await relay.dump();
    relay.clock.advance(relay.context.limits.deliveryAgeLimit + 1);
    expect(await send(message)).toEqual(first);
    expect(relay.takeNotices()).toEqual([]);
    expect(await relay.dump()).toEqual(before);
  });

  test('neither lost authorisation nor removed devices revert an acceptance', async () => {
    const message = toBen({ boxes: ['laptop'] });
    const first = await send(message);
    await ben.publishState(await ben.state({ devices: [] }));
    expect(await send(message)).toEqual(first);
  });

  test('a repeat with any difference in its parameters is a conflict that changes nothing', async () => {
    const message = toBen({ senders: ['phone'] });
    await send(message);
    const before = await relay.dump();
    const { recipient_boxes: boxes, envelope } = message;
    const { message_id: messageId } = envelope;
    const { sender_boxes: _, ...withoutSenders } = message;
    for (const other of [
      { ...message, extra: 1 },
      { ...message, recipient_boxes: [...boxes].reverse() },
      { ...message, recipient_boxes: boxes.slice(1) },
      withoutSenders,
      { ...message, authorization: ben.grant(ann, { expires_at: relay.clock.now() + 5 }) },
      { ...message, envelope: { ...envelope, device_signature: 'A'.repeat(86) } },
      toBen({ messageId }),
      ann.message(ann, { messageId }),
    ]) {
      expect(await codeOf(other)).toBe('state_conflict');
    }
    expect(await relay.dump()).toEqual(before);
  });

  test('a message that an early version stored under its digest alone is read, and repeated', async () => {
    const message = toBen();
    const first = await send(message);
    const { storage } = relay.context;
    // Last 43 characters: the digest, without the time.
    for (const table of ['message_envelopes', 'timeline_records']) {
      const sql = `UPDATE ${table} SET envelope_id = substr(envelope_id, length(envelope_id) - 42)`;
      await storage.write('test', (tx) => tx.run(sql));
    }
    const { envelope, recipient_boxes: boxes } = message;
    expect(envelopeId(envelope.created_at, 'x'.repeat(43))).toHaveLength(51);
    const text = `[${boxes.map((box) => canonicalJson(box)).join(',')}]`;
    const id = digest(canonicalJson(envelope));
    const [row] = (await relay.dump()).sent_results as { received: string }[];
    expect(row?.received).toBe(contentDigest(id, text));
    expect(contentDigest(envelopeId(envelope.created_at, id), text)).toBe(contentDigest(id, text));
    expect((await sync(ben)).items.map((item) => item.envelope)).toEqual([envelope]);
    expect(await send(message)).toEqual(first);
  });

  test('member order is no difference', async () => {
    const message = toBen();
    const first = await send(message);
    const { envelope, ...others } = message;
    const reversed = Object.fromEntries(Object.entries(envelope).reverse());
    expect(await send({ ...others, envelope: reversed })).toEqual(first);
  });

  test('two accounts may use one message ID', async () => {
    const messageId = 'msg_AAECAwQFBgcICQoLDA0ODw';
    await send(toBen({ messageId }));
    const back = ben.message(ann, { messageId, authorization: ann.grant(ben) });
    expect(await codeOf(back, ben.session())).toBe('ok');
  });

  test('the same message twice at once is one message', async () => {
    const message = toBen({ senders: ['phone'] });
    const answers = await Promise.all([send(message), send(message), send(message)]);
    expect(new Set(answers.map((answer) => canonicalJson(answer))).size).toBe(1);
    expect(relay.takeNotices()).toHaveLength(2);
    expect((await sync(ben)).items).toHaveLength(1);
    expect((await sync(ann)).items).toHaveLength(1);
  });

  test('two different messages of one ID at once: one is accepted', async () => {
    const messageId = 'msg_AAECAwQFBgcICQoLDA0ODw';
    const rivals = [toBen({ messageId, text: 'one' }), toBen({ messageId, text: 'two' })];
    const codes = await Promise.all(rivals.map((message) => codeOf(message)));
    expect(codes.sort()).toEqual(['ok', 'state_conflict']);
  });

  test('many messages at once get distinct, consecutive sequences', async () => {
    const all = Array.from({ length: 40 }, () => toBen());
    await Promise.all(all.map((message) => send(message)));
    const { items } = await sync(ben);
    expect(items.map(({ sequence }) => sequence)).toEqual(all.map((_, index) => index));
  });

  test('after a restart results are there and sequences continue', async () => {
    const message = toBen();
    const first = await send(message);
    await relay.restart();
    expect(await send(message)).toEqual(first);
    await send(toBen());
    expect((await sync(ben)).items.map(({ sequence }) => sequence)).toEqual([0, 1]);
  });
});

describe('changes and failures during a call', () => {
  test('if storage fails at any write, nothing of the message is stored', async () => {
    const message = toBen({ senders: ['phone', 'laptop'] });
    expect(await throughEveryFault(relay, () => codeOf(message))).toBeGreaterThan(8);
    expect((await sync(ben)).items).toHaveLength(1);
  });

  test('a sender removed while its signature is verified is refused', async () => {
    const state = await ann.state({ devices: ['laptop'] });
    relay.meanwhile = () => ann.publishState(state);
    expect(await codeOf(toBen())).toBe('unauthorized');
    expect((await sync(ben)).items).toEqual([]);
  });

  test('a recipient device removed meanwhile, and public discovery turned off meanwhile', async () => {
    const state = await ben.state({ devices: ['phone'] });
    relay.meanwhile = () => ben.publishState(state);
    expect(await codeOf(toBen({ boxes: ['laptop'] }))).toBe('device_unknown');
    await ben.publishProfile({ public_discovery: true });
    relay.meanwhile = () => ben.publishProfile({ public_discovery: false });
    expect(await codeOf(ann.message(ben))).toBe('forbidden');
  });

  test.each([
    ['grant', () => ben.grant(ann, {}, 'laptop')],
    ['invite', () => ben.invite(undefined, 'laptop')],
  ])('the signer of a verified %s removed before the write', async (_, authorization) => {
    const state = await ben.state({ devices: ['phone'] });
    expect(await codeOf(toBen({ authorization: authorization() }))).toBe('ok');
    relay.afterProof = () => ben.publishState(state);
    expect(await codeOf(toBen({ authorization: authorization() }))).toBe('forbidden');
  });

  test('the signer of a known grant removed while the envelope is verified', async () => {
    const state = await ben.state({ devices: ['phone'] });
    const authorization = ben.grant(ann, {}, 'laptop');
    expect(await codeOf(toBen({ authorization }))).toBe('ok');
    expect(await codeOf(toBen({ authorization }))).toBe('ok');
    relay.meanwhile = () => ben.publishState(state);
    expect(await codeOf(toBen({ authorization }))).toBe('forbidden');
    expect((await sync(ben)).items).toHaveLength(2);
  });

  test('03 §16.3: a known signature of a grant counts while its device is valid', async () => {
    const grant = ben.grant(ann, {}, 'laptop');
    expect(await codeOf(toBen({ authorization: grant }))).toBe('ok');
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    expect(await codeOf(toBen({ authorization: grant, boxes: ['phone'] }))).toBe('forbidden');
  });

  test('a recipient that leaves or comes home meanwhile is served by the queue', async () => {
    const moveBen = (relayId: string) =>
      relay.context.storage.write(`account:${ben.account}`, (tx) =>
        tx.run('UPDATE account_routes SET relay_id = ? WHERE account = ?', relayId, ben.account),
      );
    relay.afterProof = async () => void (await moveBen(`0x${'0'.repeat(40)}`));
    expect(await send(toBen())).toMatchObject({ status: 'delivering' });
    relay.meanwhile = async () => void (await moveBen(relay.relayId));
    expect(await send(toBen())).toMatchObject({ status: 'delivering' });
    expect((await sync(ben)).items).toEqual([]);
    await relay.runJob('messages.delivery');
    expect((await sync(ben)).items).toHaveLength(2);
  });

  test('04 §17.1: no sequence after 2^53-1, no wrap, nothing appended', async () => {
    await send(toBen());
    await relay.context.storage.write('test', (tx) =>
      tx.run(
        'UPDATE timeline_heads SET head = ? WHERE account = ?',
        Number.MAX_SAFE_INTEGER - 1,
        ben.account,
      ),
    );
    expect(await codeOf(toBen())).toBe('ok');
    const before = await relay.dump();
    expect(await codeOf(toBen({ senders: ['phone'] }))).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
  });
});

/** A person who is not at home here. */
const ben2 = () => new Person(relay, 'ben2');

/** The parameters with another envelope, signed anew by ann's phone. */
function resigned(message: SendParams, envelope: MessageEnvelope): SendParams {
  const input = network.bytes(envelope, ['device_signature']);
  const signature = encodeBase64url(ann.device().signer.sign(input));
  return { ...message, envelope: { ...envelope, device_signature: signature } };
}
