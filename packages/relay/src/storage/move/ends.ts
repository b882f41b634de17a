/** The two databases of a move: how they are named, and had alone. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isServerUrl, serverUrl, shown } from '../../config/index.ts';
import { isNowhere } from '../postgres/errors.ts';
import { openPostgres } from '../postgres/storage.ts';
import { openSqlite } from '../sqlite/storage.ts';
import type { Storage, StorageFaults } from '../types.ts';

/** A name of a database that is none. */
export class AddressError extends Error {
  override readonly name = 'AddressError';
}

/** Where a database is. */
export type Address =
  | { readonly engine: 'sqlite'; readonly name: string; readonly folder: string }
  | { readonly engine: 'postgres'; readonly name: string; readonly url: string };

/**
 * Reads `sqlite:DIR`, `postgres:URL`, or a PostgreSQL URL as it is.
 *
 * @returns with a `name` that has no password and is the same for the same text
 * @throws AddressError
 * @example
 * parseAddress('sqlite:/var/lib/posthouse');
 * parseAddress('postgres://relay:secret@db.example/relay').name; // postgres://relay@db.example/relay
 */
export function parseAddress(text: string): Address {
  const [, engine, rest = ''] = /^(sqlite|postgres):(?!\/\/)(.*)$/s.exec(text) ?? [];
  if (engine === 'sqlite') {
    if (rest === '') throw new AddressError('sqlite: needs the data folder behind it');
    const folder = resolve(rest);
    return { engine, name: `sqlite:${folder}`, folder };
  }
  const url = engine === 'postgres' ? rest : text;
  if (!/^postgres(?:ql)?:\/\/\S+$/.test(url)) {
    const expected = 'sqlite:DIR or postgres://user:password@host:port/database';
    // Whatever has an @ may have a password before it.
    const found = text.includes('@') ? 'something else' : shown(text);
    throw new AddressError(`expected ${expected}, found ${found}`);
  }
  if (!isServerUrl(url)) throw new AddressError(`expected ${serverUrl}, found something else`);
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
export interface End extends AsyncDisposable {
  readonly name: string;
  readonly storage: Storage;
  /** @throws Error where somebody else may have been at it since it was opened */
  checkAlone(): void;
}

/** What an engine said, with the reasons behind it, and which end it is about. */
export class EndError extends Error {
  override readonly name = 'EndError';

  constructor(name: string, cause: unknown) {
    super(`${name}: ${reasons(cause)}`, { cause });
  }
}

function reasons(error: unknown): string {
  const texts: string[] = [];
  for (let at = error; at instanceof Error && texts.length < 5; at = at.cause) {
    const { message, errors } = at as Partial<AggregateError> & Error;
    // Several addresses of one host that all failed have no message of their own.
    const text = message || String((errors?.[0] as Error | undefined)?.message ?? at.name);
    // Some repeat the reason they have.
    if (!texts.at(-1)?.endsWith(text)) texts.push(text);
  }
  return texts.length === 0 ? String(error) : texts.join(': ');
}

/** Runs `work`; what fails in it is told with the name of the end it failed at. */
export async function at<T>({ name }: { readonly name: string }, work: () => Promise<T>) {
  try {
    return await work();
  } catch (error) {
    throw error instanceof EndError ? error : new EndError(name, error);
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
 * @throws EndError where it is not there, cannot be reached, or somebody else uses it
 */
export async function openEnd(
  address: Address,
  {
    mustExist,
    faults,
  }: { readonly mustExist: boolean; readonly faults?: StorageFaults | undefined },
): Promise<End> {
  return await at(address, async () => {
    if (address.engine === 'sqlite') {
      if (mustExist && !existsSync(databaseFile(address))) {
        throw new Error('there is no relay.sqlite');
      }
      return end(address.name, openSqlite(address.folder, faults), () => true);
    }
    const { url, name } = address;
    const storage = await openPostgres({ url, connections, presence: 'exclusive', faults, waits });
    return end(name, storage, () => storage.hasPlace);
  });
}

/**
 * Opens a database that is said to be lost, as {@link openEnd} does; `undefined` where it is.
 *
 * @throws EndError where it is there and does not let itself be looked into
 */
export async function openLost(address: Address): Promise<End | undefined> {
  if (address.engine === 'sqlite' && !existsSync(databaseFile(address))) return undefined;
  try {
    return await openEnd(address, { mustExist: true });
  } catch (error) {
    let root = error;
    while (root instanceof Error && root.cause !== undefined) root = root.cause;
    if (address.engine === 'postgres' && isNowhere(root)) return undefined;
    throw error;
  }
}

function databaseFile({ folder }: Address & { engine: 'sqlite' }): string {
  return join(folder, 'relay.sqlite');
}

function end(name: string, storage: Storage, isAlone: () => boolean): End {
  return {
    name,
    storage,
    checkAlone() {
      if (isAlone()) return;
      throw new EndError(name, new Error('the connection that keeps others away was lost'));
    },
    [Symbol.asyncDispose]: () => storage[Symbol.asyncDispose](),
  };
}
