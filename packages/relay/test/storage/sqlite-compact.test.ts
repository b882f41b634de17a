/** `posthouse compact`: a bar is a unit test of protocol/progress; here its events and its end. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { killAll, posthouse } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';

let folder: ReturnType<typeof temporaryFolder>;
let args: string[];
let database: string;
beforeAll(() => {
  folder = temporaryFolder();
  const data = join(folder.path, 'data');
  mkdirSync(data, { mode: 0o700 });
  database = join(data, 'relay.sqlite');
  using filled = new DatabaseSync(database);
  filled.exec(`PRAGMA journal_mode=WAL; CREATE TABLE things (name TEXT);
    INSERT INTO things WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)
    SELECT hex(randomblob(500)) FROM n; DELETE FROM things WHERE rowid % 10 = 0`);
  const network = 'neo:860833102:0x0123456789abcdef0123456789abcdef01234567';
  args = ['compact', '--data', data, '--network', network, '--json'];
});
afterEach(killAll);
afterAll(() => folder[Symbol.dispose]());

const environment = { POSTHOUSE_TLS_MODE: 'off', POSTHOUSE_PUBLIC_HTTPS: 'https://relay.example' };

function digest(): unknown {
  using read = new DatabaseSync(database);
  expect(read.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
  return read.prepare('SELECT count(*) AS rows, sum(length(name)) AS bytes FROM things').get();
}

test('after Ctrl+C the database is as it was; the next run tells how far it is, and ends', async () => {
  const before = digest();
  const stopped = posthouse(args, environment);
  stopped.child.stdout?.once('data', () => stopped.child.kill('SIGINT'));
  expect(await stopped.ended).toBe(1);
  expect(JSON.parse(stopped.output.text.trim().split('\n').at(-1) as string)).toEqual({
    event: 'stopped',
    next: 'the database is as it was; run the same command again',
  });
  expect(digest()).toEqual(before);

  const { ended, output } = posthouse(args, environment);
  expect(await ended, output.errors).toBe(0);
  const events = output.text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(events[0]).toMatchObject({
    event: 'progress',
    step: 'compacting',
    unit: 'bytes',
    done: 0,
  });
  const { done, total } = events.at(-2);
  expect(done).toBe(total);
  expect(events.at(-1)).toMatchObject({ event: 'compacted', after: expect.any(Number) });
  expect(events.at(-1).after).toBeLessThan(events.at(-1).before);
  expect(digest()).toEqual(before);
});
