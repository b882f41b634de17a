/** What `posthouse serve` ends with if it cannot start: what is wrong and what to do, in one sentence. */
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { posthouseCommand } from '../support/bundled-command.ts';
import { bareEnvironment } from '../support/command.ts';
import { temporaryFolder } from '../support/folder.ts';
import { freePort } from '../support/ports.ts';
import { SmallDisk } from '../support/small-disk.ts';

/** The folder of all rows; in `made`, a data folder in which a relay has run. */
let folder: ReturnType<typeof temporaryFolder>;
let made: string;

interface Start {
  readonly args?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** A command that starts the program with fewer rights. */
  readonly through?: readonly string[];
}

async function serve({ args = [], environment = {}, through = [] }: Start) {
  const [program = '', ...rest] = [
    ...through,
    process.execPath,
    posthouseCommand,
    'serve',
    ...args,
  ];
  const env = { ...bareEnvironment(), ...environment };
  return await new Promise<{ code: unknown; errors: string }>((resolve) => {
    // A start that hangs is killed, and fails the row by its exit status.
    execFile(program, rest, { env, timeout: 30_000, killSignal: 'SIGKILL' }, (error, _, errors) =>
      resolve({ code: error?.code ?? error?.signal ?? 0, errors }),
    );
  });
}

/** Copies the data folder, to break the copy. */
let copies = 0;
function copy(): string {
  copies += 1;
  const path = join(folder.path, `copy-${copies}`);
  cpSync(made, path, { recursive: true });
  for (const one of [path, join(path, 'keys')]) chmodSync(one, 0o700);
  return path;
}

const dev = (data: string) => [
  '--dev',
  '--data',
  data,
  '--listen',
  '127.0.0.1:0',
  '--log',
  'error',
];

function write(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

beforeAll(async () => {
  folder = temporaryFolder();
  made = join(folder.path, 'made');
  // A start that fails late leaves keys, database, registry file and certificates.
  await serve({ args: [...dev(made), '--listen', '203.0.113.1:1'] });
  expect(existsSync(join(made, 'tls/server.key'))).toBe(true);
});
afterAll(() => folder[Symbol.dispose]());

interface Row {
  readonly fault: string;
  /** Makes the fault; what the message must have in addition to what `words` say, and the start. */
  readonly start: () => Promise<Start & { readonly names: string }> | (Start & { names: string });
  readonly words: string;
  /** 2: the configuration, 1: anything else. */
  readonly code: 1 | 2;
  readonly isPossible?: () => boolean;
}

const rows: readonly Row[] = [
  {
    fault: 'a configuration that is not JSON',
    start: () => {
      const config = write('relay.json', '{ "data": ');
      return { args: ['--config', config], names: config };
    },
    words: 'is not JSON: Unexpected end of JSON input; correct the file there',
    code: 2,
  },
  {
    fault: 'a configuration file that is not there',
    start: () => {
      const config = join(folder.path, 'none.json');
      return { args: ['--config', config], names: config };
    },
    words: 'there is no such file: correct the path',
    code: 2,
  },
  {
    fault: 'a number with a unit',
    start: () => ({
      args: dev(made),
      environment: { POSTHOUSE_LIMITS_DRAIN_TIME: '5s' },
      names: 'limits.drainTime',
    }),
    words:
      'expected an integer from 0 to 600000 (milliseconds), found "5s" (environment POSTHOUSE_LIMITS_DRAIN_TIME)',
    code: 2,
  },
  {
    fault: 'a registry that is not JSON',
    start: () => {
      const data = copy();
      const registry = join(data, 'registry.json');
      writeFileSync(registry, 'relays: none');
      return { args: dev(data), names: registry };
    },
    words: 'correct the registry file, or make a new one with `posthouse registry add`',
    code: 1,
  },
  {
    fault: 'a data folder on a read-only file system',
    isPossible: SmallDisk.isPossible,
    start: () => {
      const disk = SmallDisk.mount() as SmallDisk;
      undo.use(disk);
      execFileSync('mount', ['-o', 'remount,ro', disk.path]);
      return { args: dev(join(disk.path, 'data')), names: join(disk.path, 'data') };
    },
    words: 'its file system is read-only: mount it writable, or choose a folder on another one',
    code: 1,
  },
  {
    fault: 'a data folder where none can be made',
    start: () => ({ args: dev('/proc/sys/posthouse/data'), names: '/proc/sys/posthouse' }),
    words: 'choose another place',
    code: 1,
  },
  {
    fault: 'a file in the place of the data folder',
    start: () => {
      const file = write('file', '');
      return { args: dev(file), names: file };
    },
    words: 'a file has the place of a folder: correct the path',
    code: 1,
  },
  {
    fault: 'a database that is malformed',
    start: () => {
      const data = copy();
      writeFileSync(join(data, 'relay.sqlite'), 'x'.repeat(8_192));
      return { args: dev(data), names: join(data, 'relay.sqlite') };
    },
    words: 'put a copy of the data folder in its place',
    code: 1,
  },
  {
    fault: 'a database of a newer relay',
    start: () => {
      const data = copy();
      using database = new DatabaseSync(join(data, 'relay.sqlite'));
      database.exec(`INSERT INTO schema_migrations VALUES (9999, 'later', '', 0)`);
      return { args: dev(data), names: 'migration 9999 (later)' };
    },
    words: 'Run the version of the relay that made it, or a later one',
    code: 1,
  },
  {
    fault: 'a data folder in which all users can write',
    start: () => {
      const data = copy();
      chmodSync(data, 0o777);
      return { args: dev(data), names: data };
    },
    words: 'every user of this machine can write in it (mode 0777): run `chmod 700',
    code: 1,
  },
  {
    fault: 'a key that others can read',
    start: () => {
      const data = copy();
      chmodSync(join(data, 'keys/peer.key'), 0o640);
      return { args: dev(data), names: join(data, 'keys/peer.key') };
    },
    words:
      'expected mode 0600, found 0640; others may have read the key: replace it if so, and run chmod 600',
    code: 1,
  },
  {
    fault: 'a certificate that does not fit its key',
    start: () => {
      const [certificate, key] = [join(made, 'tls/ca.pem'), join(made, 'tls/server.key')];
      const environment = {
        ...{ POSTHOUSE_TLS_MODE: 'files', POSTHOUSE_TLS_CERTIFICATE: certificate },
        POSTHOUSE_TLS_KEY: key,
      };
      return { args: dev(copy()), environment, names: key };
    },
    words: 'let tls.key and tls.certificate name a pair',
    code: 1,
  },
  {
    fault: 'a port that another process has',
    start: async () => {
      const other = createServer();
      undo.defer(() => void other.close());
      const port = await freePort();
      await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve));
      return {
        args: [...dev(copy()), '--listen', `127.0.0.1:${port}`],
        names: `127.0.0.1:${port}`,
      };
    },
    words: 'another process listens there: stop it, or choose another port',
    code: 1,
  },
  {
    fault: 'port 443 without the right to it',
    isPossible: () => Number(readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start')) > 443,
    start: () => ({
      through: process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-net_bind_service'] : [],
      args: [...dev(copy()), '--listen', '127.0.0.1:443'],
      names: 'listen: 127.0.0.1:443',
    }),
    words: 'choose a higher port behind a proxy, or give the service CAP_NET_BIND_SERVICE',
    code: 1,
  },
];

let undo: AsyncDisposableStack;

test.for(rows)('a start with $fault says what it is and what to do', async (row, context) => {
  const { start, words, code, isPossible = () => true } = row;
  if (!isPossible()) context.skip('this machine cannot have the fault');
  undo = new AsyncDisposableStack();
  await using _undone = undo;
  const { names, ...command } = await start();
  const { code: status, errors } = await serve(command);
  const told = errors.trimEnd().split('\n').at(-1) ?? '';
  expect(told).toContain(names);
  expect(told).toContain(words);
  // Neither a stack nor a code of the system.
  expect(errors).not.toMatch(/^ +at |\bE[A-Z]{4,}\b/m);
  expect(status).toBe(code);
});

test('a data folder that others can enter is a warning in the log with the cure', async () => {
  const data = copy();
  chmodSync(data, 0o755);
  const { errors } = await serve({
    args: [...dev(data), '--log', 'warn', '--listen', '203.0.113.1:1'],
  });
  const lines = errors.split('\n').filter((line) => line.startsWith('{'));
  expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
    expect.objectContaining({
      folder: data,
      mode: '0755',
      msg: expect.stringContaining('chmod 700'),
    }),
  );
});
