/** The two databases of a move: how they are named, and had alone. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isServerUrl, redact, serverUrl } from '../../config/index.ts';
import { isAbsent } from '../postgres/errors.ts';
import { openPostgres } from '../postgres/storage.ts';
import { openSqlite } from '../sqlite/storage.ts';
import type { Storage, StorageFaults } from '../types.ts';

/** A name of a database that is none. */
export class DatabaseAddressError extends Error {
  override readonly name = 'DatabaseAddressError';
}

/** Where a database is. */
export type DatabaseAddress =
  | { readonly engine: 'sqlite'; readonly name: string; readonly folder: string }
  | { readonly engine: 'postgres'; readonly name: string; readonly url: string };

/**
 * Reads `sqlite:DIR`, `postgres:URL`, or a PostgreSQL URL as it is.
 *
 * @returns with a `name` that has no password and is the same for the same text
 * @throws DatabaseAddressError
 * @example
 * parseAddress('sqlite:/var/lib/posthouse');
 * parseAddress('postgres://relay:secret@db.example/relay').name; // postgres://relay@db.example/relay
 */
export function parseAddress(text: string): DatabaseAddress {
  const [, engine, rest = ''] = /^(sqlite|postgres):(?!\/\/)(.*)$/s.exec(text) ?? [];
  if (engine === 'sqlite') {
    if (rest === '') throw new DatabaseAddressError('sqlite: needs the data folder behind it');
    const folder = resolve(rest);
    return { engine, name: `sqlite:${folder}`, folder };
  }
  const url = engine === 'postgres' ? rest : text;
  if (!/^postgres(?:ql)?:\/\/\S+$/.test(url)) {
    const expected = 'sqlite:DIR or postgres://user:password@host:port/database';
    // Whatever has an @ may have a password before it.
    const found = text.includes('@') ? 'something else' : redact(text);
    throw new DatabaseAddressError(`expected ${expected}, found ${found}`);
  }
  if (!isServerUrl(url))
    throw new DatabaseAddressError(`expected ${serverUrl}, found something else`);
  return { engine: 'postgres', name: withoutPassword(url), url };
}

function withoutPassword(text: string): string {
  const url = new URL(text);
  url.password = '';
  for (const name of [...url.searchParams.keys()]) {
    if (/password/i.test(name)) url.searchParams.delete(name);
  }
  return url.href;
}

/** One of the two databases, open and with nobody else at it. */
export interface MoveDatabase extends AsyncDisposable {
  readonly name: string;
  readonly storage: Storage;
  /** @throws Error where somebody else may have been at it since it was opened */
  checkExclusive(): void;
}

/** What an engine said, with the reasons behind it, and which end it is about. */
export class MoveError extends Error {
  override readonly name = 'MoveError';

  constructor(name: string, cause: unknown) {
    super(`${name}: ${reasons(cause)}`, { cause });
  }
}

function reasons(error: unknown): string {
  const texts: string[] = [];
  for (let current = error; current instanceof Error && texts.length < 5; current = current.cause) {
    const { message, errors } = current as Partial<AggregateError> & Error;
    // Several addresses of one host that all failed have no message of their own.
    const text = message || String((errors?.[0] as Error | undefined)?.message ?? current.name);
    // Some repeat the reason they have.
    if (!texts.at(-1)?.endsWith(text)) texts.push(text);
  }
  return texts.length === 0 ? String(error) : texts.join(': ');
}

/** Runs `work`; what fails in it is told with the name of the end it failed at. */
export async function naming<T>({ name }: { readonly name: string }, work: () => Promise<T>) {
  try {
    return await work();
  } catch (error) {
    throw error instanceof MoveError ? error : new MoveError(name, error);
  }
}

/** Milliseconds for a statement, and for its answer: all rows of a large table are counted. */
const waits = { statement: 120_000, answer: 125_000 } as const;

/** Connections of a move to one database: it does one thing at a time. */
const connections = 2;

/**
 * Opens a database for this process alone.
 *
 * @param mustExist whether a missing SQLite database is an error, and not made
 * @throws MoveError where it is not there, cannot be reached, or somebody else uses it
 */
export async function openExclusive(
  address: DatabaseAddress,
  {
    mustExist,
    faults,
  }: { readonly mustExist: boolean; readonly faults?: StorageFaults | undefined },
): Promise<MoveDatabase> {
  return await naming(address, async () => {
    if (address.engine === 'sqlite') {
      if (mustExist && !existsSync(databaseFile(address))) {
        throw new Error('there is no relay.sqlite');
      }
      return end(address.name, openSqlite(address.folder, faults), () => true);
    }
    const { url, name } = address;
    const storage = await openPostgres({
      url,
      connections,
      lockMode: 'exclusive',
      faults,
      timeouts: waits,
    });
    return end(name, storage, () => storage.hasLock);
  });
}

/**
 * Opens a database that is said to be lost, as {@link openExclusive} does; `undefined` where it is.
 *
 * @throws MoveError where it is there and does not let itself be looked into
 */
export async function openUnlessLost(address: DatabaseAddress): Promise<MoveDatabase | undefined> {
  if (address.engine === 'sqlite' && !existsSync(databaseFile(address))) return undefined;
  try {
    return await openExclusive(address, { mustExist: true });
  } catch (error) {
    let root = error;
    while (root instanceof Error && root.cause !== undefined) root = root.cause;
    if (address.engine === 'postgres' && isAbsent(root)) return undefined;
    throw error;
  }
}

function databaseFile({ folder }: DatabaseAddress & { engine: 'sqlite' }): string {
  return join(folder, 'relay.sqlite');
}

function end(name: string, storage: Storage, isAlone: () => boolean): MoveDatabase {
  return {
    name,
    storage,
    checkExclusive() {
      if (isAlone()) return;
      throw new MoveError(name, new Error('the connection that keeps others away was lost'));
    },
    [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose](),
  };
}
