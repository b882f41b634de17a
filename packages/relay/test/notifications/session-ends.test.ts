import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { auth } from '../../src/auth/index.ts';
import { Hub, type ListenersByKind } from '../../src/notifications/hub.ts';
import { MemoryBus } from '../../src/notifications/memory-bus.ts';
import { SessionEndsReader } from '../../src/notifications/session-ends.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import type { DeviceSession } from '../../src/sessions/session.ts';
import { SessionCache } from '../../src/sessions/session-cache.ts';
import { readSessionEnds } from '../../src/sessions/session-ends-store.ts';
import {
  capSessions,
  endOldestSessions,
  insertSession,
  revokeSessions,
} from '../../src/sessions/session-store.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { openSqlite, type SqliteStorage } from '../../src/storage/sqlite/storage.ts';
import type { StorageFaults } from '../../src/storage/types.ts';
import { BoundSession } from '../../src/transport/bound-session.ts';
import { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { patience } from '../support/patience.ts';

/** As of a relay of several processes, of whose notices none arrives. */
class SharedBus extends MemoryBus {
  override readonly isShared = true;
}

const origin = 'https://relay.example';
const limits = { sessionTrust: 2_000, sessionCheck: 500, cachedSessions: 100 };
const clock = new ManualClock();
let parts: AsyncDisposableStack;
let storage: SqliteStorage;
let faults: StorageFaults;
let bus: SharedBus;
let hub: Hub;
let sessions: SessionCache;
let reader: SessionEndsReader;

beforeEach(async () => {
  parts = new AsyncDisposableStack();
  faults = {};
  storage = parts.use(openSqlite(parts.use(temporaryFolder()).path, faults));
  await migrate(storage, auth.migrations, clock.now());
  bus = new SharedBus((error) => {
    throw error;
  });
  hub = parts.use(new Hub({ bus, clock }, {} as ListenersByKind));
  sessions = parts.use(
    new SessionCache({ storage, clock, bus, limits, blocks: { hasAccount: () => false } }),
  );
  const observed = { metrics: new Metrics(), log: pino({ level: 'silent' }) };
  const context = { ...observed, storage, clock, bus, limits };
  reader = parts.use(new SessionEndsReader(context as never, { hub, sessions }));
  await reader.start();
});
afterEach(() => parts.disposeAsync());

const sessionOf = (account: string): DeviceSession => ({
  id: `session of ${account}`,
  mode: 'device',
  account,
  deviceId: 'phone',
  expiresAt: clock.now() + 1_000,
});

/** A connection that is bound to a stored session. */
async function connected(account: string): Promise<BoundSession> {
  const session = sessionOf(account);
  await storage.write('test', (tx) => insertSession(tx, { session, origin }, clock.now()));
  return new BoundSession(session, { hub, clock, send: () => {}, beforeWrite: () => {} });
}

const revoke = (account: string) =>
  storage.write('test', (tx) => revokeSessions(tx, account, ['phone']));
const ends = (after: number) => storage.read((tx) => readSessionEnds(tx, after));
/** Lets the reader read, and waits until it has. */
const readAgain = async () => {
  const before = sessions.asOf;
  await vi.waitFor(() => {
    clock.advance(0.5);
    expect(sessions.asOf).toBeGreaterThan(before);
  }, patience);
};

describe('02 §10.3: without any notice', () => {
  test('a session that another process ended ends here; others do not', async () => {
    const [ann, bob] = [await connected('ann'), await connected('bob')];
    await revoke('ann');
    expect([ann.dead, bob.dead]).toEqual([false, false]);
    await readAgain();
    expect([ann.dead, bob.dead]).toEqual([true, false]);
  });

  test('a session that another process shortened ends then', async () => {
    const ann = await connected('ann');
    const end = clock.now() + 10;
    await storage.write('test', (tx) =>
      capSessions(tx, { account: 'ann', deviceId: 'phone' }, end),
    );
    await readAgain();
    clock.advance(end - clock.now() - 1);
    expect(ann.dead).toBe(false);
    clock.advance(1);
    expect(ann.dead).toBe(true);
  });

  test('02 §18: a session that ended for newer ones ends here too', async () => {
    const [ann, bob] = [await connected('ann'), await connected('bob')];
    const none = { count: 0, except: undefined };
    await storage.write('test', (tx) =>
      endOldestSessions(tx, { kind: 'all', account: 'ann' }, none),
    );
    await readAgain();
    expect([ann.dead, bob.dead]).toEqual([true, false]);
  });

  test('any number of sessions end in one reading', async () => {
    const names = Array.from({ length: 1_500 }, (_, index) => `account ${index}`);
    const all = await Promise.all(names.map(connected));
    await storage.write('test', async (tx) => {
      for (const name of names) await revokeSessions(tx, name, ['phone']);
    });
    await readAgain();
    expect(all.filter(({ dead }) => !dead)).toEqual([]);
  });

  test('if entries that were not read are gone, every session is read', async () => {
    await revoke('ann');
    const [ann, bob] = [await connected('ann'), await connected('bob')];
    await revoke('ann');
    await readAgain();
    await storage.write('test', (tx) => tx.run('DELETE FROM auth_session_ends'));
    await storage.write('test', (tx) => tx.run('DELETE FROM auth_sessions'));
    await readAgain();
    expect([ann.dead, bob.dead]).toEqual([true, true]);
  });
});

describe('sessions in memory are trusted', () => {
  test('after a gap of some aggregates, and not after one of everything', () => {
    const before = sessions.changes;
    bus.publish([{ kind: 'gap', aggregates: ['account:ann'] }]);
    expect(sessions.changes).toBe(before);
    bus.publish([{ kind: 'gap' }]);
    expect(sessions.changes).toBe(before + 1);
  });

  test('for as long as it was read which ended, and no longer', async () => {
    expect(sessions.isCurrent).toBe(true);
    faults.beforeStatement = () => {
      throw new Error('cut off');
    };
    clock.advance(1.9);
    expect(sessions.isCurrent).toBe(true);
    clock.advance(0.1);
    expect(sessions.isCurrent).toBe(false);
    delete faults.beforeStatement;
    await readAgain();
    expect(sessions.isCurrent).toBe(true);
  });

  test('not after a stop of this process, until it has read again', async () => {
    clock.advance(30);
    expect(sessions.isCurrent).toBe(false);
    await vi.waitFor(() => expect(sessions.isCurrent).toBe(true), patience);
  });
});

test('the log has entries of ended sessions only, in order, and stays small', async () => {
  await revoke('stranger');
  expect(await ends(0)).toEqual({ accounts: [], last: 0, hasMore: false });
  await connected('ann');
  await revoke('ann');
  expect(await ends(0)).toEqual({ accounts: ['ann'], last: 1, hasMore: false });
  expect(await ends(1)).toEqual({ accounts: [], last: 1, hasMore: false });
  await storage.write('test', (tx) => tx.run('UPDATE auth_session_ends_head SET number = 9000'));
  await connected('bob');
  await revoke('bob');
  expect(await ends(9_001)).toEqual({ accounts: [], last: 9_001, hasMore: false });
  expect(await ends(1)).toEqual({ accounts: 'any', last: 9_001, hasMore: false });
});
