/** Backups of both engines, and what a restore makes of them. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ProgressState } from '@posthouse/protocol/progress';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backUp, markPutBack, verifyBackup } from '../../src/backup/index.ts';
import { restoreSteps } from '../../src/backup/restore.ts';
import { relayMigrations, restoredStatements } from '../../src/modules.ts';
import { readRestoredAt, restoredStep } from '../../src/storage/restored.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import {
  change,
  configOf,
  contents,
  Databases,
  facts,
  furnish,
  open,
  putEnvelope,
} from '../move/databases.ts';
import { SmallDisk } from '../support/small-disk.ts';
import { allKinds, backup, madeAt, restoredAt, restoreTo, rowsOf, step } from './support.ts';

/** What `posthouse restored` does, and what it says. */
const putBack = (said: string[] = []) => {
  const log = { info: say, warn: say };
  function say(...parts: unknown[]) {
    said.push(parts.filter((part) => typeof part === 'string').join(' '));
  }
  return { migrations: relayMigrations, statements: restoredStatements, now: restoredAt, log };
};

let databases: Databases;
beforeAll(async () => {
  databases = await Databases.start();
});
afterAll(() => databases[Symbol.asyncDispose]());

describe.each(['sqlite', 'postgres'] as const)('of %s', (engine) => {
  test('04 §17.1: a restored database has every row, and goes on far above its last sequences', async () => {
    const source = await databases.empty(engine);
    await furnish(source, allKinds);
    const [file, folder] = [join(databases.folder(), 'backup'), join(databases.folder(), 'new')];
    const manifest = await backup(source, file);
    expect(manifest).toMatchObject({ ...facts, engine, created_at: madeAt, keys: {} });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(existsSync(`${file}.partial`)).toBe(false);
    const before = await contents(source);
    const result = await restoreTo(file, folder);
    const rows = Object.values(manifest.tables).reduce((sum, table) => sum + table.rows, 0);
    expect(result).toEqual({ relay: '0xaa', createdAt: madeAt, restoredAt, rows, hasKeys: false });
    expect(rows).toBe(Object.values(before).flat().length);
    const after = await rowsOf(folder);
    // What other relays and clients know better than the backup.
    const changed = [
      ...[
        'auth_sessions',
        'auth_challenges',
        'remote_devices',
        'timeline_heads',
        'timeline_floor',
        'account_routes',
        'groups',
      ],
      ...['group_epochs', 'group_events', 'group_losses'],
      ...['group_stagings', 'channels', 'relay_facts', 'relay_move', 'relays'],
    ];
    const same = (rows: Record<string, unknown[]>) =>
      Object.fromEntries(Object.entries(rows).filter(([table]) => !changed.includes(table)));
    expect(same(after)).toEqual(same(before));
    expect(after).toMatchObject({
      auth_sessions: [],
      // One that was answered after the backup would be good once more.
      auth_challenges: [],
      // Its relay is asked before it is believed; an answer under way is of no use.
      remote_devices: [
        { status: 'active', stale: 1, generation: 4, failures: 0, next_check_at: 0 },
      ],
      timeline_heads: [
        { account: 'ann', head: 1 + step },
        { account: 'ben', head: step - 1 },
      ],
      timeline_floor: [{ floor: step }],
      account_routes: [
        { account: 'ann', held_until: -400, checked_at: 0 },
        { account: 'zoe', held_until: 400, checked_at: 7 },
      ],
      groups: [
        {
          ...{ sequence: 6 + step, epoch: 2 + step, chain_head: 'head' },
          losses_end_at: restoredAt + 30 * 86_400,
        },
      ],
      group_losses: [{ group_id: 'g', lost_after: 6, lost_epoch: 2, lost_end: 6 + step }],
      // The earlier ones expire.
      group_epochs: [
        { epoch: 1, superseded: 1 },
        { epoch: 2, superseded: 1 },
        { epoch: 2 + step, superseded: 0 },
      ],
      group_events: [{ sequence: 6 + step, epoch: 2 + step, signer_device_id: null }],
      group_stagings: [{ expires_at: 0 }],
      channels: [{ head: 8 + step, revision: 3 }],
      relays: [{ relay_id: '0xbb', failing_since: null, failures: 0, retry_at: null, seen_at: 2 }],
    });
    expect(after.relay_facts).toContainEqual({ name: 'restored_at', value: String(restoredAt) });
  });

  test('04 §17.1: one backup restored twice begins above what the first life could be given', async () => {
    const source = await databases.empty(engine);
    await furnish(source, allKinds);
    const file = join(databases.folder(), 'backup');
    await backup(source, file);
    const lives = [];
    for (const seconds of [0, 1, 7 * 86_400]) {
      const folder = join(databases.folder(), 'new');
      await restoreTo(file, folder, { now: restoredAt + seconds });
      const { timeline_heads, timeline_floor, channels, groups } = (await rowsOf(folder)) as Record<
        string,
        Record<string, number>[]
      >;
      lives.push([
        timeline_heads?.[0]?.head,
        timeline_heads?.[1]?.head,
        timeline_floor?.[0]?.floor,
        channels?.[0]?.head,
        groups?.[0]?.sequence,
        groups?.[0]?.epoch,
      ] as number[]);
    }
    const [first, second, third] = lives as [number[], number[], number[]];
    for (const index of first.keys()) {
      // 8,192 of each in a second.
      expect((second[index] as number) - (first[index] as number)).toBe(2 ** 13);
      expect((third[index] as number) - (second[index] as number)).toBe(604_799 * 2 ** 13);
    }
  });

  test('a database put back by other means is raised in place, each time', async () => {
    const source = await databases.empty(engine);
    await furnish(source, allKinds);
    const data = source.engine === 'sqlite' ? source.folder : '/nowhere';
    const config = { data, storage: configOf(source), copyBeforeUpgrade: true };
    // PostgreSQL waits for the lock for seconds: `move` has the test.
    if (source.engine === 'sqlite') {
      await using running = await open(source, 'alone');
      await expect(markPutBack(config, putBack())).rejects.toThrow(/use|stop it first/);
      expect(await running.read(readRestoredAt)).toBeUndefined();
    }
    expect(await markPutBack(config, putBack())).toBe(restoredAt);
    // A clock that stands still: clients notice the second one too.
    expect(await markPutBack(config, putBack())).toBe(restoredAt + 1);
    const again = restoredStep(1);
    expect(await contents(source)).toMatchObject({
      channels: [{ head: 8 + step + again }],
      account_routes: [{ held_until: -400 }, { held_until: 400 }],
      timeline_floor: [{ floor: step + again }],
    });
  });

  test('a backup is one moment of a database that is being written', async () => {
    const source = await databases.empty(engine);
    await furnish(source, async (tx) => {
      for (let id = 0; id < 2_000; id += 1) await putEnvelope(tx, `old-${id}`, 'x'.repeat(500));
    });
    const file = join(databases.folder(), 'backup');
    let written = 0;
    {
      await using relay = await open(source, 'alone');
      const stop = new AbortController();
      const writing = (async () => {
        // Two rows in each write: a moment has both or none.
        for (; !stop.signal.aborted; written += 1) {
          const id = written;
          await relay.write('relay', async (tx) => {
            await putEnvelope(tx, `a-${id}`, 'text');
            await putEnvelope(tx, `b-${id}`, 'text');
          });
        }
      })();
      await expect.poll(() => written).toBeGreaterThan(3);
      const least = written;
      await backup(source, file);
      stop.abort();
      await writing;
      const rows = new DatabaseSync(file, { readOnly: true })
        .prepare('SELECT envelope_id AS id FROM message_envelopes')
        .all()
        .map(({ id }) => String(id));
      const ofKind = (kind: string) =>
        rows.filter((id) => id.startsWith(kind)).map((id) => id.slice(kind.length));
      expect(ofKind('a-').sort()).toEqual(ofKind('b-').sort());
      expect(ofKind('a-').length).toBeGreaterThanOrEqual(least);
      expect(ofKind('old-')).toHaveLength(2_000);
    }
  });
});

/** A backup of a few rows, with keys. */
async function smallBackup() {
  const source = await databases.sqlite();
  await furnish(source, allKinds);
  const file = join(databases.folder(), 'backup');
  await backup(source, file, { withKeys: true });
  return { source, file, folder: join(databases.folder(), 'new') };
}

test('keys are in a backup if they are asked for, and leave no trace in the restored database', async () => {
  const { source, file, folder } = await smallBackup();
  const keys = join((source as { folder: string }).folder, 'keys');
  expect(await restoreTo(file, folder)).toMatchObject({ hasKeys: true });
  for (const name of ['relay.key', 'peer.key']) {
    const key = readFileSync(join(keys, name), 'utf8');
    expect(readFileSync(join(folder, 'keys', name), 'utf8')).toBe(key);
    expect(statSync(join(folder, 'keys', name)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(folder, 'relay.sqlite')).includes(key)).toBe(false);
  }
});

test('a backup does not replace a file, and needs the keys that it is to have', async () => {
  const { source, file } = await smallBackup();
  await expect(backup(source, file)).rejects.toThrow(`${file} exists already`);
  const bare = await databases.sqlite();
  await furnish(bare);
  const other = join(databases.folder(), 'other');
  const address = bare as { folder: string };
  writeFileSync(join(address.folder, 'keys'), '');
  await expect(backup(bare, other, { withKeys: true })).rejects.toThrow();
  expect(existsSync(other)).toBe(false);
});

test('a restore refuses bytes that were changed before it writes anything', async () => {
  const { file, folder } = await smallBackup();
  writeFileSync(file, readFileSync(file).fill(0x55, 20_000, 60_000));
  await expect(restoreTo(file, folder)).rejects.toThrow(/is damaged/);
  expect(existsSync(folder)).toBe(false);
});

test('a restore refuses another network, a newer schema, a used folder and a missing file', async () => {
  const { file, folder } = await smallBackup();
  const expected = { network: 'neo:2:0x00' };
  await expect(restoreTo(file, folder, { expected })).rejects.toThrow(
    'is of the network neo:1:0x00, not neo:2:0x00',
  );
  const migrations = relayMigrations.filter(({ id }) => id !== 303);
  await expect(restoreTo(file, folder, { migrations })).rejects.toThrow('it has migration 303');
  const used = databases.folder();
  writeFileSync(join(used, 'something'), '');
  await expect(restoreTo(file, used)).rejects.toThrow(`${used} is not empty`);
  expect(readdirSync(used)).toEqual(['something']);
  await expect(restoreTo(join(used, 'none'), folder)).rejects.toThrow('there is no such file');
  expect(existsSync(folder)).toBe(false);
});

test('no relay starts on a folder whose restore was interrupted, and the restore can be run again', async () => {
  const { file, folder } = await smallBackup();
  for (const last of restoreSteps.slice(0, -1)) {
    const reach = (reached: string) => {
      if (reached === last) throw new Error('interrupted');
    };
    await expect(restoreTo(file, folder, { reach })).rejects.toThrow('interrupted');
    expect(() => openSqlite(folder)).toThrow('was not restored to the end: run the same');
  }
  await restoreTo(file, folder);
  expect(await rowsOf(folder)).toMatchObject({ channels: [{ head: 8 + step }] });
  await expect(restoreTo(file, folder)).rejects.toThrow('is not empty');
});

test('a folder is restored to by one command at a time, and not while a relay uses it', async () => {
  const { file, folder } = await smallBackup();
  const other: unknown[] = [];
  const reach = (reached: string) => {
    if (reached === 'marked') other.push(restoreTo(file, folder).catch((error: unknown) => error));
  };
  await restoreTo(file, folder, { reach });
  expect(await other[0]).toMatchObject({
    message: expect.stringContaining('is in use by a relay'),
  });
  expect(await rowsOf(folder)).toMatchObject({ channels: [{ head: 8 + step }] });
  const empty = databases.folder();
  await using _relay = openSqlite(empty);
  await expect(restoreTo(file, empty, { kind: 'replaced' })).rejects.toThrow('stop it first');
});

test('what is restored is the copy that was checked, whatever becomes of the file', async () => {
  const { file, folder } = await smallBackup();
  const source = await databases.sqlite();
  await furnish(source);
  const another = join(databases.folder(), 'another');
  await backup(source, another);
  const reach = (reached: string) => {
    if (reached === 'marked') copyFileSync(another, file);
  };
  await restoreTo(file, folder, { reach });
  expect(await rowsOf(folder)).toMatchObject({ channels: [{ head: 8 + step }] });
});

test.each([
  ['CREATE TRIGGER evil AFTER UPDATE ON channels BEGIN DELETE FROM channels; END', 'trigger evil'],
  ['CREATE VIEW more AS SELECT 1', 'view more'],
  ['DROP INDEX message_envelopes_by_deadline', 'index message_envelopes_by_deadline'],
])('neither restored nor verified is a backup after %s', async (sql, named) => {
  const { file, folder } = await smallBackup();
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
  await expect(restoreTo(file, folder)).rejects.toThrow(named);
  await expect(verifyBackup(file, { migrations: relayMigrations })).rejects.toThrow(named);
  expect(existsSync(folder)).toBe(false);
});

test('a backup takes over no folder that others can write in, or that has other files', async () => {
  const { source } = await smallBackup();
  const file = join(databases.folder(), 'shared');
  mkdirSync(`${file}.partial`, { mode: 0o700 });
  writeFileSync(join(`${file}.partial`, 'letters.txt'), '');
  await expect(backup(source, file)).rejects.toThrow('was not made by posthouse for you');
  expect(readdirSync(`${file}.partial`)).toEqual(['letters.txt']);
  rmSync(join(`${file}.partial`, 'letters.txt'));
  chmodSync(`${file}.partial`, 0o777);
  await expect(backup(source, file)).rejects.toThrow('was not made by posthouse for you');
  chmodSync(`${file}.partial`, 0o700);
  await backup(source, file);
});

test('a new disk has an empty folder for lost files, which stays', async () => {
  const { file } = await smallBackup();
  const disk = databases.folder();
  mkdirSync(join(disk, 'lost+found'));
  await restoreTo(file, disk);
  expect(existsSync(join(disk, 'lost+found'))).toBe(true);
});

test('02 §11.2: a clock before the backup is refused; a second restore in its second is later', async () => {
  const { file, folder } = await smallBackup();
  await expect(restoreTo(file, folder, { now: madeAt - 1 })).rejects.toThrow('set the clock');
  expect((await restoreTo(file, folder, { now: madeAt })).restoredAt).toBe(madeAt + 1);
});

describe('restored to the data folder of a relay,', () => {
  /** A relay's folder with its keys, a file of the operator, and a database of one more channel. */
  async function used() {
    const { source, file } = await smallBackup();
    const { folder } = source as { folder: string };
    writeFileSync(join(folder, 'registry.json'), '{}');
    await change(source, 'UPDATE channels SET head = 99');
    return { file, folder, key: readFileSync(join(folder, 'keys', 'relay.key'), 'utf8') };
  }

  test('a backup leaves keys and other files, and a database that is there unless told', async () => {
    const { file, folder, key } = await used();
    await expect(restoreTo(file, folder, { kind: 'data' })).rejects.toThrow('give --replace');
    await restoreTo(file, folder, { kind: 'replaced' });
    expect(readFileSync(join(folder, 'keys', 'relay.key'), 'utf8')).toBe(key);
    expect(readFileSync(join(folder, 'registry.json'), 'utf8')).toBe('{}');
    expect(await rowsOf(folder)).toMatchObject({ channels: [{ head: 8 + step }] });
    expect(await rowsOf(join(folder, 'replaced'))).toMatchObject({ channels: [{ head: 99 }] });
    await expect(restoreTo(file, folder, { kind: 'replaced' })).rejects.toThrow('move it away');
    rmSync(join(folder, 'replaced'), { recursive: true });
    rmSync(join(folder, 'relay.sqlite'));
    await restoreTo(file, folder, { kind: 'data' });
    expect(existsSync(join(folder, 'replaced'))).toBe(false);
  });

  test('an interrupted one can be run again, and the database of before is not lost', async () => {
    const { file, folder } = await used();
    for (const last of restoreSteps.slice(0, -1)) {
      const reach = (reached: string) => {
        if (reached === last) throw new Error('interrupted');
      };
      const options = { kind: 'replaced', reach } as const;
      await expect(restoreTo(file, folder, options)).rejects.toThrow('interrupted');
    }
    await restoreTo(file, folder, { kind: 'replaced' });
    expect(await rowsOf(join(folder, 'replaced'))).toMatchObject({ channels: [{ head: 99 }] });
  });

  test('the backup of another relay, or a damaged one, changes nothing', async () => {
    const { file, folder } = await used();
    writeFileSync(join(folder, 'keys', 'relay.key'), 'another');
    await expect(restoreTo(file, folder, { kind: 'replaced' })).rejects.toThrow('is another key');
    writeFileSync(file, readFileSync(file).fill(0x55, 20_000, 60_000));
    await expect(restoreTo(file, folder, { kind: 'replaced' })).rejects.toThrow(/is damaged/);
    expect(await rowsOf(folder)).toMatchObject({ channels: [{ head: 99 }] });
    expect(existsSync(join(folder, 'replaced'))).toBe(false);
  });
});

test('an older database that was put back is upgraded as by a start, with a copy, and can be restored', async () => {
  const folder = databases.folder();
  const kept = join(import.meta.dirname, '../storage/kept');
  const [name] = readdirSync(kept)
    .filter((each) => each.endsWith('.tgz'))
    .sort();
  execFileSync('tar', ['-xzf', join(kept, String(name)), '-C', folder]);
  const said: string[] = [];
  const config = { data: folder, storage: { engine: 'sqlite', url: '', connections: 2 } as const };
  await markPutBack({ ...config, copyBeforeUpgrade: true }, putBack(said));
  expect(said.join()).toContain('note on the upgrade: new accounts now need an invite');
  expect(existsSync(join(folder, `before-schema-${relayMigrations.length}.sqlite`))).toBe(true);
  // Its tables were altered by many versions: they are those of a new database.
  const [file, to] = [join(databases.folder(), 'backup'), join(databases.folder(), 'new')];
  const now = restoredAt;
  await backUp({ config, to: file, withKeys: false, migrations: relayMigrations, now });
  await restoreTo(file, to, { now });
});

test.skipIf(!SmallDisk.isPossible())(
  'a full disk is named, and nothing is left of the backup',
  async () => {
    using disk = SmallDisk.mount();
    if (disk === undefined) throw new Error('no disk');
    const source = await databases.sqlite();
    await furnish(source, async (tx) => {
      for (let id = 0; id < 400; id += 1) await putEnvelope(tx, String(id), 'x'.repeat(50_000));
    });
    const to = join(disk.path, 'backup');
    await expect(backup(source, to)).rejects.toThrow(
      / MB free, and the backup needs about \d\d MB/,
    );
    expect(readdirSync(disk.path)).toEqual([]);
    // Something else fills it up meanwhile.
    const filler = join(disk.path, 'filler');
    await change(source, "DELETE FROM message_envelopes WHERE envelope_id > '1'");
    const progress = ({ step: reached }: ProgressState) => {
      if (reached === 'reading schema_migrations' && !existsSync(filler)) disk.fill();
    };
    const config = { data: (source as { folder: string }).folder, storage: configOf(source) };
    const options = { config, withKeys: false, migrations: relayMigrations };
    await expect(backUp({ ...options, to, now: madeAt, progress })).rejects.toThrow(
      `the disk of ${disk.path} is full`,
    );
    expect(readdirSync(disk.path)).toEqual(['filler']);
  },
);
