/** `posthouse move` as an operator types it. */
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DatabaseAddress } from '../../src/storage/move/move.ts';
import { parseAddress } from '../../src/storage/move/move.ts';
import { posthouseCommand } from '../support/bundled-command.ts';
import {
  change,
  Databases,
  facts,
  furnish,
  isInService,
  move,
  putEnvelope,
  stateOf,
} from './databases.ts';

let databases: Databases;

beforeAll(async () => {
  databases = await Databases.start();
});
afterAll(() => databases[Symbol.asyncDispose]());

interface Ended {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs the command; `kill` says, by what it has written so far, when it gets a SIGTERM. */
async function posthouse(
  args: readonly string[],
  kill: (errors: string) => boolean = () => false,
): Promise<Ended> {
  const child = spawn(process.execPath, [posthouseCommand, 'move', ...args]);
  let [output, errors, killed] = ['', '', false];
  child.stdout.on('data', (data) => {
    output += data;
  });
  child.stderr.on('data', (data) => {
    errors += data;
    if (!killed && kill(errors)) killed = child.kill('SIGTERM');
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  expect(output + errors).not.toContain('posthouse:posthouse');
  return { code, output, errors };
}

/** Milliseconds for a test that runs several commands next to those of others on a busy machine. */
const patience = 180_000;

const typed = (address: DatabaseAddress) =>
  address.engine === 'sqlite' ? address.name : address.url;

describe.concurrent('posthouse move', { timeout: patience }, () => {
  test('moves, shows how far it is, and what it compared; the second time nothing is left', async () => {
    const [from, to] = [await databases.sqlite(), await databases.postgres()];
    await furnish(from);
    const args = ['--from', typed(from), '--to', typed(to)];
    const moved = await posthouse(args);
    expect(moved.code).toBe(0);
    expect(moved.output).toMatch(/^table +rows +SHA-256\n/);
    expect(moved.output).toMatch(/^message_envelopes +2 +[0-9a-f]{64}$/m);
    expect(moved.output).toContain(`\nmoved: ${from.name} -> ${to.name}\n`);
    expect(moved.output).toContain(`The relay ${facts.relay} starts on ${to.name} now`);
    expect(moved.output).toContain(`keys/ of ${from.name.slice('sqlite:'.length)}`);
    expect(moved.errors.match(/^copying message_envelopes 2 of 2$/gm)).toHaveLength(1);
    expect(moved.errors.match(/^checking message_envelopes 2 of 2$/gm)).toHaveLength(1);
    const again = await posthouse(args);
    expect(again.code).toBe(0);
    expect(again.output).toMatch(/^moved before: /);
  });

  test('back again, the keys are said to belong into the folder', async () => {
    const [from, to] = [await databases.postgres(), await databases.sqlite()];
    await furnish(from);
    const { code, output } = await posthouse([
      '--from',
      `postgres:${typed(from)}`,
      '--to',
      typed(to),
    ]);
    expect(code).toBe(0);
    expect(output).toContain(`it needs them in ${to.name.slice('sqlite:'.length)}/keys.`);
  });

  test('what differs is shown for both ends, with exit code 1', async () => {
    const [from, to] = [await databases.sqlite(), await databases.sqlite()];
    await furnish(from);
    const stop = () => {
      throw new Error('enough');
    };
    await expect(move(from, to, { progress: stop })).rejects.toThrow('enough');
    await change(to, "INSERT INTO timeline_heads (account, head) VALUES ('zoe', 1)");
    const { code, output } = await posthouse(['--from', typed(from), '--to', typed(to)]);
    expect(code).toBe(1);
    expect(output).toMatch(/^timeline_heads +1 +[0-9a-f]{64} {2}source, differs from$/m);
    expect(output).toMatch(/^timeline_heads +1 +[0-9a-f]{64} {2}target$/m);
    expect(output).toContain('\nnot moved: ');
    expect(await isInService(from)).toBe(false);
    expect(await isInService(to)).toBe(false);
    const given = await posthouse(['--abandon', '--from', typed(from)]);
    expect(given.code).toBe(0);
    expect(given.output).toContain(`given up: ${from.name} is the relay's database, as before`);
    expect(given.output).toContain(`${to.name} holds an unfinished copy`);
    expect(await isInService(from)).toBe(true);
  });

  test('SIGTERM stops it between two portions, with exit code 1', async () => {
    const [from, to] = [await databases.sqlite(), await databases.postgres()];
    await furnish(from, async (tx) => {
      for (let count = 0; count < 15_000; count += 1) await putEnvelope(tx, `${count}`, 'text');
    });
    const args = ['--from', typed(from), '--to', typed(to)];
    const stopped = await posthouse(args, (errors) => errors.includes('copying message_envelopes'));
    expect(stopped.code).toBe(1);
    expect(stopped.errors).toContain('stopped: run the same command again to continue');
    expect([await stateOf(from), await stateOf(to)]).toEqual(['moving', 'arriving']);
    expect((await posthouse(args)).code).toBe(0);
  });

  test('a refusal is one sentence, with exit code 1', async () => {
    const [from, to] = [await databases.sqlite(), await databases.sqlite()];
    await furnish(from);
    await furnish(to);
    const { code, errors } = await posthouse(['--from', typed(from), '--to', typed(to)]);
    expect(code).toBe(1);
    expect(errors).toBe(
      `${to.name}: has the state of a relay already; a move needs an empty database\n`,
    );
  });

  test('a server that is missing, or refuses the login, is named without its password', async () => {
    const from = await databases.sqlite();
    await furnish(from);
    const away = 'postgres://relay:hunter2@127.0.0.1:1/relay';
    const { code, errors } = await posthouse(['--from', typed(from), '--to', away]);
    expect(code).toBe(1);
    expect(errors).toBe(
      'postgres://relay@127.0.0.1:1/relay: cannot use PostgreSQL at 127.0.0.1:1/relay: ' +
        'connect ECONNREFUSED 127.0.0.1:1; start the server, or correct host and port in `storage.url`\n',
    );
    expect(await isInService(from)).toBe(true);
  });

  test('a target that is lost for good is named, and its source is as of the move', async () => {
    const [from, to] = [await databases.sqlite(), await databases.sqlite()];
    await furnish(from);
    await move(from, to);
    if (to.engine !== 'sqlite') throw new Error('is SQLite');
    rmSync(to.folder, { recursive: true });
    const args = ['--abandon', '--from', typed(from)];
    const { code, errors } = await posthouse(args);
    expect([code, errors]).toEqual([1, expect.stringContaining('give --to as well')]);
    const { output } = await posthouse([...args, '--lost', typed(to)]);
    expect(output).toContain(`${from.name} is the relay's database again, as of the move`);
    expect(output).toContain(`no relay may ever run on ${to.name}`);
    expect(await isInService(from)).toBe(true);
  });

  test('--help says all of it', async () => {
    const { code, output } = await posthouse(['--help']);
    expect(code).toBe(0);
    for (const word of [
      '--from',
      '--to',
      '--replace',
      '--abandon',
      '--lost',
      'keys/',
      'PGPASSWORD',
    ]) {
      expect(output).toContain(word);
    }
  });

  test.each([
    [['--to', 'sqlite:/a'], "required option '--from <database>' not specified"],
    [['--from', 'sqlite:/a'], '--to is needed'],
    [['--from', 'sqlite:/a', '--to', 'sqlite:/b/../a'], '--from and --to are the same database'],
    [['--from', '/var/lib/posthouse', '--to', 'sqlite:/a'], 'found "/var/lib/posthouse"'],
    [
      ['--from', 'sqlite:', '--to', 'sqlite:/a'],
      'sqlite: needs the data folder after it, as in sqlite:/var/lib/posthouse',
    ],
    [['--from', 'sqlite:/a', '--to', 'mysql://u:hunter2@h/d'], 'expected sqlite:DIR or postgres:'],
    [['--from', 'sqlite:/a', '--to', 'postgres://u:hun ter2@h/d'], 'found something else'],
    [['--from', 'sqlite:/a', '--to', 'postgres:u:hunter2@h/d'], 'found something else'],
    [
      ['--from', 'sqlite:/a', '--to', 'host=h password=hunter2 user=u'],
      '"host=h password=[secret]',
    ],
    [['--from', 'sqlite:/a', '--to', 'postgres://u:12/hunter2@h/d'], 'in its password as %2F'],
    [['--from', 'sqlite:/a', '--to', 'postgres://u:12#hunter2@h/d'], 'in its password as %2F'],
    [['--from', 'sqlite:/a', '--abandon', '--replace'], 'leave --replace out'],
    [['--from', 'sqlite:/a', '--lost', 'sqlite:/b'], '--lost needs --abandon: add it'],
    [
      ['--from', 'sqlite:/a', '--to', 'sqlite:/b', '--abandon', '--lost', 'sqlite:/b'],
      'give either --to or --lost',
    ],
    [['--from', 'sqlite:/a', '--to', 'sqlite:/b', '--force'], "unknown option '--force'"],
    [['--from', 'sqlite:/a', '--to', 'sqlite:/b', 'more'], 'too many arguments'],
  ])('%j is wrong, with exit code 2', async (args, message) => {
    const { code, errors } = await posthouse(args);
    expect(code).toBe(2);
    expect(errors).toContain(message);
    expect(errors).not.toContain('ter2');
  });
});

test('the name of a database has no password, whatever that is made of', () => {
  const names = [
    'postgres://relay:pass@host/db',
    'postgres://relay:p"a%20ss@host/db',
    'postgres://relay:p:a$s%40@host/db',
    'postgres://relay@host/db?password=pass&sslmode=require',
    'postgresql://relay:pass@host:5432/db?sslmode=require',
    'postgres://relay@host/db?sslmode=require',
  ].map((text) => parseAddress(text).name);
  expect(names.filter((name) => /pa|ss@|pass|%40|"/.test(name))).toEqual([]);
});
