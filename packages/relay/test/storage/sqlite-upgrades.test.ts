/** Data folders that earlier relays wrote (kept/README.md) start with the relay of today. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { relayMigrations } from '../../src/modules.ts';
import { Relay } from '../../src/relay.ts';
import { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { SmallDisk } from '../support/small-disk.ts';

const kept = join(import.meta.dirname, 'kept');

/** Unpacks a kept data folder. */
function unpacked(name: string) {
  const folder = temporaryFolder();
  execFileSync('tar', ['-xzf', join(kept, `${name}.tgz`), '-C', folder.path]);
  return folder;
}

/** Number of rows of the tables that a kept database has filled, its migrations apart. */
function rowsOf(path: string, only?: readonly string[]): Record<string, number> {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    const counts = tables
      .map(({ name }) => String(name))
      .filter(
        (name) =>
          only?.includes(name) ?? /^(account|device|message|timeline|group|channel)/.test(name),
      )
      .map((name) => [
        name,
        Number(database.prepare(`SELECT count(*) AS rows FROM ${name}`).get()?.rows),
      ]);
    return Object.fromEntries(counts.filter(([, rows]) => only !== undefined || rows !== 0));
  } finally {
    database.close();
  }
}

const schemaOf = (path: string) => {
  const database = new DatabaseSync(path, { readOnly: true });
  const rows = database.prepare('SELECT id FROM schema_migrations ORDER BY id').all();
  database.close();
  return rows.map(({ id }) => Number(id));
};

/** A clock that stands at the last record of a database: jobs delete what is older for today's. */
function clockOf(path: string): ManualClock {
  if (!existsSync(path)) return new ManualClock();
  using database = new DatabaseSync(path, { readOnly: true });
  const last = database.prepare('SELECT max(accepted_at) AS last FROM timeline_records').get();
  return new ManualClock(Number(last?.last));
}

/** Starts and stops the relay of today on a folder, at the time of its records; returns what it logs. */
async function startedOn(data: string, values: { copyBeforeUpgrade?: boolean } = {}) {
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  await using relay = await Relay.start(
    { data, dev: true, listen: '127.0.0.1:0', ...values },
    { log, clock: clockOf(join(data, 'relay.sqlite')) },
  );
  const { storage } = relay.context;
  const timelines = await storage.read((tx) => tx.all('SELECT account FROM timeline_heads'));
  return { log: lines.join(''), accounts: timelines.length };
}

test.each(
  readdirSync(kept)
    .filter((name) => name.endsWith('.tgz'))
    .map((name) => name.slice(0, -4)),
)(
  'a relay of today upgrades the kept database %s: it says so, copies it before, and loses no row',
  async (name) => {
    using folder = unpacked(name);
    const database = join(folder.path, 'relay.sqlite');
    const [before, schema] = [rowsOf(database), schemaOf(database)];
    const { log, accounts } = await startedOn(folder.path);
    const to = relayMigrations.length;
    expect(accounts).toBe(2);
    expect(log).toContain(`the database is upgraded from schema ${schema.length} to ${to}`);
    expect(log).toContain('note on the upgrade: new accounts now need an invite');
    expect(rowsOf(database, Object.keys(before))).toEqual(before);
    expect(schemaOf(database)).toEqual(relayMigrations.map(({ id }) => id).sort((a, b) => a - b));

    const copy = join(folder.path, `before-schema-${to}.sqlite`);
    expect([rowsOf(copy), schemaOf(copy)]).toEqual([before, schema]);
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    // A second start changes nothing.
    const again = await startedOn(folder.path);
    expect(again.log).not.toContain('upgraded');
  },
);

test('an upgrade whose copy cannot be made changes nothing, and goes on without one if it is told to', async () => {
  using folder = unpacked('first');
  const database = join(folder.path, 'relay.sqlite');
  const schema = schemaOf(database);
  const copy = `before-schema-${relayMigrations.length}.sqlite`;
  mkdirSync(join(folder.path, copy));
  await expect(startedOn(folder.path)).rejects.toThrow(
    /could not be copied.*copyBeforeUpgrade to false/,
  );
  expect(schemaOf(database)).toEqual(schema);
  expect(existsSync(join(folder.path, `${copy}.part`))).toBe(false);
  await startedOn(folder.path, { copyBeforeUpgrade: false });
  expect(schemaOf(database)).toHaveLength(relayMigrations.length);
});

test.skipIf(!SmallDisk.isPossible())(
  'an upgrade whose copy does not fit says how much room it needs, and changes nothing',
  async () => {
    using disk = SmallDisk.mount();
    if (disk === undefined) throw new Error('no disk');
    execFileSync('tar', ['-xzf', join(kept, 'first.tgz'), '-C', disk.path]);
    const database = join(disk.path, 'relay.sqlite');
    const schema = schemaOf(database);
    disk.fillTo(statSync(database).size / 2);
    await expect(startedOn(disk.path)).rejects.toThrow(
      /the copy before needs about 1 MB .*, where 1 MB are free\. Make room/,
    );
    expect(schemaOf(database)).toEqual(schema);
    expect(readdirSync(disk.path).filter((name) => name.startsWith('before-'))).toEqual([]);
  },
);

test('a new database is not upgraded, and nothing is copied', async () => {
  using folder = temporaryFolder();
  const { log } = await startedOn(folder.path);
  expect(log).not.toContain('upgraded');
  expect(readdirSync(folder.path).filter((name) => name.startsWith('before-'))).toEqual([]);
});
