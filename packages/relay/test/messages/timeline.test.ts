import { type TimelinePage, verifyTimelinePage } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { type MessageOptions, Person } from '../fixtures/person.ts';
import { scansAndSorts } from '../support/engine.ts';
import { inProcessRelay, network } from '../support/in-process-relay.ts';

const method = 'message.timeline.sync';
const retention30Days = 30 * 86_400;
const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben', ['phone', 'laptop']);

const send = (options: MessageOptions = {}, to = ben) =>
  relay.call('message.send', ann.message(to, { authorization: to.grant(ann), ...options }), {
    session: ann.session(),
  });
const sync = async (params: object = {}, device = 'phone', person = ben): Promise<TimelinePage> => {
  const session = person.session(device);
  return (await relay.call(method, params, { session })) as unknown as TimelinePage;
};
const codeOf = (params: unknown, session: object = ben.session()) =>
  relay.codeOf(method, params, { session: session as never });
const sequences = (page: TimelinePage) => page.items.map(({ sequence }) => sequence);

describe('04 §18: pages', () => {
  test('without parameters the earliest page is returned; after the last position the next one', async () => {
    for (let count = 0; count < 5; count += 1) await send();
    expect(await sync()).toMatchObject({ has_more: false });
    const seen: number[] = [];
    for (let after = -1, more = true; more; after = seen.at(-1) ?? -1) {
      const page = await sync({ after, limit: 2 });
      verifyTimelinePage(network, page, {
        account: ben.account,
        deviceId: ben.device().deviceId,
        after,
        limit: 2,
      });
      seen.push(...sequences(page));
      more = page.has_more;
    }
    expect(seen).toEqual([0, 1, 2, 3, 4]);
  });

  test('has_more is exact at the edge of a page', async () => {
    for (let count = 0; count < 3; count += 1) await send();
    expect((await sync({ limit: 2 })).has_more).toBe(true);
    expect((await sync({ limit: 3 })).has_more).toBe(false);
    expect((await sync({ after: 0, limit: 2 })).has_more).toBe(false);
  });

  test('after may be -1, any position up to the head, and nothing else', async () => {
    expect(await sync({ after: -1 })).toEqual({ items: [], certificates: [], has_more: false });
    expect(await codeOf({ after: 0 })).toBe('bad_request');
    await send();
    expect(await sync({ after: 0 })).toEqual({ items: [], certificates: [], has_more: false });
    for (const after of [1, -2, '0', Number.MAX_SAFE_INTEGER, true, null]) {
      expect(await codeOf({ after }), String(after)).toBe('bad_request');
    }
  });

  test('limit: positive; a large one is capped, not refused', async () => {
    await relay.restart({ maxPageSize: 2, pageSize: 1 });
    for (let count = 0; count < 3; count += 1) await send();
    expect(sequences(await sync())).toEqual([0]);
    expect(sequences(await sync({ limit: Number.MAX_SAFE_INTEGER }))).toEqual([0, 1]);
    for (const limit of [0, -1, '1', null]) {
      expect(await codeOf({ limit }), String(limit)).toBe('bad_request');
    }
  });

  test('sessions: none, an account session, a device removed from the state', async () => {
    expect(await relay.codeOf(method, {})).toBe('unauthorized');
    expect(await codeOf({}, ben.accountSession())).toBe('forbidden');
    await ben.publishState(await ben.state({ devices: ['laptop'] }));
    expect(await codeOf({}, ben.session('phone'))).toBe('unauthorized');
    expect(await codeOf({}, ben.session('laptop'))).toBe('ok');
  });

  test('a page stays within its bytes and always has at least one entry', async () => {
    await relay.restart({ pageBytes: 10_000 });
    for (let count = 0; count < 12; count += 1) await send({ text: 'x'.repeat(2_000) });
    await send({ text: 'x'.repeat(20_000) });
    const seen: number[] = [];
    for (let after = -1, more = true; more; after = seen.at(-1) ?? -1) {
      const page = await sync({ after });
      expect(page.items.length).toBeGreaterThan(0);
      if (page.items.length > 1) expect(canonicalJson(page).length).toBeLessThanOrEqual(10_000);
      seen.push(...sequences(page));
      more = page.has_more;
    }
    expect(seen).toEqual(Array.from({ length: 13 }, (_, index) => index));
  });

  test('certificates of many senders count, and never push a page over its bytes', async () => {
    await relay.restart({ pageBytes: 10_000 });
    for (let count = 0; count < 8; count += 1) {
      const sender = await Person.register(relay, `sender ${count}`);
      const message = sender.message(ben, { authorization: ben.grant(sender) });
      await relay.call('message.send', message, { session: sender.session() });
    }
    const page = await sync();
    expect(page.has_more).toBe(true);
    expect(page.certificates).toHaveLength(page.items.length);
    expect(canonicalJson(page).length).toBeLessThanOrEqual(10_000);
  });

  test('the largest possible entry fits into a WebSocket message', async () => {
    const room = 190_000;
    await send({ text: 'x'.repeat(room) });
    expect(canonicalJson(await sync()).length).toBeLessThan(1_048_576);
    expect((await sync()).items).toHaveLength(1);
  });

  test('several versions of one certificate: the page has one that verifies every record', async () => {
    await send();
    relay.clock.advance(5);
    await ann.addDevice('phone');
    await ann.publishState();
    await send();
    const page = await sync();
    expect(page.certificates).toHaveLength(1);
    verifyTimelinePage(network, page, {
      account: ben.account,
      deviceId: ben.device().deviceId,
      after: -1,
    });
  });

  test('it reads what is stored here, even if the account is not at home here any more', async () => {
    await send();
    relay.clock.advance(31_536_000);
    expect(await codeOf({})).toBe('ok');
    expect(await relay.codeOf('message.send', ben.message(ben), { session: ben.session() })).toBe(
      'target_not_local',
    );
  });

  test('an account that was never at home here has an empty timeline', async () => {
    const eve = new Person(relay, 'eve');
    await eve.addDevice('phone');
    const empty = { items: [], certificates: [], has_more: false };
    expect(await sync({}, 'phone', eve)).toEqual(empty);
  });

  test('reads change nothing', async () => {
    await send();
    const before = await relay.dump();
    await sync();
    expect(await relay.dump()).toEqual(before);
  });
});

describe('04 §17.3: visibility', () => {
  test('records for other devices are skipped and do not count in the page', async () => {
    for (const boxes of [['phone'], ['laptop'], ['phone'], ['laptop'], ['phone']]) {
      await send({ boxes });
    }
    expect(await sync({ limit: 3 })).toMatchObject({ has_more: false });
    expect(sequences(await sync({ limit: 3 }))).toEqual([0, 2, 4]);
    expect(sequences(await sync({}, 'laptop'))).toEqual([1, 3]);
  });

  test('each device gets its own box only', async () => {
    await send();
    const [phone] = (await sync({}, 'phone')).items;
    const [laptop] = (await sync({}, 'laptop')).items;
    expect(phone?.key_box.device_id).toBe(ben.device('phone').deviceId);
    expect(laptop?.key_box.device_id).toBe(ben.device('laptop').deviceId);
    expect((await sync({}, 'phone', ann)).items).toEqual([]);
  });

  test('a device added later sees nothing from before it', async () => {
    await send();
    await ben.addDevice('tablet');
    await ben.publishState();
    expect((await sync({}, 'tablet')).items).toEqual([]);
    await send();
    expect(sequences(await sync({}, 'tablet'))).toEqual([1]);
  });

  test.each([
    ['not yet in effect', 1, 1_000],
    ['expired', -1_000, 0],
  ])('a boxed device that is %s cannot read it, later either', async (_, from, until) => {
    const now = relay.clock.now();
    await ben.addDevice('laptop', { notBefore: now + from, expiresAt: now + until });
    await ben.publishState();
    await send({ boxes: ['phone', 'laptop'] });
    await ben.addDevice('laptop');
    await ben.publishState();
    expect((await sync({}, 'laptop')).items).toEqual([]);
    expect((await sync({}, 'phone')).items).toHaveLength(1);
  });

  test('a device removed and added again still sees its earlier records', async () => {
    await send();
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    await send({ boxes: ['phone', 'laptop'] });
    await ben.publishState(await ben.state());
    expect(sequences(await sync({}, 'laptop'))).toEqual([0]);
  });
});

describe('04 §17.4: retention and the history gap', () => {
  const retention = () => relay.context.limits.messageRetention;

  test('a record is stored until its deadline and removed after it, with everything it needed', async () => {
    await send({ senders: ['phone'] });
    relay.clock.advance(retention() - 1);
    await relay.runJob('messages.retention');
    expect((await sync()).items).toHaveLength(1);
    relay.clock.advance(1);
    await relay.runJob('messages.retention');
    expect((await sync()).items).toEqual([]);
    relay.clock.advance(3 * 86_400);
    await relay.runJob('messages.retention');
    const {
      message_envelopes,
      message_certificates,
      timeline_records,
      timeline_boxes,
      sent_results,
    } = await relay.dump();
    expect([
      message_envelopes,
      message_certificates,
      timeline_records,
      timeline_boxes,
      sent_results,
    ]).toEqual([[], [], [], [], []]);
  });

  test('the job returns the next deadline, or nothing if no record is stored', async () => {
    expect(await relay.runJob('messages.retention')).toBeUndefined();
    const accepted = relay.clock.now();
    await send();
    expect(await relay.runJob('messages.retention')).toBe(accepted + retention());
  });

  test('a gap is reported for positions below an expired record, and not from its position on', async () => {
    await send();
    await send();
    relay.clock.advance(retention());
    await send();
    await relay.runJob('messages.retention');
    expect(await sync()).toMatchObject({ has_retention_gap: true });
    expect(sequences(await sync())).toEqual([2]);
    expect(await sync({ after: 0 })).toMatchObject({ has_retention_gap: true });
    expect(await sync({ after: 1 })).not.toHaveProperty('has_retention_gap');
  });

  test('records for other devices, or from before a device was added, never cause a gap', async () => {
    await send({ boxes: ['laptop'] });
    relay.clock.advance(retention());
    await relay.runJob('messages.retention');
    expect(await sync({}, 'phone')).not.toHaveProperty('has_retention_gap');
    expect(await sync({}, 'laptop')).toMatchObject({ has_retention_gap: true });
    await ben.addDevice('tablet');
    await ben.publishState();
    expect(await sync({}, 'tablet')).not.toHaveProperty('has_retention_gap');
  });

  test('a removed device that comes back keeps its gap', async () => {
    await send();
    await ben.publishState(await ben.state({ devices: ['phone'] }));
    relay.clock.advance(retention());
    await relay.runJob('messages.retention');
    await ben.publishState(await ben.state());
    expect(await sync({}, 'laptop')).toMatchObject({ has_retention_gap: true });
  });

  test('sequences continue above removed records, after a restart too', async () => {
    await send();
    await send();
    relay.clock.advance(retention());
    await relay.runJob('messages.retention');
    await relay.restart();
    await send();
    expect(sequences(await sync())).toEqual([2]);
    expect(await codeOf({ after: 2 })).toBe('ok');
    expect(await codeOf({ after: 3 })).toBe('bad_request');
  });

  test('a later, shorter retention neither moves stored deadlines nor lowers a gap', async () => {
    await send();
    await relay.restart({ messageRetention: 1_000, deliveryAgeLimit: 1_000 });
    await send();
    await send();
    relay.clock.advance(1_000);
    await relay.runJob('messages.retention');
    expect(await sync()).toMatchObject({ has_retention_gap: true });
    expect(sequences(await sync())).toEqual([0]);
    relay.clock.advance(retention30Days - 1_000);
    await relay.runJob('messages.retention');
    expect(sequences(await sync())).toEqual([]);
    expect(await sync({ after: 1 })).toMatchObject({ has_retention_gap: true });
    expect(await sync({ after: 2 })).not.toHaveProperty('has_retention_gap');
  });

  test('a record keeps its texts if the message is received again under a shorter retention', async () => {
    const eve = new Person(relay, 'eve');
    await eve.addDevice('phone');
    await send({ senders: ['phone'] }, eve);
    await relay.restart({ messageRetention: 1_000 });
    await eve.moveIn();
    await relay.runJob('messages.delivery');
    expect((await sync({}, 'phone', eve)).items).toHaveLength(1);
    relay.clock.advance(5 * 86_400);
    await relay.runJob('messages.retention');
    expect((await sync({}, 'phone', eve)).items).toEqual([]);
    expect((await sync({}, 'phone', ann)).items).toHaveLength(1);
    relay.clock.advance(25 * 86_400);
    await relay.runJob('messages.retention');
    expect((await sync({}, 'phone', ann)).items).toEqual([]);
  });

  test('a clock that goes back removes nothing and lengthens nothing', async () => {
    await send();
    relay.clock.advance(-50);
    await relay.runJob('messages.retention');
    expect((await sync()).items).toHaveLength(1);
    relay.clock.advance(50 + retention());
    await relay.runJob('messages.retention');
    expect((await sync()).items).toEqual([]);
  });

  test('a record that expires during a run keeps its envelope and certificate until it is removed', async () => {
    await send();
    relay.clock.advance(1);
    await send();
    relay.clock.advance(retention() - 1);
    relay.faults.beforeStatement = (sql) => {
      if (!sql.includes('DELETE FROM sent_results')) return;
      delete relay.faults.beforeStatement;
      relay.clock.advance(1);
    };
    const next = await relay.runJob('messages.retention');
    expect(sequences(await sync())).toEqual([1]);
    expect(next).toBe(relay.clock.now());
    await relay.runJob('messages.retention');
    expect((await sync()).items).toEqual([]);
  });

  test('one run removes more than one batch', async () => {
    await Promise.all(Array.from({ length: 450 }, () => send()));
    relay.clock.advance(retention());
    await relay.runJob('messages.retention');
    expect(await relay.rows('timeline_records')).toEqual([]);
    expect(await sync()).toMatchObject({ items: [], has_retention_gap: true });
  });

  test('a run that was stopped anywhere is completed by the next', async () => {
    await Promise.all(Array.from({ length: 5 }, () => send({ senders: ['phone'] })));
    relay.clock.advance(retention() + 3 * 86_400);
    let statements = 0;
    for (let failAt = 0; ; failAt += 1) {
      statements = 0;
      relay.faults.beforeStatement = (sql) => {
        if (/^\s*(INSERT|UPDATE|DELETE)/.test(sql) && statements++ === failAt)
          throw new Error('cut');
      };
      const done = await relay.runJob('messages.retention').then(
        () => true,
        () => false,
      );
      delete relay.faults.beforeStatement;
      const { timeline_records: records, timeline_boxes: boxes } = await relay.dump();
      expect(boxes?.length).toBe((records?.length ?? 0) * 1.5);
      if (done) break;
    }
    expect(await sync()).toMatchObject({ items: [], has_retention_gap: true });
  });
});

describe('query plans', () => {
  test.each([
    'pageSql',
    'boundsSql',
    'expiredRecordsSql',
    'dueSql',
    'nextDeadlineSql',
    'expiredEnvelopesSql',
    'expiredCertificatesSql',
    'expiredResultsSql',
    'expiredReceivedSql',
    'priorResultsSql',
  ])('%s searches by an index and sorts nothing', async (name) => {
    const statements: Record<string, unknown> = {
      ...(await import('../../src/messages/page-store.ts')),
      ...(await import('../../src/messages/retention-store.ts')),
      ...(await import('../../src/messages/queue-store.ts')),
      ...(await import('../../src/messages/received-store.ts')),
    };
    const sql = statements[name] as string;
    expect(await scansAndSorts(relay.context.storage, sql)).toEqual([]);
  });
});
