/** `posthouse backup`, `restore` and `restored` as an operator types them. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { Relay } from '../../src/index.ts';
import { killAll, posthouse } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';

afterEach(killAll);

async function run(...args: string[]) {
  const command = posthouse(args);
  const code = await command.ended;
  return { code, output: command.output.text, errors: command.output.errors };
}

const start = (data: string) =>
  Relay.start({ data, dev: true, listen: '127.0.0.1:0' }, { log: pino({ level: 'silent' }) });

test('a running relay is backed up with its keys, restored, and marked once more', async () => {
  using folder = temporaryFolder();
  const [data, file, copy] = ['data', 'backup', 'copy'].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(data);
  await using relay = await start(data);
  const made = await run('backup', '--data', data, '--to', file, '--with-keys');
  expect(made).toMatchObject({
    code: 0,
    output: expect.stringContaining(`backup made: ${file}\n`),
  });
  expect(made.errors).toContain('reading schema_migrations');
  // Of a new relay few tables have rows: no line says that there are none.
  expect(made.errors).not.toContain('0 of 0');
  expect(made.output).toMatch(/, [0-9]+ rows in [0-9] tables\n/);
  const verified = await run('verify', '--from', file);
  expect(verified).toMatchObject({ code: 0 });
  expect(verified.output).not.toMatch(/^ +0 /m);
  expect(verified.output).toMatch(/^read [1-9][0-9]* rows, checked [0-9]+ objects$/m);
  const again = await run('backup', '--data', data, '--to', file);
  expect(again).toMatchObject({ code: 1, output: '' });
  expect(again.errors).toContain(`${file} exists already: give another name, or remove it`);
  // The relay goes on meanwhile, and holds the folder.
  const early = await run('restored', '--data', data);
  expect(early).toMatchObject({ code: 1, errors: expect.stringContaining('stop it first') });
  const { relayId } = relay;
  await relay[Symbol.asyncDispose]();

  const restored = await run('restore', '--from', file, '--to', copy, '--json');
  expect(restored).toMatchObject({ code: 0, errors: '' });
  const events = restored.output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(events[0]).toMatchObject({ event: 'progress' });
  expect(events.at(-1)).toMatchObject({
    event: 'restored',
    folder: copy,
    relay_id: relayId,
    with_keys: true,
  });
  const restoredAt = events.at(-1).restored_at;
  const marked = await run('restored', '--data', copy, '--json');
  const { restored_at: markedAt } = JSON.parse(marked.output.trim().split('\n').at(-1) ?? '');
  expect(markedAt).toBeGreaterThan(restoredAt);
  const config = join(folder.path, 'relay.json');
  writeFileSync(config, JSON.stringify({ data: copy, dev: true }));
  const into = ['restore', '--from', file, '--config', config];
  const refused = await run(...into);
  expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('give --replace') });
  const replaced = await run(...into, '--replace');
  expect(replaced).toMatchObject({ code: 0, output: expect.stringContaining(`${copy}/replaced`) });
  expect(replaced.output).toMatch(/ as of \S+Z, [1-9][0-9]* rows\n/);
  await using second = await start(copy);
  expect(second.relayId).toBe(relayId);
});

test('an error of a command commands no terminal, whatever the name of the file is', async () => {
  const { code, errors } = await run('verify', '--from', 'file\u001b[2J');
  expect(code).toBe(1);
  expect(errors).toMatch(/file \[2J: there is no such file: check --from\n$/);
});

test('a backup has no name that SQLite or the relay would take for a file of theirs', async () => {
  using folder = temporaryFolder();
  const data = join(folder.path, 'data');
  mkdirSync(data);
  await (await start(data))[Symbol.asyncDispose]();
  for (const name of ['relay.sqlite-journal', 'restoring']) {
    const file = join(data, name);
    const { code, errors } = await run('backup', '--data', data, '--to', file);
    expect(code).toBe(1);
    expect(errors).toContain(`${file} has a name of the relay's own files: give a file elsewhere`);
    expect(existsSync(file)).toBe(false);
  }
  const other = join(data, 'relay.sqlite-of-today');
  expect((await run('backup', '--data', data, '--to', other)).code).toBe(0);
});

test.each([
  ['stopped', 1],
  ['stopped again and again', 20],
])(
  'a backup that is %s leaves nothing, says how to go on, and ends with status 1',
  async (_, most) => {
    using folder = temporaryFolder();
    const [data, file] = [join(folder.path, 'data'), join(folder.path, 'backup')];
    mkdirSync(data);
    await (await start(data))[Symbol.asyncDispose]();
    const database = new DatabaseSync(join(data, 'relay.sqlite'));
    database.exec(`INSERT INTO message_envelopes (envelope_id, keep_until, envelope)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
    SELECT i, 1, 'text' FROM n`);
    database.close();
    const command = posthouse(['backup', '--data', data, '--to', file]);
    await new Promise((begun) => void command.child.stderr?.once('data', begun));
    for (let signals = 0; signals < most && command.child.kill('SIGINT'); signals += 1) {
      await Promise.race([command.ended, new Promise((next) => setTimeout(next))]);
    }
    expect(await command.ended).toBe(1);
    expect(command.output.errors).toContain(
      'stopped: nothing was made; run the same command again\n',
    );
    expect([existsSync(file), existsSync(`${file}.partial`)]).toEqual([false, false]);
  },
);

test.each([
  [['backup'], "required option '--to <file>' not specified"],
  [['backup', '--to', 'x', '--all'], "unknown option '--all'"],
  [['restore', '--from', 'x'], 'give --to with an empty folder, or --config'],
  [['restore', '--from', 'x', '--to', 'y', '--replace'], 'give either --to or --config'],
  [['restored', 'now'], 'too many arguments'],
])('posthouse %j is wrong, with status 2', async (args, message) => {
  const { code, errors } = await run(...args);
  expect(code).toBe(2);
  expect(errors).toContain(message);
});
