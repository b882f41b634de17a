import { pino } from 'pino';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { auth } from '../../src/auth/index.ts';
import type { RelayContext } from '../../src/context.ts';
import type { AccountResync } from '../../src/dispatch/module.ts';
import type { Notice } from '../../src/dispatch/notice.ts';
import { ConnectionResync } from '../../src/notifications/connection-resync.ts';
import { Hub, type ListenersByKind } from '../../src/notifications/hub.ts';
import { MemoryBus } from '../../src/notifications/memory-bus.ts';
import { publishGap } from '../../src/notifications/publish-gap.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { insertSession } from '../../src/sessions/session-store.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openSqlite, type SqliteStorage } from '../../src/storage/sqlite/storage.ts';
import type { StorageFaults } from '../../src/storage/types.ts';
import { BoundSession } from '../../src/transport/bound-session.ts';
import { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { patience } from '../support/patience.ts';

/** As of a relay of several processes, away when the test says so. */
class SharedBus extends MemoryBus {
  override readonly isShared = true;
  override isConnected = true;
}

const clock = new ManualClock();
let parts: AsyncDisposableStack;
let storage: SqliteStorage;
let faults: StorageFaults;
let bus: SharedBus;
let hub: Hub;
let metrics: Metrics;
/** What happens, once, while a snapshot is read. */
let meanwhile: (() => void) | undefined;
let asked: (readonly string[])[];

beforeEach(async () => {
  parts = new AsyncDisposableStack();
  faults = {};
  storage = parts.use(openSqlite(parts.use(temporaryFolder()).path, faults));
  await migrate(storage, auth.migrations, clock.now());
  bus = new SharedBus((error) => {
    throw error;
  });
  hub = parts.use(new Hub({ bus, clock }, {} as ListenersByKind));
  metrics = new Metrics();
  meanwhile = undefined;
  asked = [];
  const news: AccountResync = async (_tx, accounts): Promise<Notice[]> => {
    asked.push(accounts);
    meanwhile?.();
    meanwhile = undefined;
    return accounts.map((account) => ({
      kind: 'timeline',
      account,
      head: 7,
      deviceIds: ['phone'],
    }));
  };
  const log = pino({ level: 'silent' });
  const context = { storage, clock, bus, metrics, log, identity: { relayId: '0x00' } };
  parts.use(
    new ConnectionResync(context as unknown as RelayContext, {
      hub,
      accountResyncs: [news],
      subscriptionResyncs: [],
    }),
  );
});
afterEach(() => parts.disposeAsync());

const sessionOf = (account: string, id = `session of ${account}`): DeviceSession => ({
  id,
  mode: 'device',
  account,
  deviceId: 'phone',
  expiresAt: clock.now() + 1_000,
});

const store = (session: DeviceSession) =>
  storage.write('test', (tx) => insertSession(tx, { session, origin: 'https://relay.example' }, 0));

/** A connection that is bound to a session, and what it was sent. */
function connection(session: DeviceSession): { bound: BoundSession; sent: string[] } {
  const sent: string[] = [];
  const bound = new BoundSession(session, {
    hub,
    clock,
    send: (text, done) => {
      sent.push(JSON.parse(text).params.head);
      done();
    },
    beforeWrite: (work) => work(),
  });
  bound.enable();
  return { bound, sent };
}

const done = () => metrics.value('resyncs');
const compared = (times = 1) => vi.waitFor(() => expect(done()).toBe(times), patience);
const gap = () => bus.publish([{ kind: 'gap' }]);

test('02 §10.3: a session that is stored no more ends; the others hear the news', async () => {
  await store(sessionOf('ann'));
  const [ann, bob] = [connection(sessionOf('ann')), connection(sessionOf('bob'))];
  gap();
  await compared();
  expect([ann.bound.dead, bob.bound.dead]).toEqual([false, true]);
  expect([ann.sent, bob.sent]).toEqual([[7], []]);
  expect(hub.accounts()).toEqual(['ann']);
});

test('02 §10.2: a session that is stored with an earlier end ends then', async () => {
  await store({ ...sessionOf('ann'), expiresAt: clock.now() + 10 });
  const { bound } = connection(sessionOf('ann'));
  gap();
  await compared();
  clock.advance(9);
  expect(bound.dead).toBe(false);
  clock.advance(1);
  expect(bound.dead).toBe(true);
});

test('02 §10.6: a session that was renewed meanwhile is not judged by the one before', async () => {
  await store({ ...sessionOf('ann'), expiresAt: clock.now() + 10 });
  const [ann, bob] = [connection(sessionOf('ann')), connection(sessionOf('bob'))];
  meanwhile = () => {
    ann.bound.renew(sessionOf('ann', 'second'));
    bob.bound.renew(sessionOf('bob', 'second'));
  };
  gap();
  await compared();
  clock.advance(10);
  expect([ann.bound.dead, bob.bound.dead]).toEqual([false, false]);
});

test('a connection that was bound meanwhile is not judged at all', async () => {
  await store(sessionOf('ann'));
  connection(sessionOf('ann'));
  let late: BoundSession | undefined;
  meanwhile = () => {
    late = connection(sessionOf('ann', 'committed after the snapshot')).bound;
  };
  gap();
  await compared();
  expect(late?.dead).toBe(false);
});

test('a hundred accounts are compared in a snapshot, all of them in the end', async () => {
  const accounts = Array.from({ length: 250 }, (_, index) => `account ${index}`);
  for (const account of accounts) {
    await store(sessionOf(account));
    connection(sessionOf(account));
  }
  gap();
  await compared();
  expect(asked.map((portion) => portion.length)).toEqual([100, 100, 50]);
  expect(asked.flat().sort()).toEqual(accounts.sort());
});

test('a gap during a comparison asks for another, many for no more than one', async () => {
  await store(sessionOf('ann'));
  connection(sessionOf('ann'));
  meanwhile = () => {
    for (let count = 0; count < 10; count += 1) gap();
  };
  gap();
  await compared(2);
  expect(asked).toHaveLength(2);
});

test('a gap of some aggregates compares the connections of these alone', async () => {
  for (const account of ['ann', 'bob']) await store(sessionOf(account));
  const [ann, bob] = [connection(sessionOf('ann')), connection(sessionOf('bob'))];
  bus.publish([{ kind: 'gap', aggregates: ['account:ann', 'account:away', 'group:ann'] }]);
  await vi.waitFor(() => expect(ann.sent).toEqual([7]), patience);
  expect([bob.sent, asked]).toEqual([[], [['ann']]]);
  expect(done()).toBe(0);
});

test('a gap is published of aggregates that are announced, and of no others', () => {
  const heard: Notice[] = [];
  using _subscription = bus.subscribe((notice) => void heard.push(notice));
  publishGap(bus, ['challenge:x', 'relay']);
  publishGap(bus, ['challenge:x', 'account:ann', 'group:x', 'channel:x']);
  publishGap(bus, 'any');
  const aggregates = ['account:ann', 'group:x', 'channel:x'];
  expect(heard).toEqual([{ kind: 'gap', aggregates }, { kind: 'gap' }]);
});

test('once a minute while the bus is whole', async () => {
  clock.advance(59);
  expect(done()).toBe(0);
  clock.advance(1);
  await compared();
  clock.advance(59);
  await Promise.resolve();
  clock.advance(1);
  await compared(2);
});

test('every five seconds while it is away', async () => {
  bus.isConnected = false;
  gap();
  await compared();
  clock.advance(5);
  await compared(2);
  clock.advance(5);
  await compared(3);
});

test('storage that fails is asked again after five seconds', async () => {
  await store(sessionOf('ann'));
  const { sent } = connection(sessionOf('ann'));
  faults.beforeStatement = () => {
    throw new Error('broken disk');
  };
  gap();
  await vi.waitFor(() => expect(metrics.value('resyncs_failed')).toBe(1), patience);
  delete faults.beforeStatement;
  clock.advance(5);
  await compared();
  expect(sent).toEqual([7]);
});
