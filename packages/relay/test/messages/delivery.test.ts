import { accountSigner, cosignRoute, deriveRelayId } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import type { RelayAnswer } from '../../src/context.ts';
import { releaseDeliveries } from '../../src/messages/index.ts';
import { type MessageOptions, Person, type SendParams } from '../fixtures/person.ts';
import { throughEveryFault, withFailingWrite } from '../support/faults.ts';
import { type InProcessRelay, inProcessRelay, network } from '../support/in-process-relay.ts';

const job = 'messages.delivery';
const relay = inProcessRelay();
const ann = relay.person('ann');
/** Not at home at any relay at first. */
let ben: Person;

beforeEach(async () => {
  ben = new Person(relay, 'ben');
  await ben.addDevice('phone');
});

const toBen = (options: MessageOptions = {}): SendParams =>
  ann.message(ben, { authorization: ben.grant(ann), ...options });
const send = (params: SendParams) => relay.call('message.send', params, { session: ann.session() });
const sendCode = (params: unknown) =>
  relay.codeOf('message.send', params, { session: ann.session() });
const status = (params: SendParams, person = ann) =>
  relay.call(
    'message.delivery.status',
    { message_id: params.envelope.message_id },
    { session: person.session() },
  );
const inbox = async (person = ben) =>
  ((await relay.call('message.timeline.sync', {}, { session: person.session() })) as JsonObject)
    .items as unknown[];
const queue = async () => (await relay.rows('deliveries')) as Record<string, number | string>[];

const relays = ['55', '66'].map((byte) =>
  accountSigner(network, new Uint8Array(32).fill(Number.parseInt(byte, 16))),
);
const relayIds = relays.map((signer) => deriveRelayId(network, signer.publicKey));
/** Makes the route directory return a route of the person at another relay from now on. */
async function atRelay(index: number, person = ben): Promise<void> {
  const signer = relays[index] as (typeof relays)[number];
  const draft = await person.route({ relay_id: relayIds[index] as string });
  const route = await cosignRoute(network, signer, draft);
  relay.routes = (account) => (account === person.account ? [route] : []);
}
/** Answers requests to other relays one after another; the last answer repeats. */
function answering(...answers: RelayAnswer[]): { relayId: string; params: JsonObject }[] {
  const asked: { relayId: string; params: JsonObject }[] = [];
  relay.callRelay = (relayId, _method, params) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)] as RelayAnswer;
    asked.push({ relayId, params });
    return Promise.resolve(answer);
  };
  return asked;
}
/** What a target answers that has the message, at any time of its own. */
const accepted: RelayAnswer = {
  kind: 'result',
  value: { status: 'target_accepted', accepted_at: 1_750_000_000 },
};
const refused = (code: string, retryAfter?: number): RelayAnswer => ({
  kind: 'refused',
  code,
  message: 'no',
  ...(retryAfter === undefined ? {} : { retryAfter }),
});
/** Advances the clock to the next attempt and makes it. */
async function nextAttempt(): Promise<void> {
  const [row] = await queue();
  relay.clock.advance(Math.max(0, Number(row?.next_attempt_at) - relay.clock.now()));
  await relay.runJob(job);
}

describe('04 §12: a recipient that is not at home here', () => {
  test('the message is accepted and queued, and its sent record exists', async () => {
    const message = toBen({ senders: ['phone'] });
    const accepted_at = relay.clock.now();
    expect(await send(message)).toEqual({ status: 'delivering', accepted_at });
    expect(await status(message)).toEqual({ status: 'delivering', accepted_at });
    expect(await inbox(ann)).toHaveLength(1);
    expect(relay.takeNotices()).toEqual([ann.timelineNotice(0)]);
    expect(await queue()).toHaveLength(1);
  });

  test('a repeat answers the same and queues nothing', async () => {
    const message = toBen();
    const first = await send(message);
    const before = await relay.dump();
    expect(await send(message)).toEqual(first);
    expect(await sendCode({ ...message, extra: 1 })).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
  });

  test('every refusal that does not need the state of the recipient comes at once', async () => {
    const eve = new Person(relay, 'eve');
    await eve.addDevice('phone');
    const now = relay.clock.now();
    expect(await sendCode(toBen({ authorization: eve.grant(ann) }))).toBe('forbidden');
    expect(await sendCode(toBen({ authorization: ben.grant(ann, { expires_at: now }) }))).toBe(
      'forbidden',
    );
    expect(await sendCode(toBen({ authorization: eve.invite() }))).toBe('forbidden');
    expect(await queue()).toEqual([]);
  });

  test('the number of queued messages of an account is limited', async () => {
    await relay.restart({ queuedDeliveries: 2 });
    const messages = [toBen(), toBen(), toBen()];
    const codes = [];
    for (const message of messages) codes.push(await sendCode(message));
    expect(codes).toEqual(['ok', 'ok', 'rate_limited']);
    expect(await sendCode(messages[0])).toBe('ok');
  });

  test('if storage fails at any write, nothing of the message is stored', async () => {
    const message = toBen({ senders: ['phone'] });
    const code = () => sendCode(message);
    expect(await throughEveryFault(relay, code)).toBeGreaterThan(6);
    expect(await queue()).toHaveLength(1);
  });
});

describe('a recipient that comes home here later', () => {
  test('gets the message once, and the sender gets the result once', async () => {
    const message = toBen();
    await send(message);
    await ben.moveIn();
    relay.takeNotices();
    const accepted_at = relay.clock.now();
    relay.clock.advance(60);
    await nextAttempt();
    expect(await status(message)).toEqual({ status: 'target_accepted', accepted_at });
    expect(await inbox()).toEqual([
      {
        sequence: 0,
        accepted_at: relay.clock.now(),
        envelope: message.envelope,
        key_box: message.recipient_boxes[0],
      },
    ]);
    expect(relay.takeNotices()).toEqual([ben.timelineNotice(0)]);
    expect(await queue()).toEqual([]);
    await relay.runJob(job);
    expect(await inbox()).toHaveLength(1);
  });

  test('a restart in between loses nothing', async () => {
    const message = toBen();
    await send(message);
    await ben.moveIn();
    await relay.restart();
    await nextAttempt();
    expect(await inbox()).toHaveLength(1);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });

  test('if an attempt outlasts its lease and a second one starts, one record is appended', async () => {
    const message = toBen();
    await send(message);
    await ben.moveIn();
    relay.takeNotices();
    relay.afterProof = async () => {
      const [row] = await queue();
      relay.clock.advance(Number(row?.next_attempt_at) - relay.clock.now());
      await relay.runJob(job);
      expect(await inbox()).toHaveLength(1);
    };
    await nextAttempt();
    expect(await inbox()).toHaveLength(1);
    expect(relay.takeNotices()).toHaveLength(1);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });

  test('if the recipient leaves again before the receipt, nothing is appended here and delivery goes on', async () => {
    const message = toBen();
    await send(message);
    await ben.moveIn();
    relay.afterProof = async () => {
      await relay.context.storage.write(`account:${ben.account}`, (tx) =>
        tx.run(
          'UPDATE account_routes SET relay_id = ? WHERE account = ?',
          relayIds[0] as string,
          ben.account,
        ),
      );
    };
    await nextAttempt();
    expect(await inboxHead(ben)).toBe(-1);
    const asked = answering(accepted);
    await nextAttempt();
    expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0]]);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });

  test('if no boxed device is valid, the delivery ends and the sent record stays', async () => {
    await ben.addDevice('tablet');
    const authorization = ben.grant(ann, {}, 'tablet');
    const message = toBen({ boxes: ['phone'], senders: ['phone'], authorization });
    await send(message);
    await ben.publishState(await ben.state({ devices: ['tablet'] }));
    await ben.publishRoute();
    await nextAttempt();
    expect(await status(message)).toMatchObject({
      status: 'failed',
      error: { code: 'device_unknown' },
    });
    expect(await inbox(ann)).toHaveLength(1);
    expect(await inboxHead(ben)).toBe(-1);
    expect(await queue()).toEqual([]);
  });

  test.each([
    ['a grant without a valid signature', () => ({ ...ben.grant(ann), extra: 1 }), 'forbidden'],
    ['an invite that does not verify', () => ({ ...ben.invite(), extra: 1 }), 'invalid_signature'],
    ['no authorization, discovery closed', () => undefined, 'forbidden'],
  ])('%s ends the delivery there', async (_, authorization, code) => {
    const message = ann.message(ben, { authorization: authorization() as never });
    await send(message);
    await ben.moveIn();
    await nextAttempt();
    expect(await status(message)).toMatchObject({ status: 'failed', error: { code } });
    expect(await inboxHead(ben)).toBe(-1);
  });

  test('if storage fails at any write, the delivery stays queued and succeeds later', async () => {
    const message = toBen();
    await send(message);
    await ben.moveIn();
    relay.takeNotices();
    for (let failAt = 0; ; failAt += 1) {
      await withFailingWrite(relay, failAt, () => relay.runJob(job)).catch(() => undefined);
      const [row] = await queue();
      if (row === undefined) break;
      expect(await inboxHead(ben)).toBe(-1);
      expect(relay.takeNotices()).toEqual([]);
      expect(await status(message)).toMatchObject({ status: 'delivering' });
      relay.clock.advance(120);
    }
    expect(await inbox()).toHaveLength(1);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });
});

describe('04 §16.1: the deadline', () => {
  // The attempts of a week would take a while.
  beforeEach(() => relay.restart({ deliveryAgeLimit: 20_000 }));

  test.each([
    ['the age limit comes first', 0, (limits: Limits) => limits.deliveryAgeLimit],
    ['an old envelope has less time', 1_000, (limits: Limits) => limits.deliveryAgeLimit - 1_000],
  ])('%s', async (_, age, left) => {
    const message = toBen({ createdAt: relay.clock.now() - age });
    await send(message);
    const deadline = relay.clock.now() + left(relay.context.limits);
    await until(deadline - 1);
    expect(await status(message)).toMatchObject({ status: 'delivering' });
    await until(deadline);
    expect(await status(message)).toMatchObject({
      status: 'failed',
      error: { code: 'message_expired' },
    });
    expect(await queue()).toEqual([]);
  });

  test('the shorter of delivery age limit and retention is the deadline', async () => {
    await relay.restart({ messageRetention: 1_000, deliveryAgeLimit: 5_000 });
    const message = toBen();
    await send(message);
    const deadline = relay.clock.now() + 1_000;
    await until(deadline - 1);
    expect(await status(message)).toMatchObject({ status: 'delivering' });
    await until(deadline);
    expect(await status(message)).toMatchObject({ status: 'failed' });
  });

  test('a relay that was down at the deadline ends the delivery after its restart', async () => {
    const message = toBen();
    await send(message);
    relay.clock.advance(relay.context.limits.messageRetention + 86_400);
    await relay.restart();
    await relay.runJob('messages.retention');
    await relay.runJob(job);
    const options = { session: ann.session() };
    const params = { message_id: message.envelope.message_id };
    expect(await relay.call('message.delivery.status', params, options)).toMatchObject({
      status: 'failed',
    });
  });

  test('a late success does not change a failure', async () => {
    const message = toBen();
    await send(message);
    await until(relay.clock.now() + relay.context.limits.deliveryAgeLimit);
    const failed = await status(message);
    await ben.moveIn();
    await relay.runJob(job);
    expect(await status(message)).toEqual(failed);
    expect(await inboxHead(ben)).toBe(-1);
  });
});

describe('04 §16.2: attempts at other relays', () => {
  beforeEach(() => atRelay(0));

  test('the request is what was submitted, with the certificate, without sender boxes', async () => {
    const asked = answering(accepted);
    const message = toBen({ senders: ['phone'] });
    await send(message);
    await nextAttempt();
    const { sender_boxes: _, ...submitted } = message;
    expect(asked).toEqual([
      {
        relayId: relayIds[0],
        params: { ...submitted, signer_certificate: ann.device().certificate },
      },
    ]);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
    expect(await queue()).toEqual([]);
  });

  test.each([
    ['internal_error', 'delivering'],
    ['bad_gateway', 'delivering'],
    ['rate_limited', 'delivering'],
    ['temporarily_unavailable', 'delivering'],
    ['route_stale', 'delivering'],
    ['target_not_local', 'delivering'],
    ['route_not_found', 'delivering'],
    ['not_found', 'delivering'],
    ['invalid_state', 'delivering'],
    ['device_unknown', 'device_unknown'],
    ['clock_skew', 'clock_skew'],
    ['forbidden', 'forbidden'],
    ['invalid_signature', 'invalid_signature'],
    ['message_expired', 'message_expired'],
    ['state_conflict', 'state_conflict'],
    ['no_such_code', 'bad_gateway'],
    ['__proto__', 'bad_gateway'],
  ])('%s: %s', async (code, outcome) => {
    answering(refused(code));
    const message = toBen();
    await send(message);
    await nextAttempt();
    const result = (await status(message)) as { status: string; error?: { code: string } };
    expect(result.error?.code ?? result.status).toBe(outcome);
    expect(await queue()).toHaveLength(outcome === 'delivering' ? 1 : 0);
  });

  test('any error text of the other relay can be stored', async () => {
    answering({ kind: 'refused', code: 'forbidden', message: 'a\u0000b\ud800' });
    const message = toBen();
    await send(message);
    await nextAttempt();
    const error = { code: 'forbidden', message: 'a\ufffdb\ufffd' };
    expect(await status(message)).toMatchObject({ status: 'failed', error });
    expect(await queue()).toEqual([]);
  });

  test('the stored error text of the other relay has at most 512 characters', async () => {
    // The cut would halve the last pair.
    const text = `${'x'.repeat(511)}\u{1f600}`;
    answering({ kind: 'refused', code: 'forbidden', message: text });
    const message = toBen();
    await send(message);
    await nextAttempt();
    const error = { code: 'forbidden', message: `${'x'.repeat(511)}\ufffd` };
    expect(await status(message)).toMatchObject({ status: 'failed', error });
  });

  test.each([
    ['no valid response', { kind: 'invalid', why: 'id of another request' }],
    ['another status', { kind: 'result', value: { status: 'delivering', accepted_at: 1 } }],
    ['no time', { kind: 'result', value: { status: 'target_accepted' } }],
    ['no object', { kind: 'result', value: null }],
    [
      'a failure with an error',
      {
        kind: 'result',
        value: { status: 'failed', accepted_at: 1, error: { code: 'forbidden', message: '' } },
      },
    ],
  ] as const)('07 §C4: %s is a bad gateway: the same relay is asked again', async (_, answer) => {
    const asked = answering(answer, accepted);
    const message = toBen();
    await send(message);
    await nextAttempt();
    expect(await status(message)).toMatchObject({ status: 'delivering' });
    await atRelay(1);
    await nextAttempt();
    expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0], relayIds[0]]);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });

  test('16.3: a route that is not higher changes no target', async () => {
    const asked = answering({ kind: 'refused', code: 'route_stale', message: '' });
    await send(toBen());
    await nextAttempt();
    const old = await ben.route({ relay_id: relayIds[1] as string, revision: 1 });
    const route = await cosignRoute(network, relays[1] as (typeof relays)[number], old);
    relay.routes = () => [route];
    await nextAttempt();
    expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0], relayIds[0]]);
  });

  test('if storage fails at any write, the delivery goes on until the relay has confirmed it', async () => {
    const asked = answering(accepted);
    const message = toBen();
    await send(message);
    let failures = 0;
    for (; (await queue()).length > 0; failures += 1) {
      await withFailingWrite(relay, failures, () => relay.runJob(job)).catch(() => undefined);
      relay.clock.advance(120);
    }
    expect(failures).toBeGreaterThan(3);
    expect(new Set(asked.map(({ relayId }) => relayId))).toEqual(new Set([relayIds[0]]));
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });

  test('12: message.send to an account elsewhere asks no relay and is accepted at once', async () => {
    const asked = answering(refused('not_found'));
    await send(toBen());
    await nextAttempt();
    asked.length = 0;
    relay.routes = () => Promise.reject(new Error('the directory fails'));
    expect(await send(toBen())).toMatchObject({ status: 'delivering' });
    expect(asked).toEqual([]);
  });

  test('waits grow up to the limit and are never zero', async () => {
    answering(refused('temporarily_unavailable'));
    await send(toBen());
    const waits: number[] = [];
    for (let count = 0; count < 12; count += 1) {
      await nextAttempt();
      const [row] = await queue();
      waits.push(Number(row?.next_attempt_at) - relay.clock.now());
    }
    const { deliveryRetryFirst: first, deliveryRetryMost: most } = relay.context.limits;
    for (const [attempts, wait] of waits.entries()) {
      const backoff = Math.min(most, first * 2 ** attempts);
      expect(wait).toBeGreaterThanOrEqual(Math.ceil(backoff / 2));
      expect(wait).toBeLessThanOrEqual(backoff);
    }
  });

  test('retry_after is respected and never moves the deadline', async () => {
    answering(refused('rate_limited', 10_000), refused('rate_limited', Number.MAX_SAFE_INTEGER));
    const message = toBen();
    await send(message);
    const { deadline } = (await queue())[0] as { deadline: number };
    await nextAttempt();
    const [waiting] = await queue();
    expect(Number(waiting?.next_attempt_at)).toBe(relay.clock.now() + 10_000);
    await nextAttempt();
    expect((await queue())[0]?.next_attempt_at).toBe(deadline);
    await nextAttempt();
    expect(await status(message)).toMatchObject({ error: { code: 'message_expired' } });
  });

  test('16.3: after an unknown outcome only that relay is asked, even if the account moves', async () => {
    const asked = answering({ kind: 'unknown' }, { kind: 'unreachable' }, accepted);
    const message = toBen();
    await send(message);
    await nextAttempt();
    await atRelay(1);
    await nextAttempt();
    await ben.moveIn();
    await nextAttempt();
    expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0], relayIds[0], relayIds[0]]);
    expect(new Set(asked.map(({ params }) => canonicalJson(params))).size).toBe(1);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
    expect(await inboxHead(ben)).toBe(-1);
  });

  test('16.3: a crash during an attempt is an unknown outcome', async () => {
    relay.callRelay = () => Promise.reject(new Error('the process dies here'));
    await send(toBen());
    await relay.runJob(job);
    await relay.restart();
    await atRelay(1);
    const asked = answering(accepted);
    expect((await queue())[0]).toMatchObject({ target: relayIds[0] });
    await nextAttempt();
    expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0]]);
  });

  test('after a crash during an attempt the relay is asked again at the start', async () => {
    relay.callRelay = () => Promise.reject(new Error('the process dies here'));
    const message = toBen();
    await send(message);
    await relay.runJob(job);
    await relay.restart();
    const asked = answering(accepted);
    await relay.runJob(job);
    expect(asked).toEqual([]);
    await releaseDeliveries(relay.context);
    await relay.runJob(job);
    expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0]]);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });

  test('a start makes no delivery due that waits after an answer', async () => {
    const asked = answering(refused('rate_limited', 60), accepted);
    await send(toBen());
    await nextAttempt();
    await relay.restart();
    await releaseDeliveries(relay.context);
    await relay.runJob(job);
    expect(asked).toHaveLength(1);
  });

  test('16.2: after a route error, the relay of a higher route is asked at once', async () => {
    const asked: string[] = [];
    relay.callRelay = async (relayId) => {
      asked.push(relayId);
      if (asked.length > 1) return accepted;
      await atRelay(1);
      return refused('route_stale');
    };
    const message = toBen();
    await send(message);
    await relay.runJob(job);
    expect(asked).toEqual([relayIds[0], relayIds[1]]);
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });

  test('16.3: a route error of that relay frees the delivery for the new one', async () => {
    const asked = answering({ kind: 'unknown' }, refused('route_stale'), accepted);
    await send(toBen());
    await nextAttempt();
    await atRelay(1);
    await nextAttempt();
    await nextAttempt();
    expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0], relayIds[0], relayIds[1]]);
  });

  test.each(['internal_error', 'bad_gateway', 'rate_limited', 'temporarily_unavailable'])(
    '16.3: %s of that relay is no route error, so it is asked again',
    async (code) => {
      const asked = answering(refused(code), accepted);
      await send(toBen());
      await nextAttempt();
      await atRelay(1);
      await nextAttempt();
      expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0], relayIds[0]]);
    },
  );

  test.each([
    ['a route error', refused('route_stale')],
    ['no answer', { kind: 'unknown' }],
    ['a final error', refused('device_unknown')],
  ] as const)(
    '16.3: %s that comes when others have the delivery changes nothing of it',
    async (_, answer) => {
      const late = Promise.withResolvers<RelayAnswer>();
      const asked: string[] = [];
      const answers = [late.promise, refused('route_stale'), { kind: 'unknown' } as const];
      relay.callRelay = async (relayId) => {
        asked.push(relayId);
        return (await answers[asked.length - 1]) as RelayAnswer;
      };
      const message = toBen();
      await send(message);
      await atRelay(0);
      const first = relay.runJob(job);
      await expect.poll(() => asked).toHaveLength(1);
      const waiting = async () => (await queue())[0];
      // Either run may claim it: the first one keeps polling as well.
      await nextAttempt();
      await expect.poll(waiting).toMatchObject({ attempts: 1, target: null });
      await atRelay(1);
      await nextAttempt();
      await expect.poll(waiting).toMatchObject({ attempts: 2, target: relayIds[1] });
      const bound = await waiting();
      late.resolve(answer);
      await first;
      expect(await queue()).toEqual([bound]);
      expect(await status(message)).toMatchObject({ status: 'delivering' });
    },
  );

  test('16.3: a request that never left this relay binds the delivery to no relay', async () => {
    const asked = answering({ kind: 'unreachable' }, accepted);
    await send(toBen());
    await nextAttempt();
    await atRelay(1);
    await nextAttempt();
    expect(asked.map(({ relayId }) => relayId)).toEqual([relayIds[0], relayIds[1]]);
  });

  test('one slow relay does not delay other deliveries, and at most the limit are in flight', async () => {
    await relay.restart({ deliveriesPerRelay: 2 });
    await atRelay(0);
    const slow = Promise.withResolvers<RelayAnswer>();
    let underWay = 0;
    let maximum = 0;
    let count = 0;
    relay.callRelay = async () => {
      count += 1;
      underWay += 1;
      maximum = Math.max(maximum, underWay);
      const answer = count === 1 ? await slow.promise : await Promise.resolve(accepted);
      underWay -= 1;
      if (count === 6) slow.resolve(accepted);
      return answer as RelayAnswer;
    };
    const messages = Array.from({ length: 6 }, () => toBen());
    for (const message of messages) await send(message);
    await relay.runJob(job);
    expect(await queue()).toEqual([]);
    expect([count, maximum]).toEqual([6, 2]);
  });

  test('an outcome that storage refuses is stored once storage works, without another attempt', async () => {
    answering(accepted);
    await send(toBen());
    await nextAttempt();
    const slow = Promise.withResolvers<RelayAnswer>();
    let count = 0;
    relay.callRelay = () => {
      count += 1;
      if (count === 1) return Promise.resolve(accepted);
      relay.faults.beforeCommit = () => {
        delete relay.faults.beforeCommit;
        slow.resolve(accepted);
        throw new Error('fault of the test');
      };
      return slow.promise;
    };
    const messages = [toBen(), toBen()];
    for (const message of messages) await send(message);
    await relay.runJob(job);
    expect(await queue()).toEqual([]);
    expect(count).toBe(2);
    for (const message of messages) {
      expect(await status(message)).toMatchObject({ status: 'target_accepted' });
    }
  });

  test('two processes never take one delivery at once', async () => {
    const asked = answering(accepted);
    for (let count = 0; count < 5; count += 1) await send(toBen());
    await Promise.all([relay.runJob(job), relay.runJob(job)]);
    expect(new Set(asked.map(({ params }) => canonicalJson(params))).size).toBe(5);
    expect(asked).toHaveLength(5);
  });

  test('03 §12: an accepted message is delivered even after the sender has left', async () => {
    const message = toBen();
    await send(message);
    answering(accepted);
    await relay.context.storage.write(`account:${ann.account}`, (tx) =>
      tx.run(
        'UPDATE account_routes SET relay_id = ? WHERE account = ?',
        relayIds[1] as string,
        ann.account,
      ),
    );
    await nextAttempt();
    expect(await sendCode(message)).toBe('route_stale');
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
  });
});

describe('04 §14.3: message.delivery.status', () => {
  test('any device of the sending account can read the status, and no other account', async () => {
    await ann.addDevice('laptop');
    await ann.publishState();
    const message = toBen();
    await send(message);
    const params = { message_id: message.envelope.message_id };
    const codeOf = (session: object | undefined) =>
      relay.codeOf('message.delivery.status', params, { session: session as never });
    expect(await codeOf(ann.session('laptop'))).toBe('ok');
    expect(await codeOf(ann.accountSession())).toBe('forbidden');
    expect(await codeOf(undefined)).toBe('unauthorized');
    await ben.moveIn();
    expect(await codeOf(ben.session())).toBe('not_found');
    await ann.publishState(await ann.state({ devices: ['phone'] }));
    expect(await codeOf(ann.session('laptop'))).toBe('unauthorized');
  });

  test('unknown and malformed IDs', async () => {
    for (const [message_id, code] of [
      ['msg_AAECAwQFBgcICQoLDA0ODw', 'not_found'],
      ['msg_AAECAwQFBgcICQoLDA0ODx', 'bad_request'],
      ['', 'bad_request'],
      [null, 'bad_request'],
      [7, 'bad_request'],
    ]) {
      const options = { session: ann.session() };
      expect(await relay.codeOf('message.delivery.status', { message_id }, options)).toBe(code);
    }
  });

  test('the result is stored until its retention ends, for self-delivery too', async () => {
    const message = ann.message(ann);
    await send(message);
    relay.clock.advance(relay.context.limits.messageRetention - 1);
    await relay.runJob('messages.retention');
    expect(await status(message)).toMatchObject({ status: 'target_accepted' });
    relay.clock.advance(1);
    await relay.runJob('messages.retention');
    const params = { message_id: message.envelope.message_id };
    const options = { session: ann.session() };
    expect(await relay.codeOf('message.delivery.status', params, options)).toBe('not_found');
    expect(await sendCode(message)).toBe('message_expired');
  });

  test('15.2: a repeat is recognised until it is too old to be a new message', async () => {
    await relay.restart({ messageRetention: 1_000, deliveryAgeLimit: 5_000 });
    const message = ann.message(ann);
    const first = await send(message);
    relay.clock.advance(5_000);
    await relay.runJob('messages.retention');
    expect(await send(message)).toEqual(first);
    relay.clock.advance(1);
    await relay.runJob('messages.retention');
    expect(await sendCode(message)).toBe('message_expired');
  });
});

type Limits = InProcessRelay['context']['limits'];

/** Advances the clock to an instant and makes every attempt that becomes due. */
async function until(instant: number): Promise<void> {
  for (;;) {
    const next = await relay.runJob(job);
    if (next === undefined || next > instant) break;
    relay.clock.advance(next - relay.clock.now());
  }
  relay.clock.advance(instant - relay.clock.now());
  await relay.runJob(job);
}

/** Reads the highest sequence of a timeline from storage, without any session. */
async function inboxHead(person: Person): Promise<number> {
  const { timeline_heads: heads } = await relay.dump();
  const found = (heads as { account: string; head: number }[]).find(
    ({ account }) => account === person.account,
  );
  return found?.head ?? -1;
}
