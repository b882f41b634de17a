import { chmodSync, chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { defaultTimeouts } from '../../src/storage/postgres/timeouts.ts';
import type { Migration } from '../../src/storage/types.ts';
import { devCertificate } from '../../src/tls/dev-ca.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { temporaryFolder } from '../support/folder.ts';
import { freePort } from '../support/ports.ts';
import { TestPostgres } from '../support/postgres.ts';
import { again, ask, counters, impatient, open, Told } from '../support/postgres-engine.ts';

let server: TestPostgres;
let url: string;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: false });
});
afterAll(() => server[Symbol.asyncDispose]());
beforeEach(async () => {
  url = await server.createDatabase();
});

/** The URL with something else in it. */
function changed(change: (url: URL) => void): string {
  const other = new URL(url);
  change(other);
  return other.href;
}

/** What the start fails with; no word of it or its causes is the password. */
async function refusal(
  to: string,
  { connect } = { connect: defaultTimeouts.connect },
): Promise<string> {
  const password = 'posthouse-secret';
  // Only for a server that is not there, it does not wait long.
  const error = await open(to, { timeouts: { start: 200, lockRetry: 20, connect } }).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(Error);
  expect(inspect(error, { depth: Number.POSITIVE_INFINITY })).not.toContain(password);
  expect(JSON.stringify(error)).not.toContain(password);
  return (error as Error).message;
}

describe('a server that is not there', () => {
  test('a wrong password', async () => {
    const to = changed((wrong) => {
      wrong.password = 'posthouse-secret';
    });
    expect(await refusal(to)).toMatch(
      /^cannot use PostgreSQL at 127\.0\.0\.1:\d+\/test_\d+: password authentication failed for user "posthouse"; correct user and password in `storage\.url`$/,
    );
  });

  test('a missing database', async () => {
    const to = changed((wrong) => {
      wrong.pathname = '/none';
    });
    expect(await refusal(to)).toMatch(
      /: database "none" does not exist; create it with `createdb --encoding UTF8/,
    );
  });

  test('a host that refuses', async () => {
    const port = await freePort();
    const to = `postgres://posthouse:posthouse-secret@127.0.0.1:${port}/none`;
    expect(await refusal(to)).toBe(
      `cannot use PostgreSQL at 127.0.0.1:${port}/none: connect ECONNREFUSED 127.0.0.1:${port}; ` +
        'start the server, or correct host and port in `storage.url`',
    );
  });

  test('a name with several addresses, none of which answers', async () => {
    const port = await freePort();
    const message = await refusal(`postgres://a:posthouse-secret@localhost:${port}/none`);
    expect(message).toContain(`connect ECONNREFUSED 127.0.0.1:${port}`);
  });

  test('a host name that does not exist', async () => {
    const message = await refusal('postgres://a:posthouse-secret@no-such-host.invalid/none');
    expect(message).toMatch(
      /at no-such-host\.invalid\/none: getaddrinfo E.*; start the server, or correct host/,
    );
  });

  test('one that accepts and never answers', async () => {
    await using proxy = await CuttingProxy.start(url);
    proxy.fallSilent();
    const to = new URL(proxy.url);
    to.password = 'posthouse-secret';
    expect(await refusal(to.href, { connect: 250 })).toMatch(
      /: no answer in time; start the server, or correct host and port in `storage\.url`$/,
    );
  });

  test('a URL that is none', async () => {
    expect(await refusal('postgres://a:posthouse-secret@:x:y/none')).toMatch(
      /^cannot use PostgreSQL: /,
    );
  });
});

async function isAnswering(at: string): Promise<boolean> {
  return await ask(at, 'SELECT 1 AS one').then(
    () => true,
    () => false,
  );
}

describe('an unusable server', () => {
  test.each(['LATIN1', 'SQL_ASCII'])('a database in %s', async (encoding) => {
    const name = `in_${encoding.toLowerCase()}`;
    await ask(
      url,
      `CREATE DATABASE ${name} ENCODING '${encoding}' LOCALE_PROVIDER libc LOCALE 'C'
        TEMPLATE template0`,
    );
    const to = changed((other) => {
      other.pathname = `/${name}`;
    });
    expect(await refusal(to)).toMatch(
      new RegExp(
        `: the database has the encoding ${encoding}, UTF8 is needed: create one with .createdb --encoding UTF8 --template template0.$`,
      ),
    );
  });

  test('a standby', async () => {
    await using standby = await TestPostgres.start({ durable: false });
    await standby.stop();
    writeFileSync(join(standby.folder, 'standby.signal'), '');
    // It never says that it is ready for more than reading.
    standby.start().catch(() => {});
    while (!(await isAnswering(standby.url('postgres'))));
    expect(await refusal(standby.url('postgres'))).toMatch(
      /: the server is a standby and accepts no writes: connect to the primary$/,
    );
  });

  test('a user who may make no table', async () => {
    await ask(url, `CREATE ROLE reader LOGIN PASSWORD 'posthouse-secret'`);
    const to = changed((other) => {
      other.username = 'reader';
      other.password = 'posthouse-secret';
    });
    expect(await refusal(to)).toMatch(
      /: permission denied for schema public; make the user the owner of the database$/,
    );
  });
});

describe('the settings of a connection', () => {
  test('arrive, whatever the database and the URL are set up for', async () => {
    const name = new URL(url).pathname.slice(1);
    const wrong = {
      synchronous_commit: 'off',
      lock_timeout: '1h',
      statement_timeout: '1h',
      idle_in_transaction_session_timeout: '0',
      client_encoding: 'LATIN1',
    };
    for (const [setting, value] of Object.entries(wrong)) {
      await ask(url, `ALTER DATABASE ${name} SET ${setting} = '${value}'`);
    }
    const to = changed((other) => {
      other.searchParams.set('options', '-c lock_timeout=2h -c synchronous_commit=off');
      other.searchParams.set('statement_timeout', '7200000');
    });
    await using storage = await open(to);
    const shown = await storage.read(async (tx) => {
      const settings = [...Object.keys(wrong), 'application_name', 'tcp_keepalives_idle', 'jit'];
      const found: unknown[] = [];
      for (const setting of settings) {
        found.push(await tx.get(`SELECT current_setting('${setting}') AS value`));
      }
      return found.map((row) => (row as { value: string }).value);
    });
    expect(shown).toEqual(['on', '10s', '30s', '10s', 'UTF8', 'posthouse', '10', 'off']);
  });

  test('synchronous_commit is left where it promises more or something else', async () => {
    const name = new URL(url).pathname.slice(1);
    await ask(url, `ALTER DATABASE ${name} SET synchronous_commit = 'remote_apply'`);
    await using storage = await open(url);
    expect(await storage.read((tx) => tx.get('SHOW synchronous_commit'))).toEqual({
      synchronous_commit: 'remote_apply',
    });
  });

  test('free the locks of a process that stands still', async () => {
    await using storage = await open(url);
    await counters.make(storage);
    const still = await open(url, { timeouts: { idleInTransaction: 50 } });
    const begun = Promise.withResolvers<void>();
    void still.write('account:a', async (tx) => {
      await counters.add(tx, 'a');
      begun.resolve();
      await new Promise(() => {});
    });
    await begun.promise;
    expect(await storage.write('account:a', (tx) => counters.add(tx, 'a'))).toBe(1);
  });

  test('end a statement that takes too long, and the call with it', async () => {
    await using storage = await again(() => open(url, { timeouts: { statement: 50, call: 300 } }));
    await expect(storage.read((tx) => tx.get('SELECT pg_sleep(3600)'))).rejects.toMatchObject({
      code: 'temporarily_unavailable',
      message: 'storage is too busy',
    });
  });

  test('a server that never answers ends the call', async () => {
    await using proxy = await CuttingProxy.start(url);
    const timeouts = { ...impatient, answer: 100 };
    let told = new Told();
    await using storage = await again(() => {
      told = new Told();
      return open(proxy.url, { timeouts, observer: told });
    });
    proxy.fallSilent();
    await expect(storage.read((tx) => tx.get('SELECT 1 AS one'))).rejects.toMatchObject({
      code: 'temporarily_unavailable',
      message: 'storage cannot be reached',
    });
    await expect(storage.write('account:a', async () => {})).rejects.toMatchObject({
      code: 'temporarily_unavailable',
    });
    expect(told.events).toEqual(['lost']);
    proxy.speak();
    const one = await again(() => storage.read((tx) => tx.get('SELECT 1 AS one')));
    expect(one).toEqual({ one: 1 });
    expect(told.events).toEqual(['lost', 'restored']);
  });
});

describe('TLS', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let authority: string;

  beforeAll(async () => {
    folder = temporaryFolder();
    const made = await devCertificate(folder.path, ['127.0.0.1'], systemClock.now());
    authority = made.authorityFile;
    const owner = statSync(server.folder);
    for (const [name, text] of [
      ['server.crt', made.cert],
      ['server.key', made.key],
    ] as const) {
      const path = join(server.folder, name);
      writeFileSync(path, text);
      chmodSync(path, 0o600);
      chownSync(path, owner.uid, owner.gid);
    }
    await ask(server.url('postgres'), 'ALTER SYSTEM SET ssl = on');
    await server.restart();
    return async () => {
      folder[Symbol.dispose]();
      await ask(server.url('postgres'), 'ALTER SYSTEM RESET ssl');
      await server.restart();
    };
  });

  const verified = (file?: string) =>
    changed((other) => {
      other.password = 'posthouse';
      other.searchParams.set('sslmode', 'verify-full');
      if (file !== undefined) other.searchParams.set('sslrootcert', file);
    });

  test('sslmode=verify-full with the authority’s certificate', async () => {
    await using storage = await open(verified(authority));
    const row = await storage.read((tx) =>
      tx.get('SELECT ssl, version FROM pg_stat_ssl WHERE pid = pg_backend_pid()'),
    );
    expect(row).toEqual({ ssl: 1, version: 'TLSv1.3' });
  });

  test('an authority that is not trusted', async () => {
    expect(await refusal(verified())).toMatch(
      /: TLS failed: .*certificate.*; correct `sslmode` and `sslrootcert` in `storage\.url`/,
    );
  });

  test('a certificate of another host', async () => {
    const to = new URL(verified(authority));
    to.hostname = 'localhost';
    expect(await refusal(to.href)).toMatch(
      /: TLS failed: Hostname\/IP does not match certificate's altnames/,
    );
  });

  test('a file that is not there', async () => {
    expect(await refusal(verified('/no/such/file.pem'))).toContain('/no/such/file.pem');
  });

  test('a server that has none', async () => {
    await using plain = await TestPostgres.start({ durable: false });
    const to = `${plain.url('postgres')}?sslmode=verify-full`;
    expect(await refusal(to)).toMatch(
      /: TLS failed: The server does not support SSL connections; correct `sslmode`/,
    );
  });
});

test('a password that is changed later: what is told contains neither', async () => {
  const told = new Told();
  await using storage = await open(url, { observer: told });
  await ask(url, `CREATE ROLE operator SUPERUSER LOGIN PASSWORD 'before'`);
  const to = changed((other) => {
    other.username = 'operator';
    other.password = 'before';
  });
  await using other = await open(to, { observer: told, timeouts: { call: 300 } });
  await ask(url, `ALTER ROLE operator PASSWORD 'after'`);
  await ask(
    url,
    `SELECT count(pg_terminate_backend(pid))::int AS count FROM pg_stat_activity
      WHERE usename = 'operator'`,
  );
  const failure = await other.read((tx) => tx.get('SELECT 1 AS one')).catch((error) => error);
  expect(failure).toMatchObject({ code: 'temporarily_unavailable' });
  expect(told.events).toContain('lost');
  const shown = inspect([failure, told.errors], { depth: Number.POSITIVE_INFINITY });
  expect(shown).toContain('password authentication failed');
  expect(shown).not.toContain('before');
  expect(await storage.read((tx) => tx.get('SELECT 1 AS one'))).toEqual({ one: 1 });
});

test('a relay waits for a server that starts at the same time', async () => {
  await using own = await TestPostgres.start({ durable: false });
  await own.stop();
  const opening = open(own.url('postgres'), { timeouts: { start: 30_000 } });
  // It fails if it does not wait; the rejection is handled once the server runs.
  opening.catch(() => {});
  await own.start();
  await using storage = await opening;
  expect(storage.hasLock).toBe(true);
});

describe('migrations that take longer than any other statement', () => {
  const slow: Migration = { id: 1, name: 'slow', statements: ['SELECT pg_sleep(1)'] };
  const waits = { call: 1_000, statement: 700, answer: 900, definition: 20_000 };

  test('are awaited by the process that runs them and by those that start meanwhile', async () => {
    const start = () => again(() => open(url, { timeouts: waits }));
    const two = [await start(), await start()];
    const applied = await Promise.all(two.map((storage) => migrate(storage, [slow], 1)));
    expect(applied.sort()).toEqual([[], [1]]);
    // Nothing else gets their time.
    for (const storage of two) {
      const sleep = storage.write('relay', (tx) => tx.all('SELECT pg_sleep(1)'));
      await expect(sleep).rejects.toMatchObject({ code: 'temporarily_unavailable' });
      await storage[Symbol.asyncDispose]();
    }
  });

  test('end some time, too', async () => {
    const timeouts = { ...waits, definition: 200 };
    await using storage = await again(() => open(url, { timeouts }));
    await expect(migrate(storage, [slow], 1)).rejects.toMatchObject({
      code: 'temporarily_unavailable',
    });
  });
});
