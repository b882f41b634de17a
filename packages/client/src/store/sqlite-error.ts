/** Errors of SQLite as errors of the client that name the cure. */
import { ClientError } from '../errors.ts';

/** Result codes of SQLite: https://sqlite.org/rescode.html */
export const sqliteBusy = 5;
const corrupt = 11;
const full = 13;
const notDatabase = 26;

/** Whether a value is an error of SQLite with this result code. */
export function isSqliteError(value: unknown, code: number): boolean {
  return codeOf(value) === code;
}

function codeOf(value: unknown): number | undefined {
  const found = value instanceof Error && (value as { errcode?: unknown }).errcode;
  // The lower byte is the code, the rest says more about it.
  return typeof found === 'number' ? found & 0xff : undefined;
}

/** Returns the error to throw for an error of a store's file; other errors as they are. */
export function asStoreError(cause: unknown): unknown {
  const code = codeOf(cause);
  if (code === undefined) return cause;
  const options = { cause };
  switch (code) {
    case sqliteBusy:
      return new ClientError(
        'store_unavailable',
        'another program has been writing to the store for ten seconds: end it, then try again',
        options,
      );
    case corrupt:
    case notDatabase:
      return new ClientError(
        'store_damaged',
        'the store file is damaged or no store: put a backup in its place, or add this device again',
        options,
      );
    case full:
      return new ClientError(
        'store_full',
        'no space is left for the store, nothing of this was stored: make space, then try again',
        options,
      );
    default:
      return new ClientError(
        'store_unavailable',
        `the store file cannot be used: ${(cause as Error).message}; check the disk and its permissions`,
        options,
      );
  }
}
