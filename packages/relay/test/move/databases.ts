/** What the tests of `posthouse move` share: databases of both engines, with all kinds of rows. */
import type { RelayConfig } from '../../src/config/index.ts';
import { relayMigrations, restoredStatements } from '../../src/modules.ts';
import { bindDatabase } from '../../src/storage/identity.ts';
import { migrate } from '../../src/storage/migrations.ts';
import { type AbandonOptions, abandonMove } from '../../src/storage/move/abandon.ts';
import { checkInService, findMark, type MoveState } from '../../src/storage/move/mark.ts';
import {
  type DatabaseAddress,
  type MoveOptions,
  type MoveResult,
  moveStorage,
  parseAddress,
} from '../../src/storage/move/move.ts';
import { openPostgres } from '../../src/storage/postgres/storage.ts';
import { openSqlite } from '../../src/storage/sqlite/storage.ts';
import type { Migration, Storage, Writer } from '../../src/storage/types.ts';
import { dump } from '../support/engine.ts';
import { temporaryFolder } from '../support/folder.ts';
import { TestPostgres } from '../support/postgres.ts';

/** Databases of one test file, all gone when it is over. */
export class Databases implements AsyncDisposable {
  readonly server: TestPostgres;
  readonly #folders = new DisposableStack();

  private constructor(server: TestPostgres) {
    this.server = server;
  }

  static async start(): Promise<Databases> {
    return new Databases(await TestPostgres.start({ durable: false }));
  }

  /** A folder without a database. */
  folder(): string {
    return this.#folders.use(temporaryFolder()).path;
  }

  async sqlite(): Promise<DatabaseAddress> {
    return parseAddress(`sqlite:${this.folder()}`);
  }

  async postgres(): Promise<DatabaseAddress> {
    return parseAddress(await this.server.createDatabase());
  }

  async empty(engine: 'sqlite' | 'postgres'): Promise<DatabaseAddress> {
    return engine === 'sqlite' ? await this.sqlite() : await this.postgres();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    this.#folders.dispose();
  }
}

/** Opens it as a relay without NATS does, or as a move does. */
export async function open(
  address: DatabaseAddress,
  lockMode: 'alone' | 'exclusive' = 'exclusive',
): Promise<Storage> {
  if (address.engine === 'sqlite') return openSqlite(address.folder);
  return await openPostgres({ url: address.url, connections: 2, lockMode: lockMode });
}

/** What a relay's configuration says of it. */
export function configOf(address: DatabaseAddress): RelayConfig['storage'] {
  const { engine } = address;
  return { engine, url: address.engine === 'postgres' ? address.url : '', connections: 4 };
}

/** The facts of the relay whose database {@link furnish} makes. */
export const facts = { network: 'neo:1:0x00', service: 'svc', relay: '0xaa' };

/** Makes a relay's database, with what `work` puts into it. */
export async function furnish(
  address: DatabaseAddress,
  work: (tx: Writer) => Promise<unknown> = fewRows,
  {
    of = facts,
    migrations = relayMigrations,
  }: {
    readonly of?: Readonly<Record<string, string>>;
    readonly migrations?: readonly Migration[];
  } = {},
): Promise<void> {
  await using storage = await open(address);
  await migrate(storage, migrations, 1_750_000_000);
  await bindDatabase(storage, of);
  await storage.write('relay', work);
}

export async function change(address: DatabaseAddress, sql: string): Promise<void> {
  await using storage = await open(address);
  await storage.write('relay', (tx) => tx.run(sql));
}

/** Two envelopes and a head. */
export async function fewRows(tx: Writer): Promise<void> {
  await putEnvelope(tx, 'a', 'hello');
  await putEnvelope(tx, 'b', 'world');
  await tx.run("INSERT INTO timeline_heads (account, head) VALUES ('ann', 1)");
}

export async function putEnvelope(
  tx: Writer,
  id: string,
  text: string,
  keepUntil = 5,
): Promise<void> {
  await tx.run(
    'INSERT INTO message_envelopes (envelope_id, keep_until, envelope) VALUES (?, ?, ?)',
    id,
    keepUntil,
    text,
  );
}

/** Moves with the relay's migrations. */
export async function move(
  from: DatabaseAddress,
  to: DatabaseAddress,
  options: Partial<MoveOptions> = {},
): Promise<MoveResult> {
  return await moveStorage({ from, to, migrations: relayMigrations, ...options });
}

/** Gives a move up, with the relay's migrations. */
export async function abandon(
  options: Omit<AbandonOptions, 'migrations' | 'restored'>,
): Promise<string> {
  return await abandonMove({
    ...options,
    migrations: relayMigrations,
    restored: restoredStatements,
  });
}

/** All that is in a database, but the mark of the move. */
export async function contents(address: DatabaseAddress): Promise<Record<string, unknown[]>> {
  await using storage = await open(address);
  const { relay_move: _mark, ...rest } = await dump(storage);
  return rest;
}

export async function stateOf(address: DatabaseAddress): Promise<MoveState | undefined> {
  await using storage = await open(address);
  return (await findMark(storage))?.state;
}

/** Whether a relay of these facts could start on it, now or after its migrations. */
export async function isInService(address: DatabaseAddress): Promise<boolean> {
  await using storage = await open(address);
  return await checkInService(storage).then(
    () => true,
    () => false,
  );
}
