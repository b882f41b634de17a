/** The two databases of a move: their addresses, and opening each exclusively. */
import { existsSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isServerUrl, redact, serverUrl } from '../../config/index.ts';
import { isAbsent } from '../postgres/errors.ts';
import { openPostgres } from '../postgres/storage.ts';
import { generationFile } from '../sqlite/folder.ts';
import { openSqlite } from '../sqlite/storage.ts';
import type { Storage, StorageFaults } from '../types.ts';

/** A text that is not the address of a database, or options that contradict each other. */
export class DatabaseAddressError extends Error {
  override readonly name = 'DatabaseAddressError';
}

/** The address of a database. `name` has no password. */
export type DatabaseAddress =
  | { readonly engine: 'sqlite'; readonly name: string; readonly folder: string }
  | { readonly engine: 'postgres'; readonly name: string; readonly url: string };

/**
 * Parses `sqlite:DIR`, `postgres:URL`, or a plain PostgreSQL URL.
 *
 * @returns an address whose `name` has no password and is the same for the same text
 * @throws DatabaseAddressError
 * @example
 * parseAddress('sqlite:/var/lib/posthouse');
 * parseAddress('postgres://relay:secret@db.example/relay').name; // postgres://relay@db.example/relay
 */
export function parseAddress(text: string): DatabaseAddress {
  const [, engine, rest = ''] = /^(sqlite|postgres):(?!\/\/)(.*)$/s.exec(text) ?? [];
  if (engine === 'sqlite') {
    if (rest === '')
      throw new DatabaseAddressError(
        'sqlite: needs the data folder after it, as in sqlite:/var/lib/posthouse',
      );
    const folder = resolve(rest);
    return { engine, name: `sqlite:${folder}`, folder };
  }
  const url = engine === 'postgres' ? rest : text;
  if (!/^postgres(?:ql)?:\/\/\S+$/.test(url)) {
    const expected = 'sqlite:DIR or postgres://user:password@host:port/database';
    // A text with an @ may contain a password.
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

/** One of the two databases, open exclusively for this process. */
export interface MoveDatabase extends AsyncDisposable {
  readonly name: string;
  readonly storage: Storage;
  /** @throws MoveError if another process may have used it since it was opened */
  checkExclusive(): void;
  /** Has no relay notice transactions that the database lacks: they are known, or its rows are replaced. */
  forgetLacking(): void;
}

/** An error with the name of the database it concerns; its message includes all causes. */
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
    // If all addresses of one host failed, the error has no message itself.
    const text = message || String((errors?.[0] as Error | undefined)?.message ?? current.name);
    // Skip a message that is in the previous one.
    if (!texts.at(-1)?.includes(text)) texts.push(text);
  }
  return texts.length === 0 ? String(error) : texts.join(': ');
}

/** Runs `work`; its errors get the name of the database. */
export async function naming<T>({ name }: { readonly name: string }, work: () => Promise<T>) {
  try {
    return await work();
  } catch (error) {
    throw error instanceof MoveError ? error : new MoveError(name, error);
  }
}

/** Milliseconds for a statement, and for its answer: it may count all rows of a large table. */
const timeouts = { statement: 120_000, answer: 125_000 } as const;

/** Connections of a move to one database: it runs one transaction at a time. */
const connections = 2;

/**
 * Opens a database exclusively for this process.
 *
 * @param mustExist if true, a missing SQLite database is an error; otherwise it is created
 * @param lacking whether a SQLite database that lacks its last transactions is an error; otherwise it is
 *   left to the next relay to notice, until {@link MoveDatabase.forgetLacking}
 * @throws MoveError if it does not exist, cannot be reached, or another process uses it
 */
export async function openExclusive(
  address: DatabaseAddress,
  {
    mustExist,
    faults,
    lacking = 'leave',
  }: {
    readonly mustExist: boolean;
    readonly faults?: StorageFaults | undefined;
    readonly lacking?: 'refuse' | 'leave' | undefined;
  },
): Promise<MoveDatabase> {
  return await naming(address, async () => {
    if (address.engine === 'sqlite') {
      if (mustExist && !existsSync(databaseFile(address))) {
        throw new Error('there is no relay.sqlite: give the data folder of a relay');
      }
      const database = openSqlite(address.folder, faults, undefined, { lacking });
      return end(address.name, database, {
        isAlone: () => true,
        forgetLacking: () => rmSync(generationFile(address.folder), { force: true }),
      });
    }
    const { url, name } = address;
    const storage = await openPostgres({
      url,
      connections,
      lockMode: 'exclusive',
      faults,
      timeouts,
    });
    return end(name, storage, { isAlone: () => storage.hasLock, forgetLacking: () => {} });
  });
}

/**
 * Opens a database that the operator says is lost, as {@link openExclusive} does.
 *
 * @returns `undefined` if it is indeed lost
 *
 * @throws MoveError if it exists and cannot be opened
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

function end(
  name: string,
  storage: Storage,
  {
    isAlone,
    forgetLacking,
  }: { readonly isAlone: () => boolean } & Pick<MoveDatabase, 'forgetLacking'>,
): MoveDatabase {
  return {
    ...{ name, storage, forgetLacking },
    checkExclusive() {
      if (isAlone()) return;
      throw new MoveError(
        name,
        new Error('the connection that holds the exclusive lock was lost: run the command again'),
      );
    },
    [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose](),
  };
}
