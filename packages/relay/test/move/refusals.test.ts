/** What `posthouse move` refuses, and that whatever it refused is as it was. */
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { markPutBack } from '../../src/backup/index.ts';
import { relayMigrations, restoredStatements } from '../../src/modules.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { type DatabaseAddress, parseAddress } from '../../src/storage/move/move.ts';
import { openAlongside } from '../../src/storage/open.ts';
import { openPostgres } from '../../src/storage/postgres/storage.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import { dropDatabase } from '../support/postgres.ts';
import { ask } from '../support/postgres-engine.ts';
import { silentObserver } from '../support/silent-observer.ts';
import {
  abandon,
  change,
  configOf,
  contents,
  Databases,
  facts,
  furnish,
  isInService,
  move,
  open,
  putEnvelope,
  stateOf,
} from './databases.ts';

let databases: Databases;

beforeAll(async () => {
  databases = await Databases.start();
});
afterAll(() => databases[Symbol.asyncDispose]());

const pairs = [
  ['sqlite', 'sqlite'],
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
  ['postgres', 'postgres'],
] as const;

/** Stops a move between its marks: `when` decides before which statement it fails. */
async function cutOff(from: DatabaseAddress, to: DatabaseAddress, when: RegExp): Promise<void> {
  const beforeStatement = (sql: string) => {
    if (when.test(sql)) throw new Error('cut off');
  };
  await expect(move(from, to, { faults: { target: { beforeStatement } } })).rejects.toThrow(
    'cut off',
  );
}

/** Leaves the source `moving` and the target `arriving`, with half of the tables. */
const half = /^INSERT INTO "relay_facts"/;

describe.concurrent.each(pairs)('%s to %s', (engineFrom, engineTo) => {
  test('a database that a relay runs on is neither moved nor moved onto', async () => {
    const [from, to] = [await databases.empty(engineFrom), await databases.empty(engineTo)];
    await furnish(from);
    for (const used of [from, to]) {
      await using _relay = await open(used, 'alone');
      await expect(move(from, to)).rejects.toThrow(/in use by another relay|stop it first/);
    }
    expect(await isInService(from)).toBe(true);
    expect(await stateOf(from)).toBe(undefined);
    expect((await move(from, to)).state).toBe('moved');
  });

  test('a target that has state is refused, and stays as it is', async () => {
    const [from, to] = [await databases.empty(engineFrom), await databases.empty(engineTo)];
    await furnish(from);
    await furnish(to, (tx) => tx.run("INSERT INTO timeline_heads VALUES ('ben', 7)"));
    const before = await contents(to);
    await expect(move(from, to)).rejects.toThrow('has the state of a relay already');
    await expect(move(from, to, { replace: true })).rejects.toThrow('has the state of a relay');
    expect(await contents(to)).toEqual(before);
    expect(await isInService(from)).toBe(true);
    expect(await isInService(to)).toBe(true);
  });

  test('a target of another relay, network or service word is refused, empty or not', async () => {
    const [from, to] = [await databases.empty(engineFrom), await databases.empty(engineTo)];
    await furnish(from);
    await furnish(to, async () => {}, { of: { ...facts, relay: '0xbb' } });
    await expect(move(from, to)).rejects.toThrow('belongs to relay 0xbb, the source to 0xaa');
    expect(await isInService(to)).toBe(true);
    expect(await stateOf(from)).toBe(undefined);
  });

  test('a database on which the same relay was started, and no more, is taken', async () => {
    const [from, to] = [await databases.empty(engineFrom), await databases.empty(engineTo)];
    await furnish(from);
    await furnish(to, async () => {});
    expect((await move(from, to)).state).toBe('moved');
    expect(await contents(to)).toEqual(await contents(from));
  });

  test('half moved, neither end lets a relay run; the move goes on, or is given up', async () => {
    const [from, to] = [await databases.empty(engineFrom), await databases.empty(engineTo)];
    await furnish(from);
    const before = await contents(from);
    await cutOff(from, to, half);
    expect(await stateOf(from)).toBe('moving');
    expect(await stateOf(to)).toBe('arriving');
    expect(await isInService(from)).toBe(false);
    expect(await isInService(to)).toBe(false);
    await expect(abandon({ from, lost: to })).rejects.toThrow('leave --lost out');
    expect(await abandon({ from })).toBe(to.name);
    expect(await isInService(from)).toBe(true);
    expect(await isInService(to)).toBe(false);
    expect(await contents(from)).toEqual(before);
    // What was given up is of no use to any later move.
    await expect(move(from, to)).rejects.toThrow('the unfinished copy of another move');
    const other = await databases.empty(engineTo);
    expect((await move(from, other)).state).toBe('moved');
  });

  test('a source changed between two runs is found; nothing gets into service', async () => {
    const [from, to] = [await databases.empty(engineFrom), await databases.empty(engineTo)];
    await furnish(from);
    await cutOff(from, to, half);
    await change(from, "UPDATE message_envelopes SET envelope = 'other' WHERE envelope_id = 'a'");
    const outcome = await move(from, to);
    expect(outcome.state).toBe('differs');
    const unequal = outcome.tables.filter(({ source, target }) => source.digest !== target.digest);
    expect(unequal.map(({ table }) => table)).toEqual(['message_envelopes']);
    expect(await isInService(from)).toBe(false);
    expect(await isInService(to)).toBe(false);
    expect((await move(from, to)).state).toBe('differs');
  });

  test('moving back replaces the old copy, with --replace', async () => {
    const [from, to] = [await databases.empty(engineFrom), await databases.empty(engineTo)];
    await furnish(from);
    await move(from, to);
    expect(await isInService(from)).toBe(false);
    expect((await move(from, to)).state).toBe('moved before');
    await change(to, "UPDATE timeline_heads SET head = 2 WHERE account = 'ann'");
    await change(to, "DELETE FROM message_envelopes WHERE envelope_id = 'a'");
    await expect(move(to, from)).rejects.toThrow('give --replace');
    expect((await move(to, from, { replace: true })).state).toBe('moved');
    expect(await contents(from)).toEqual(await contents(to));
    expect(await isInService(from)).toBe(true);
    expect(await isInService(to)).toBe(false);
  });
});

/** Takes the last transaction from a relay's folder. */
async function shorten(address: DatabaseAddress) {
  if (address.engine !== 'sqlite') throw new Error('it is SQLite');
  const { folder } = address;
  const file = join(folder, 'relay.sqlite');
  const older = `${file}-older`;
  cpSync(file, older);
  await using storage = openSqlite(folder, {}, silentObserver);
  await storage.write('relay', (tx) => putEnvelope(tx, 'c', 'of the last transaction'));
  await storage[Symbol.asyncDispose]();
  const newer = `${file}-newer`;
  cpSync(file, newer);
  cpSync(older, file);
  return { folder, putBack: () => cpSync(newer, file) };
}

/** A folder of a relay that has lost what it stored last, and where it was to be moved. */
async function shortened({ isBegun }: { readonly isBegun: boolean }) {
  const [from, to] = [await databases.sqlite(), await databases.sqlite()];
  await furnish(from);
  if (isBegun) await cutOff(from, to, half);
  return { from, to, ...(await shorten(from)) };
}

/** How many transactions a relay that starts on a folder notices to be missing. */
async function noticed(folder: string): Promise<number> {
  let missing = 0;
  const wentBack = (count: number) => {
    missing = count;
  };
  await openSqlite(folder, {}, { ...silentObserver, wentBack })[Symbol.asyncDispose]();
  return missing;
}

test('04 §17.1: a source that lacks its last transactions is refused until they are back', async () => {
  const { from, to, putBack } = await shortened({ isBegun: false });
  for (const _attempt of [1, 2]) {
    await expect(move(from, to)).rejects.toThrow('the database lacks its last 1 transactions: put');
  }
  expect([await stateOf(to), await isInService(to)]).toEqual([undefined, true]);
  putBack();
  expect((await move(from, to)).state).toBe('moved');
  expect(await contents(to)).toHaveProperty('message_envelopes.length', 3);
});

test('04 §17.1: a move that is given up leaves it to the relay to notice the loss', async () => {
  const { from, to, folder } = await shortened({ isBegun: true });
  await expect(move(from, to)).rejects.toThrow('give a move that was begun up with --abandon');
  expect(await abandon({ from })).toBe(to.name);
  expect(await noticed(folder)).toBe(1);
});

test('04 §17.1: a loss in a target that is refused, or needs no copy, is left to the relay to notice', async () => {
  const [from, to] = [await databases.sqlite(), await databases.sqlite()];
  await furnish(from);
  await move(from, to);
  const { folder } = await shorten(to);
  const other = await databases.sqlite();
  await furnish(other);
  await expect(move(other, to)).rejects.toThrow('has the state of a relay already');
  await expect(abandon({ from, to })).rejects.toThrow('is in service');
  await expect(abandon({ from, lost: to })).rejects.toThrow('is in service');
  expect((await move(from, to)).state).toBe('moved before');
  expect(await noticed(folder)).toBe(1);
});

test('04 §17.1: a loss is forgotten once the database is marked as restored, and no sooner', async () => {
  const { from, to, folder } = await shortened({ isBegun: true });
  const config = { data: folder, storage: configOf(from), copyBeforeUpgrade: false };
  const log = { info: () => {}, warn: () => {} };
  const putBack = () =>
    markPutBack(config, {
      ...{ migrations: relayMigrations, statements: restoredStatements, now: 1_760_000_000, log },
    });
  await expect(putBack()).rejects.toThrow('is being moved to');
  await expect(move(from, to)).rejects.toThrow('the database lacks its last 1 transactions');
  await abandon({ from });
  await putBack();
  expect((await move(from, await databases.sqlite())).state).toBe('moved');
});

test('a target that lost its last transactions is replaced, and its relay notices no loss', async () => {
  const [from, to] = [await databases.sqlite(), await databases.postgres()];
  await furnish(from);
  await move(from, to);
  const { folder } = await shorten(from);
  expect((await move(to, from, { replace: true })).state).toBe('moved');
  expect(await noticed(folder)).toBe(0);
});

test('a target that cannot be marked is told with how to go on', async () => {
  const [from, to] = [await databases.sqlite(), await databases.sqlite()];
  await furnish(from);
  const beforeStatement = (sql: string) => {
    if (sql.startsWith('DELETE FROM relay_move')) throw new Error('cut off');
  };
  const options = { faults: { target: { beforeStatement } } };
  await expect(move(from, to, options)).rejects.toThrow('run the same command again to go on');
  expect([await stateOf(from), await stateOf(to)]).toEqual(['moving', undefined]);
  expect((await move(from, to)).state).toBe('moved');
});

test('a command that opened the database before a move writes nothing after it', async () => {
  const [from, to] = [await databases.sqlite(), await databases.postgres()];
  await furnish(from);
  if (from.engine !== 'sqlite') throw new Error('it is SQLite');
  const config = { data: from.folder, storage: configOf(from) };
  await using command = await openAlongside(config, relayMigrations);
  const write = (id: string) => command.write('relay', (tx) => putEnvelope(tx, id, 'late'));
  await write('before');
  await cutOff(from, to, half);
  await expect(write('meanwhile')).rejects.toThrow('is being moved to');
  expect((await move(from, to)).state).toBe('moved');
  await expect(write('after')).rejects.toThrow('was moved to');
  const envelopes = (await contents(to)).message_envelopes as { envelope_id: string }[];
  expect(envelopes.map((row) => row.envelope_id)).toEqual(['a', 'b', 'before']);
});

test("a source that is no relay's database is refused", async () => {
  const from = await databases.sqlite();
  const to = await databases.sqlite();
  await expect(move(from, to)).rejects.toThrow(`${from.name}: there is no relay.sqlite`);
  await (await open(from))[Symbol.asyncDispose]();
  await expect(move(from, to)).rejects.toThrow('no relay was ever started on it');
  await expect(move(await databases.postgres(), to)).rejects.toThrow('no relay was ever started');
});

test("a target with tables that are not a relay's is refused", async () => {
  const [from, to] = [await databases.sqlite(), await databases.postgres()];
  await furnish(from);
  await change(to, 'CREATE TABLE accounts (id BIGINT PRIMARY KEY)');
  await expect(move(from, to)).rejects.toThrow("has tables that are not a relay's: accounts");
});

test('a table that only one end has is refused', async () => {
  const [from, to] = [await databases.sqlite(), await databases.postgres()];
  await furnish(from);
  await change(from, 'CREATE TABLE notes (id BIGINT PRIMARY KEY)');
  await expect(move(from, to)).rejects.toThrow(`${from.name}: the table notes is not one of`);
  expect(await isInService(from)).toBe(true);
});

test('a source of an older version, or a newer one, is refused', async () => {
  const [older, newer, to] = [
    await databases.sqlite(),
    await databases.sqlite(),
    await databases.postgres(),
  ];
  await furnish(older);
  const coming = { id: 9_999, name: 'to come', statements: [] };
  await expect(move(older, to, { migrations: [...relayMigrations, coming] })).rejects.toThrow(
    'start this version of the relay on it once, first',
  );
  await furnish(newer);
  await change(newer, "INSERT INTO schema_migrations VALUES (9999, 'to come', 'x', 1)");
  await expect(move(newer, to)).rejects.toThrow('the database is newer than this relay');
});

test('an older target in service is refused, and not brought up to date', async () => {
  const [from, to] = [await databases.sqlite(), await databases.sqlite()];
  const statements = ['CREATE TABLE x (y BIGINT PRIMARY KEY)'];
  const migrations = [...relayMigrations, { id: 9_999, name: 'to come', statements }];
  await furnish(from);
  await furnish(to);
  {
    await using storage = await open(from);
    await migrate(storage, migrations, 1);
  }
  const before = await contents(to);
  await expect(move(from, to, { migrations })).rejects.toThrow('has the state of a relay');
  expect(await contents(to)).toEqual(before);
});

test('the unfinished copy of one source is not taken by another', async () => {
  const [from, other, to] = [
    await databases.sqlite(),
    await databases.sqlite(),
    await databases.postgres(),
  ];
  await furnish(from);
  await furnish(other);
  await cutOff(from, to, half);
  await expect(move(other, to)).rejects.toThrow('the unfinished copy of another move');
  await expect(move(to, other)).rejects.toThrow('is the unfinished copy of');
  await expect(move(other, from)).rejects.toThrow('is being moved to');
  expect((await move(from, to)).state).toBe('moved');
});

test('an unfinished move accepts no other target, and starts again if its target was emptied', async () => {
  const [from, to, other] = [
    await databases.sqlite(),
    await databases.sqlite(),
    await databases.sqlite(),
  ];
  await furnish(from);
  await cutOff(from, to, half);
  await expect(move(from, other)).rejects.toThrow(`is being moved to ${to.name}`);
  const copy = databases.folder();
  if (to.engine !== 'sqlite') throw new Error('is SQLite');
  cpSync(to.folder, copy, { recursive: true });
  rmSync(to.folder, { recursive: true });
  expect((await move(from, to)).state).toBe('moved');
  // The first move can never be completed any more.
  await expect(move(from, parseAddress(`sqlite:${copy}`))).rejects.toThrow('was moved to');
});

test('what was moved moves nowhere else, and is not given up', async () => {
  const [from, to, other] = [
    await databases.sqlite(),
    await databases.postgres(),
    await databases.sqlite(),
  ];
  await furnish(from);
  await expect(abandon({ from })).rejects.toThrow('is not being moved');
  await move(from, to);
  await expect(move(from, other)).rejects.toThrow(`was moved to ${to.name}`);
  await expect(abandon({ from })).rejects.toThrow('give --to as well');
  await expect(abandon({ from, to })).rejects.toThrow('is in service; move it back instead');
  await expect(abandon({ from, to: from })).rejects.toThrow();
  await expect(abandon({ from: to })).rejects.toThrow('is not being moved');
  expect(await isInService(from)).toBe(false);
  expect(await isInService(to)).toBe(true);
});

describe.concurrent('a source whose target is lost for good', () => {
  test.each(['sqlite', 'postgres'] as const)('%s: comes back where it is named', async (engine) => {
    const [from, to] = [await databases.sqlite(), await databases.empty(engine)];
    await furnish(from);
    const before = await contents(from);
    await move(from, to);
    const other = await databases.empty(engine);
    const [gone, wrong] = [
      { from, lost: to },
      { from, lost: other },
    ];
    await expect(abandon(wrong)).rejects.toThrow(`was moved to ${to.name}, not to `);
    await expect(abandon(gone)).rejects.toThrow('is in service; move it back instead');
    {
      await using _relay = await open(to, 'alone');
      await expect(abandon(gone)).rejects.toThrow(/in use by another relay|stop it first/);
    }
    expect(await isInService(from)).toBe(false);
    if (to.engine === 'sqlite') rmSync(to.folder, { recursive: true });
    else await dropDatabase(to.url);
    await expect(abandon({ from, to })).rejects.toThrow();
    expect(await abandon(gone)).toBe(to.name);
    expect(await isInService(from)).toBe(true);
    // Its sequences go on above those that may have been assigned since.
    const { timeline_heads, timeline_floor, relay_facts, ...rest } = await contents(from);
    expect(before).toMatchObject(rest);
    expect(timeline_heads).toEqual([{ account: 'ann', head: 2 ** 32 + 1 }]);
    // What it was lost to can be its target again.
    expect((await move(from, other)).state).toBe('moved');
  });

  test('a server that does not answer counts as lost, one that refuses the login does not', async () => {
    const [from, to] = [await databases.sqlite(), await databases.postgres()];
    await furnish(from);
    await move(from, to);
    if (to.engine !== 'postgres') throw new Error('is PostgreSQL');
    const wrong = { ...to, url: to.url.replace(':posthouse@', ':wrong@') };
    await expect(abandon({ from, lost: wrong })).rejects.toThrow('password');
    expect(await isInService(from)).toBe(false);
    const silent = new URL(to.url);
    silent.port = '1';
    await abandon({ from, lost: { ...to, url: silent.href } });
    expect(await isInService(from)).toBe(true);
  });

  test('a target that is there and unfinished is given up with it', async () => {
    const [from, to] = [await databases.sqlite(), await databases.sqlite()];
    await furnish(from);
    let marks = 0;
    const beforeStatement = (sql: string) => {
      if (sql.startsWith('DELETE FROM relay_move')) marks += 1;
      if (marks === 2) throw new Error('cut off');
    };
    await expect(move(from, to, { faults: { target: { beforeStatement } } })).rejects.toThrow();
    await abandon({ from, lost: to });
    expect([await stateOf(from), await stateOf(to)]).toEqual([undefined, 'abandoned']);
  });

  test('an empty database in its place, or one of another move, is not it', async () => {
    const [from, to] = [await databases.sqlite(), await databases.sqlite()];
    await furnish(from);
    await move(from, to);
    if (to.engine !== 'sqlite') throw new Error('is SQLite');
    rmSync(to.folder, { recursive: true });
    await furnish(to);
    await abandon({ from, lost: to });
    expect(await isInService(from)).toBe(true);
    expect(await isInService(to)).toBe(true);
  });
});

test('cut off between the last two marks, a move is completed or given up', async () => {
  for (const givenUp of [false, true]) {
    const [from, to] = [await databases.sqlite(), await databases.postgres()];
    await furnish(from);
    let marks = 0;
    const beforeStatement = (sql: string) => {
      if (sql.startsWith('DELETE FROM relay_move')) marks += 1;
      if (marks === 2) throw new Error('cut off');
    };
    await expect(move(from, to, { faults: { target: { beforeStatement } } })).rejects.toThrow();
    expect([await stateOf(from), await stateOf(to)]).toEqual(['moved', 'arriving']);
    if (givenUp) {
      await abandon({ from, to });
      expect([await stateOf(from), await stateOf(to)]).toEqual([undefined, 'abandoned']);
      await expect(move(from, to)).rejects.toThrow('the unfinished copy of another move');
    } else {
      expect((await move(from, to)).state).toBe('moved');
      expect([await stateOf(from), await stateOf(to)]).toEqual(['moved', 'arrived']);
    }
  }
});

test('rows without a key, which no copy would reach, are told of', async () => {
  const [from, to] = [await databases.sqlite(), await databases.sqlite()];
  await furnish(from, async (tx) => {
    const row = "INSERT INTO auth_challenges VALUES (NULL, 'ann', 'o', 1)";
    for (let count = 0; count < 513; count += 1) await tx.run(row);
  });
  await expect(move(from, to)).rejects.toThrow(
    `${from.name}, table auth_challenges: 513 rows, but only 512 with a key`,
  );
  expect(await isInService(to)).toBe(false);
});

test('a value that not both engines have is told of, with the table', async () => {
  const [from, to] = [await databases.sqlite(), await databases.postgres()];
  await furnish(from);
  await change(from, "UPDATE timeline_heads SET head = 'many'");
  await expect(move(from, to)).rejects.toThrow(
    `${to.name}, table timeline_heads: invalid input syntax`,
  );
  expect(await isInService(to)).toBe(false);
});

test.each(['source', 'target'])('a mark that changes at the %s meanwhile stops it', async (end) => {
  const [from, to] = [await databases.sqlite(), await databases.sqlite()];
  await furnish(from);
  const changed = end === 'source' ? from : to;
  const progress = () => {
    if (changed.engine !== 'sqlite') throw new Error('is SQLite');
    const intruder = new DatabaseSync(join(changed.folder, 'relay.sqlite'));
    intruder.exec('DELETE FROM relay_move');
    intruder.close();
  };
  await expect(move(from, to, { progress })).rejects.toThrow(
    /its mark was changed by another command meanwhile$/,
  );
  expect(await stateOf(changed)).toBe(undefined);
});

test('a relay that was cut off while its database was moved does not go on with it', async () => {
  const [from, to] = [await databases.postgres(), await databases.sqlite()];
  if (from.engine !== 'postgres') throw new Error('is PostgreSQL');
  await furnish(from);
  const place = { url: from.url, connections: 2, lockMode: 'alone' } as const;
  // It would ask for its place again in a minute.
  await using relay = await openPostgres({ ...place, timeouts: { lockRetry: 60_000 } });
  const ends =
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()';
  await ask(from.url, `${ends} AND datname = current_database()`);
  expect((await move(from, to)).state).toBe('moved');
  const failure = await relay.read((tx) => tx.get('SELECT 1 AS one')).catch((error) => error);
  expect(failure).toMatchObject({ code: 'temporarily_unavailable' });
  expect(failure.cause.message).toContain(`the database was moved to ${to.name}`);
  await expect(openPostgres(place)).rejects.toThrow(`the database was moved to ${to.name}`);
});

test('a folder that is a file is told of', async () => {
  const file = join(databases.folder(), 'file');
  writeFileSync(file, '');
  const from = await databases.sqlite();
  await furnish(from);
  const to = parseAddress(`sqlite:${file}`);
  await expect(move(from, to)).rejects.toThrow(`${to.name}: `);
});
