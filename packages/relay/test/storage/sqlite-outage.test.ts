/** The embedded database while another process locks it, and on a full disk. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openSqlite, type SqliteStorage } from '../../src/storage/sqlite/storage.ts';
import type { Writer } from '../../src/storage/types.ts';
import { temporaryFolder } from '../support/folder.ts';
import { codeOf, type HttpAnswer } from '../support/http.ts';
import { lockDatabase } from '../support/lock-holder.ts';
import { ServedRelay, type ServedRelayData } from '../support/served-relay.ts';
import { SmallDisk } from '../support/small-disk.ts';

let events: string[];
const observer = {
  unflushed() {},
  checkpointsStopped() {},
  blocked: (reason: string) => void events.push(reason),
  resumed: () => void events.push('resumed'),
  wentBack() {},
  damaged() {},
  pagesUnchecked() {},
};
const insert = (name: string) => (tx: Writer) =>
  tx.run('INSERT INTO things (name) VALUES (?)', name);
const count = async (storage: SqliteStorage) =>
  (await storage.read((tx) => tx.all('SELECT name FROM things'))).length;

async function opened(path: string): Promise<SqliteStorage> {
  const storage = openSqlite(path, {}, observer);
  await storage.write('relay', (tx) => tx.run('CREATE TABLE IF NOT EXISTS things (name TEXT)'));
  return storage;
}

beforeEach(() => {
  events = [];
});

describe('02 §4: while another process locks the database', () => {
  test('writes wait with the event loop free, then are temporarily_unavailable; reads go on', async () => {
    using folder = temporaryFolder();
    await using storage = await opened(folder.path);
    await storage.write('a', insert('before'));
    {
      await using _lock = await lockDatabase(join(folder.path, 'relay.sqlite'));
      const order: string[] = [];
      const write = storage.write('a', insert('during')).catch((error: unknown) => {
        order.push('refused');
        return error;
      });
      for (let turn = 0; turn < 20; turn += 1) {
        await new Promise((resolve) => setTimeout(resolve));
        order.push('turn');
      }
      expect(await count(storage)).toBe(1);
      // Only `rate_limited` says when to try again (02 §5).
      expect(await write).toMatchObject({ code: 'temporarily_unavailable', data: undefined });
      expect(order).toEqual([...Array(20).fill('turn'), 'refused']);
      await expect(storage.write('a', insert('again'))).rejects.toThrow('locks the database');
      expect(events).toEqual(['another process locks the database']);
    }
    await storage.write('a', insert('after'));
    expect(events).toEqual(['another process locks the database', 'resumed']);
    expect(await count(storage)).toBe(2);
  });

  test('a write that waits for a short lock succeeds', async () => {
    using folder = temporaryFolder();
    await using storage = await opened(folder.path);
    const lock = await lockDatabase(join(folder.path, 'relay.sqlite'));
    const write = storage.write('a', insert('one'));
    await new Promise((resolve) => setImmediate(resolve));
    await lock[Symbol.asyncDispose]();
    await write;
    expect(await count(storage)).toBe(1);
    expect(events).toEqual([]);
  });
});

describe('02 §4: without room', () => {
  test('a write is temporarily_unavailable, nothing of it is stored, and others go on', async () => {
    using folder = temporaryFolder();
    await using storage = await opened(folder.path);
    const page = await storage.write('a', (tx) => tx.get('PRAGMA page_count'));
    const limitTo = (pages: number) =>
      storage.write('a', (tx) => tx.get(`PRAGMA max_page_count = ${pages}`));
    await limitTo(page?.page_count as number);
    const large = 'x'.repeat(100_000);
    await expect(storage.write('a', insert(large))).rejects.toMatchObject({
      code: 'temporarily_unavailable',
      data: undefined,
    });
    expect(await count(storage)).toBe(0);
    expect(events).toEqual(['the disk is full']);
    await limitTo(1_000_000);
    await storage.write('a', insert(large));
    expect(await count(storage)).toBe(1);
    expect(events).toEqual(['the disk is full', 'resumed']);
  });
});

describe.skipIf(!SmallDisk.isPossible())('a relay on a full disk', () => {
  let small: SmallDisk;
  const lines: { msg: string; level: number }[] = [];
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) });
  let relay: ServedRelay;

  beforeAll(async () => {
    small = SmallDisk.mount() as SmallDisk;
    const { path } = small;
    const config = { data: path, storage: { engine: 'sqlite', url: '', connections: 2 } } as const;
    const data: ServedRelayData = { path, config, [Symbol.asyncDispose]: () => Promise.resolve() };
    const operations = { listen: '127.0.0.1:0' };
    relay = new ServedRelay({ operations });
    relay.log = log;
    await relay.start(data);
  });
  afterAll(async () => {
    await relay[Symbol.asyncDispose]();
    small[Symbol.dispose]();
  });

  const health = async () => {
    const answer = await fetch(`${relay.server.operations}/health`);
    return { status: answer.status, ...((await answer.json()) as object) };
  };

  test('refuses writes with one log line, serves reads, and starts', async () => {
    const ann = await relay.register('ann');
    const { token } = await relay.logInDevice(ann);
    const publish = (nickname: string): Promise<HttpAnswer> =>
      relay.http().call('profile.publish', ann.profile({ nickname }), { token });
    expect(codeOf(await publish('before'))).toBe('ok');

    small.fill();
    lines.length = 0;
    const codes = new Set<string>();
    for (let writes = 0; writes < 50 && !codes.has('temporarily_unavailable'); writes += 1) {
      relay.clock.advance(1);
      codes.add(codeOf(await publish(`full ${writes}`)));
    }
    for (let writes = 0; writes < 5; writes += 1) codes.add(codeOf(await publish('full')));
    expect(codes).toContain('temporarily_unavailable');
    expect(codes).not.toContain('internal_error');
    const refused = await publish('full');
    expect(refused.status).toBe(503);
    expect(refused.headers).not.toHaveProperty('retry-after');
    expect(JSON.parse(refused.text)).not.toHaveProperty('data');
    const read = () => relay.http().call('message.timeline.sync', {}, { token });
    expect(codeOf(await read())).toBe('ok');
    expect(lines.filter(({ level }) => level >= 40).map(({ msg }) => msg)).toEqual([
      'storage accepts no writes',
    ]);
    expect(await health()).toMatchObject({ status: 'degraded', storage: 'read-only' });

    await relay.restart();
    expect(codeOf(await read())).toBe('ok');

    // A clean stop with room removes the journals; opening needs room for one of them.
    small.free();
    await relay.stop();
    expect(readdirSync(small.path)).not.toContain('relay.sqlite-shm');
    small.fill();
    await relay.resume();
    expect(codeOf(await read())).toBe('ok');

    small.free();
    relay.clock.advance(1);
    expect(codeOf(await publish('after'))).toBe('ok');
    expect(await health()).toMatchObject({ status: 'ok', storage: 'ok' });
  });
});
