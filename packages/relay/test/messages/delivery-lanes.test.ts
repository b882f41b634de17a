import { accountSigner, cosignRoute, deriveRelayId, type FinalRoute } from '@posthouse/protocol';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { RelayAnswer } from '../../src/context.ts';
import { wakeDestination } from '../../src/messages/index.ts';
import {
  lanesSql,
  moveInLaneSql,
  moveToLane,
  postponeLaneSql,
  releaseLaneSql,
  wakeLaneSql,
} from '../../src/messages/lane-store.ts';
import { dueSql } from '../../src/messages/queue-store.ts';
import { Person } from '../fixtures/person.ts';
import { engine, scansAndSorts } from '../support/engine.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const job = 'messages.delivery';
const relay = inProcessRelay();
const ann = relay.person('ann');

const signers = [0x55, 0x66, 0x67].map((byte) =>
  accountSigner(network, new Uint8Array(32).fill(byte)),
);
const [x, y, z] = signers.map(({ publicKey }) => deriveRelayId(network, publicKey)) as [
  string,
  string,
  string,
];
const accepted: RelayAnswer = {
  kind: 'result',
  value: { status: 'target_accepted', accepted_at: 1_750_000_000 },
};
const refused = (code: string, retryAfter = 0): RelayAnswer => ({
  ...{ kind: 'refused', code, message: 'no', retryAfter },
});

let routes: Map<string, FinalRoute>;
let answers: Map<string, (count: number) => RelayAnswer | Promise<RelayAnswer>>;
/** Relays in the order in which they were asked. */
let asked: string[];
let ben: Person;
let eve: Person;

beforeEach(async () => {
  routes = new Map();
  answers = new Map();
  asked = [];
  relay.routes = (account) => [routes.get(account)].filter((route) => route !== undefined);
  relay.callRelay = async (relayId) => {
    asked.push(relayId);
    const answer = answers.get(relayId);
    return (await answer?.(asked.filter((one) => one === relayId).length)) ?? accepted;
  };
  ben = await personAt('ben', x);
  eve = await personAt('eve', y);
});

async function personAt(name: string, relayId: string): Promise<Person> {
  const person = new Person(relay, name);
  await person.addDevice('phone');
  await move(person, relayId);
  return person;
}

async function move(person: Person, relay_id: string): Promise<void> {
  const signer = signers[[x, y, z].indexOf(relay_id)] as (typeof signers)[number];
  const draft = await person.route({ relay_id });
  routes.set(person.account, await cosignRoute(network, signer, draft));
}

/** Sends a message; the sender's home relay knows the recipient's route if it delivered before. */
async function send(to: Person): Promise<string> {
  const message = ann.message(to, { authorization: to.grant(ann) });
  await relay.call('message.send', message, { session: ann.session() });
  return message.envelope.message_id;
}
const statusOf = async (message_id: string) =>
  await relay.call('message.delivery.status', { message_id }, { session: ann.session() });
const queue = async () => (await relay.rows('deliveries')) as Record<string, number | string>[];
const runDue = () => relay.runJob(job);

/** Queues copies of a queued message under other IDs, due now. */
async function copy(messageId: string, count: number): Promise<void> {
  await relay.context.storage.write('test', async (tx) => {
    for (let index = 0; index < count; index += 1) {
      await tx.run(
        `INSERT INTO deliveries (sender, message_id, recipient, envelope_id, certificate_id,
            recipient_boxes, credential, deadline, destination, next_attempt_at, attempts)
          SELECT sender, ?, recipient, envelope_id, certificate_id, recipient_boxes, credential,
            deadline, destination, ?, 0 FROM deliveries WHERE message_id = ?`,
        `${messageId} ${index}`,
        relay.clock.now(),
        messageId,
      );
    }
  });
}

/** Waits until the run that was woken has claimed what it may: claims come one after another. */
async function claimed(): Promise<void> {
  const { storage } = relay.context;
  for (let turn = 0; turn < 5; turn += 1) {
    await storage.read((tx) => tx.get('SELECT 1 AS one'));
    await storage.write(job, (tx) => tx.get('SELECT 1 AS one'));
  }
}

/** Lets the relay learn where the people are at home. */
async function learnRoutes(...people: Person[]): Promise<void> {
  for (const person of people) await send(person);
  await runDue();
  expect(await queue()).toEqual([]);
  asked.length = 0;
}

describe('04 §16: a relay that hangs', () => {
  test('with 1,000 messages waiting for it does not delay a message to another relay', async () => {
    await relay.restart({ queuedDeliveries: 2_000, deliveriesPerRelay: 4 });
    await learnRoutes(ben, eve);
    const hanging = Promise.withResolvers<RelayAnswer>();
    answers.set(x, () => hanging.promise);
    await copy(await send(ben), 999);
    const run = runDue();
    await expect.poll(() => asked).toHaveLength(4);
    const toEve = await send(eve);
    await expect.poll(() => statusOf(toEve)).toMatchObject({ status: 'target_accepted' });
    expect(asked).toEqual([x, x, x, x, y]);
    expect(await queue()).toHaveLength(1_000);
    answers.delete(x);
    hanging.resolve(accepted);
    await run;
    expect(await queue()).toEqual([]);
    expect(asked).toHaveLength(1_001);
  });

  test.each([
    [16, 14],
    [7, 6],
    [2, 1],
    [1, 1],
  ])('07 §C2: that allows %i calls at once is asked %i', async (allowed, deliveries) => {
    await learnRoutes(ben, eve);
    relay.callsAtOnce = (relayId) => (relayId === x ? allowed : 128);
    const hanging = Promise.withResolvers<RelayAnswer>();
    answers.set(x, () => hanging.promise);
    await copy(await send(ben), 29);
    const run = runDue();
    await expect.poll(() => asked).toHaveLength(deliveries);
    await claimed();
    expect(asked).toHaveLength(deliveries);
    hanging.resolve(accepted);
    await run;
    expect(asked).toHaveLength(30);
    expect(await queue()).toEqual([]);
  });

  test('leaves slots to lanes with nothing under way, though slots are scarce', async () => {
    await relay.restart({ deliveryConcurrency: 4, deliveriesPerRelay: 4, deliveryLookups: 1 });
    await learnRoutes(ben, eve);
    const hanging = Promise.withResolvers<RelayAnswer>();
    answers.set(x, () => hanging.promise);
    await copy(await send(ben), 1);
    const run = runDue();
    await expect.poll(() => asked).toEqual([x, x]);
    await copy(await send(ben), 5);
    relay.context.jobs.wake(job);
    await claimed();
    await expect.poll(() => asked).toEqual([x, x, x]);
    const toEve = await send(eve);
    await expect.poll(() => statusOf(toEve)).toMatchObject({ status: 'target_accepted' });
    hanging.resolve(accepted);
    await run;
  });

  test('leaves several slots to another lane, so that its messages go at once', async () => {
    await relay.restart({ deliveryConcurrency: 64, deliveriesPerRelay: 64 });
    await learnRoutes(ben, eve);
    const hanging = Promise.withResolvers<RelayAnswer>();
    for (const relayId of [x, y]) answers.set(relayId, () => hanging.promise);
    await copy(await send(ben), 59);
    const run = runDue();
    await expect.poll(() => asked).toHaveLength(33);
    await claimed();
    expect(asked).toHaveLength(33);
    await copy(await send(eve), 19);
    relay.context.jobs.wake(job);
    await expect.poll(() => asked.filter((relayId) => relayId === y)).toHaveLength(11);
    await claimed();
    expect(asked).toHaveLength(44);
    hanging.resolve(accepted);
    await run;
    expect(await queue()).toEqual([]);
  });

  test('a directory that hangs does not delay messages to located recipients', async () => {
    await learnRoutes(eve);
    const hanging = Promise.withResolvers<FinalRoute[]>();
    relay.routes = () => hanging.promise;
    await send(ben);
    const run = runDue();
    await expect.poll(async () => Number((await queue())[0]?.wake_after)).toBeGreaterThan(0);
    const toEve = await send(eve);
    await expect.poll(() => statusOf(toEve)).toMatchObject({ status: 'target_accepted' });
    hanging.resolve([routes.get(ben.account) as FinalRoute]);
    await run;
    expect(asked).toEqual([y, x]);
  });
});

test('04 §16: a recipient located while the job reads its queue gets the message in that run', async () => {
  const found = Promise.withResolvers<FinalRoute[]>();
  const locate = vi.fn(() => found.promise);
  relay.routes = locate;
  await send(ben);
  const run = runDue();
  // What is read to locate the recipient was read.
  await expect.poll(() => locate.mock.calls.length).toBe(1);
  const { storage } = relay.context;
  const read = storage.read.bind(storage);
  vi.spyOn(storage, 'read').mockImplementationOnce(async (work) => {
    const lanes = await read(work);
    found.resolve([routes.get(ben.account) as FinalRoute]);
    await expect.poll(async () => (await queue())[0]?.destination).toBe(x);
    return lanes;
  });
  relay.context.jobs.wake(job);
  await run;
  expect(asked).toEqual([x]);
  expect(await queue()).toEqual([]);
});

describe('07 §C8: a relay to which no request is sent for a while', () => {
  beforeEach(() => learnRoutes(ben, eve));

  test('its deliveries are postponed together, without an attempt', async () => {
    const until = relay.clock.now() + 600;
    relay.pausedUntil = (relayId) => (relayId === x ? until : undefined);
    await copy(await send(ben), 20);
    const toEve = await send(eve);
    expect(await runDue()).toBe(until);
    expect(asked).toEqual([y]);
    expect(await statusOf(toEve)).toMatchObject({ status: 'target_accepted' });
    const rows = await queue();
    expect(rows).toHaveLength(21);
    for (const row of rows) {
      expect(row).toMatchObject({ next_attempt_at: until, attempts: 0, target: null });
    }
    relay.clock.advance(600);
    await runDue();
    expect(await queue()).toEqual([]);
  });

  test('recipients that left it are found, and their messages sent, while it is away', async () => {
    const until = relay.clock.now() + 10_000;
    relay.pausedUntil = (relayId) => (relayId === x ? until : undefined);
    const fay = await personAt('fay', x);
    const toFay = await send(fay);
    await copy(await send(ben), 4);
    await runDue();
    const waiting = (await queue()).filter(({ destination }) => destination === x);
    expect(waiting.map(({ recipient }) => recipient)).toContain(ben.account);
    expect(asked).toEqual([]);
    relay.clock.advance(600);
    await move(ben, z);
    await copy(await send(ben), 4);
    await runDue();
    expect(new Set(asked)).toEqual(new Set([z]));
    const left = await queue();
    expect(left.every(({ recipient }) => recipient === fay.account)).toBe(true);
    expect(await statusOf(toFay)).toMatchObject({ status: 'delivering' });
  });

  test('recipients that stay there are looked up once in ten minutes', async () => {
    const lookups: string[] = [];
    const known = relay.routes;
    relay.routes = (account) => {
      lookups.push(account);
      return known(account);
    };
    let until = relay.clock.now() + 200;
    relay.pausedUntil = (relayId) => (relayId === x ? until : undefined);
    relay.clock.advance(600);
    await copy(await send(ben), 20);
    for (let pause = 0; pause < 4; pause += 1) {
      until = relay.clock.now() + 200;
      await runDue();
      relay.clock.advance(200);
    }
    expect(lookups).toEqual([ben.account, ben.account]);
    expect(asked).toEqual([]);
  });

  test('more than one batch is postponed in several transactions', async () => {
    await relay.restart({ deliveryBatch: 2 });
    const until = relay.clock.now() + 600;
    await copy(await send(ben), 4);
    relay.pausedUntil = () => until;
    for (let run = 0; run < 3; run += 1) await runDue();
    expect((await queue()).map((row) => row.next_attempt_at)).toEqual(Array(5).fill(until));
    expect(asked).toEqual([]);
  });

  test('no wait goes past the deadline, at which the delivery ends', async () => {
    const message = await send(ben);
    const [row] = await queue();
    const deadline = Number(row?.deadline);
    relay.pausedUntil = () => deadline + 1_000;
    expect(await runDue()).toBe(deadline);
    relay.clock.advance(deadline - relay.clock.now());
    await runDue();
    expect(await statusOf(message)).toMatchObject({ error: { code: 'message_expired' } });
    expect(asked).toEqual([]);
  });

  test('when it is back, its deliveries are due at once, and those of other relays are not', async () => {
    answers.set(x, () => ({ kind: 'unreachable' }));
    answers.set(y, () => ({ kind: 'unknown' }));
    await copy(await send(ben), 4);
    const toEve = await send(eve);
    await runDue();
    asked.length = 0;
    answers.clear();
    await relay.restart({ deliveryBatch: 2 });
    await wakeDestination(relay.context, x);
    await runDue();
    expect(asked).toEqual([x, x, x, x, x]);
    expect(await statusOf(toEve)).toMatchObject({ status: 'delivering' });
    await wakeDestination(relay.context, y);
    await runDue();
    expect(await statusOf(toEve)).toMatchObject({ status: 'target_accepted' });
  });

  test.each([
    ['rate_limited', refused('rate_limited', 100)],
    ['temporarily_unavailable', refused('temporarily_unavailable')],
    ['an invalid answer', { kind: 'invalid', why: 'not one JSON value' } as const],
  ])('the wait after %s is not cut short', async (_, answer) => {
    answers.set(x, () => answer);
    await send(ben);
    await runDue();
    const waiting = await queue();
    await wakeDestination(relay.context, x);
    expect(await queue()).toEqual(waiting);
    expect(Number(waiting[0]?.next_attempt_at)).toBeGreaterThan(relay.clock.now());
  });

  test('a delivery under way is not started again', async () => {
    const hanging = Promise.withResolvers<RelayAnswer>();
    answers.set(x, () => hanging.promise);
    await send(ben);
    const run = runDue();
    await expect.poll(() => asked).toEqual([x]);
    const before = await queue();
    await wakeDestination(relay.context, x);
    expect(await queue()).toEqual(before);
    hanging.resolve(accepted);
    await run;
    expect(asked).toEqual([x]);
  });
});

describe('04 §16.3: a recipient that moves while messages wait', () => {
  beforeEach(() => learnRoutes(ben));

  test('if no request was sent, its messages go to the new relay', async () => {
    answers.set(x, () => ({ kind: 'unreachable' }));
    await copy(await send(ben), 9);
    await runDue();
    await move(ben, z);
    asked.length = 0;
    relay.clock.advance(10);
    await runDue();
    expect(asked).toEqual(Array.from({ length: 10 }, () => z));
    expect(await queue()).toEqual([]);
  });

  test('one that was located takes the waiting ones of its recipient along', async () => {
    answers.set(x, () => ({ kind: 'unreachable' }));
    await copy(await send(ben), 9);
    await runDue();
    await move(ben, z);
    asked.length = 0;
    const until = relay.clock.now() + 600;
    relay.routes = (account) => {
      relay.pausedUntil = (relayId) => (relayId === x ? until : undefined);
      return [routes.get(account) as FinalRoute];
    };
    relay.clock.advance(10);
    await runDue();
    expect(asked).toEqual(Array.from({ length: 10 }, () => z));
  });

  test('all that wait go, 64 in a statement, in the order in which they wait', async () => {
    answers.set(x, () => ({ kind: 'unreachable' }));
    await copy(await send(ben), 150);
    await runDue();
    relay.clock.advance(10);
    const before = await queue();
    let moves = 0;
    relay.faults.beforeStatement = (sql) => {
      if (sql === moveInLaneSql) moves += 1;
    };
    const batch = { destination: x, now: relay.clock.now(), batchSize: 1_000 };
    await relay.context.storage.write('test', (tx) =>
      moveToLane(tx, batch, { recipient: ben.account, relayId: z }),
    );
    expect(moves).toBe(3);
    const now = relay.clock.now();
    const moved = before.map((row) => ({ ...row, destination: z, next_attempt_at: now }));
    expect(await queue()).toEqual(moved);
  });

  test('a message that the old relay may have received stays with it', async () => {
    answers.set(x, (count) => ({ kind: count === 1 ? 'unknown' : 'unreachable' }));
    await copy(await send(ben), 3);
    await runDue();
    await move(ben, z);
    asked.length = 0;
    relay.clock.advance(10);
    await runDue();
    expect(asked.toSorted()).toEqual([x, z, z, z].toSorted());
    expect(await queue()).toMatchObject([{ target: x, destination: x }]);
  });

  test('after a route error the next attempt goes to the located relay, not before', async () => {
    answers.set(x, () => refused('route_stale'));
    const message = await send(ben);
    await runDue();
    relay.clock.advance(10);
    await runDue();
    expect(asked).toEqual([x, x]);
    await move(ben, z);
    relay.clock.advance(20);
    await runDue();
    expect(asked).toEqual([x, x, z]);
    expect(await statusOf(message)).toMatchObject({ status: 'target_accepted' });
  });
});

test('every statement about lanes uses an index, and no change walks over a lane twice', async () => {
  const { storage } = relay.context;
  const changes = [postponeLaneSql, wakeLaneSql, releaseLaneSql, moveInLaneSql];
  for (const sql of [dueSql, lanesSql, ...changes]) {
    expect(await scansAndSorts(storage, sql), sql).toEqual([]);
  }
  if (engine !== 'sqlite') return;
  for (const sql of changes) {
    const plan = await storage.read((tx) => tx.all(`EXPLAIN QUERY PLAN ${sql}`));
    const walks = plan.filter(({ detail }) => String(detail).includes('deliveries_by_destination'));
    expect(walks, sql).toHaveLength(sql === moveInLaneSql ? 0 : 1);
  }
});

test("04 §16: to move a recipient's deliveries, none of others in the lane is read", async () => {
  const { storage } = relay.context;
  const explain = engine === 'sqlite' ? 'EXPLAIN QUERY PLAN' : 'EXPLAIN';
  const blanks = ['', 0, '', 0, '', '', 0, 0];
  const plan = await storage.read(async (tx) => {
    if (engine !== 'sqlite') await tx.get("SELECT set_config('enable_seqscan', 'off', true)");
    return await tx.all(`${explain} ${moveInLaneSql}`, ...blanks);
  });
  const text = plan.map((row) => Object.values(row).join(' ')).join('\n');
  expect(text).toMatch(/deliveries_by_recipient/);
  expect(text).toMatch(/destination\W.*\brecipient\W.*\bwake_after\W/);
});

test('04 §16: no statement reads or changes many messages, which may be large', async () => {
  await learnRoutes(ben);
  await copy(await send(ben), 200);
  const counts = { changes: 0, claims: 0 };
  relay.faults.beforeStatement = (sql) => {
    if (sql === postponeLaneSql || sql === wakeLaneSql) counts.changes += 1;
    if (sql === dueSql) counts.claims += 1;
  };
  const until = relay.clock.now() + 100;
  relay.pausedUntil = () => until;
  await runDue();
  // 64 in each.
  expect(counts.changes).toBe(4);
  await wakeDestination(relay.context, x);
  expect(counts.changes).toBe(8);
  relay.pausedUntil = () => undefined;
  counts.claims = 0;
  await runDue();
  expect(await queue()).toEqual([]);
  // 16 in each.
  expect(counts.claims).toBeGreaterThanOrEqual(13);
});
