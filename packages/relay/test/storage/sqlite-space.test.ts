/** The room that the embedded database takes: a floor of free disk, and giving room back. */
import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { ProgressState } from '@posthouse/protocol/progress';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import { compactSqlite } from '../../src/storage/sqlite/compact.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import { codeOf } from '../support/http.ts';
import { lockDatabase } from '../support/lock-holder.ts';
import { patience } from '../support/patience.ts';
import { ServedRelay, type ServedRelayData } from '../support/served-relay.ts';
import { silentObserver } from '../support/silent-observer.ts';
import { SmallDisk } from '../support/small-disk.ts';
import { insertThing, sqliteThings, thingNames } from '../support/sqlite-things.ts';

const sqlite = sqliteThings({ observer: silentObserver });
const page = 4_096;
const name = (number: number) => `${number}`.padStart(5, '0').padEnd(page - 200, 'x');

/** Inserts rows of about a page each, and deletes all but every fiftieth. */
async function fillAndDelete(rows: number): Promise<void> {
  const all = Array.from({ length: rows }, (_, number) => name(number));
  await Promise.all(all.map((one) => sqlite.storage.write('a', insertThing(one))));
  await sqlite.storage.write('a', (tx) =>
    tx.run('DELETE FROM things WHERE CAST(substr(name, 1, 5) AS INTEGER) % 50 <> 0'),
  );
}

const kept = (rows: number) => Array.from({ length: rows / 50 }, (_, number) => name(number * 50));

describe('giving room back', () => {
  test('takes small steps until little is unused; rows stay, and the file is shorter', async () => {
    await fillAndDelete(4_000);
    const before = await sqlite.storage.space();
    expect(before.unused).toBeGreaterThan(3_500 * page);
    let steps = 0;
    let last = before;
    while (await sqlite.storage.reclaim()) {
      steps += 1;
      const now = await sqlite.storage.space();
      expect(last.bytes - now.bytes).toBeLessThanOrEqual(33 * page);
      expect(now.bytes).toBeLessThan(last.bytes);
      last = now;
    }
    expect(steps).toBeGreaterThan(50);
    // What stays is for the next writes.
    expect(last.unused).toBeLessThanOrEqual(1_024 * page);
    expect(last.unused).toBeGreaterThan(900 * page);
    expect(await sqlite.names()).toEqual(kept(4_000));
    await sqlite.storage[Symbol.asyncDispose]();
    expect(statSync(sqlite.database).size).toBe(last.bytes);
    const check = new DatabaseSync(sqlite.database).prepare('PRAGMA integrity_check').get();
    expect(check).toEqual({ integrity_check: 'ok' });
  });

  test('with little unused, nothing is moved', async () => {
    await fillAndDelete(450);
    expect(await sqlite.storage.reclaim()).toBe(false);
  });
});

describe('posthouse compact', () => {
  test('a database of an earlier version is compacted, and gives room back from then on', async () => {
    await sqlite.storage[Symbol.asyncDispose]();
    {
      // As a version before this one made it.
      using database = new DatabaseSync(sqlite.database);
      database.exec('PRAGMA journal_mode=DELETE; PRAGMA auto_vacuum=NONE; VACUUM');
    }
    sqlite.storage = openSqlite(sqlite.path, {}, silentObserver);
    await fillAndDelete(4_000);
    expect(await sqlite.storage.reclaim()).toBe(false);
    await sqlite.storage[Symbol.asyncDispose]();
    const shown: ProgressState[] = [];
    const progress = (state: ProgressState) => void shown.push(state);
    const { before, after } = await compactSqlite(sqlite.path, { progress });
    const { done, total } = shown.at(-1) as ProgressState;
    expect([done, shown[0]?.done]).toEqual([total, 0]);
    expect(before).toBeGreaterThan(4_000 * page);
    expect(after).toBeLessThan(300 * page);
    expect(statSync(sqlite.database).size).toBe(after);
    const wentBack: number[] = [];
    const observer = { ...silentObserver, wentBack: (count: number) => void wentBack.push(count) };
    sqlite.storage = openSqlite(sqlite.path, {}, observer);
    expect(wentBack).toEqual([]);
    expect(await thingNames(sqlite.storage)).toEqual(kept(4_000));
    await sqlite.storage.write('a', (tx) => tx.run('DELETE FROM things'));
    await fillAndDelete(4_000);
    expect(await sqlite.storage.reclaim()).toBe(true);
  });

  test('a relay or a program that uses the database is named, and nothing is changed', async () => {
    await expect(compactSqlite(sqlite.path)).rejects.toThrow(
      'is in use by another relay process: stop it first',
    );
    await sqlite.storage.write('a', insertThing('one'));
    await sqlite.storage[Symbol.asyncDispose]();
    {
      await using _lock = await lockDatabase(sqlite.database);
      await expect(compactSqlite(sqlite.path)).rejects.toThrow('another program uses it');
    }
    sqlite.storage = openSqlite(sqlite.path, {}, silentObserver);
    expect(await sqlite.names()).toEqual(['one']);
  });
});

describe.skipIf(!SmallDisk.isPossible())('on a disk of 16 MiB', () => {
  test('02 §4: below limits.diskFree writes stop and begin again by themselves', async () => {
    using small = SmallDisk.mount() as SmallDisk;
    const { path } = small;
    const lines: string[] = [];
    const config = { data: path, storage: { engine: 'sqlite', url: '', connections: 2 } } as const;
    const data: ServedRelayData = { path, config, [Symbol.asyncDispose]: () => Promise.resolve() };
    await using relay = new ServedRelay({ limits: { diskFree: 4_194_304 } });
    relay.log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line).msg) });
    await relay.start(data);
    const ann = await relay.register('ann');
    const { token } = await relay.logInDevice(ann);
    const publish = async () =>
      codeOf(await relay.http().call('profile.publish', ann.profile(), { token }));
    /** Publishes after the relay has looked at its disk, which it does every two seconds. */
    const becomes = (code: string) =>
      vi.waitFor(async () => {
        relay.clock.advance(2);
        expect(await publish()).toBe(code);
      }, patience);
    expect(await publish()).toBe('ok');
    small.fillTo(4_000_000);
    await becomes('temporarily_unavailable');
    expect(codeOf(await relay.http().call('message.timeline.sync', {}, { token }))).toBe('ok');
    await relay.logInDevice(ann);
    // A start finds it too.
    await relay.stop();
    small.fillTo(4_000_000);
    await relay.resume();
    expect(await publish()).toBe('temporarily_unavailable');
    small.free();
    await becomes('ok');
    expect(lines.filter((line) => line.includes('disk'))).toEqual([
      'the disk is nearly full: calls that write are refused until there is room',
      'the disk is nearly full: calls that write are refused until there is room',
      'the disk has room again',
    ]);
  });

  test('posthouse compact says how much room it needs, and leaves the database as it was', async () => {
    using small = SmallDisk.mount() as SmallDisk;
    {
      await using storage = openSqlite(small.path, {}, silentObserver);
      await storage.write('relay', (tx) => tx.run('CREATE TABLE things (name TEXT)'));
    }
    await expect(compactSqlite(small.path)).rejects.toThrow(/needs 33 MiB of free disk/);
    await using storage = openSqlite(small.path, {}, silentObserver);
    expect(await thingNames(storage)).toEqual([]);
  });
});
