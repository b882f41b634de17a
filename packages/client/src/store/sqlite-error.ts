/** Result codes of SQLite: https://sqlite.org/rescode.html */
export const sqliteBusy = 5;

/** Whether a value is an error of SQLite with one of the result codes. */
export function isSqliteError(value: unknown, ...codes: readonly number[]): boolean {
  const found = value instanceof Error && (value as { errcode?: unknown }).errcode;
  // The lower byte is the code, the rest says more about it.
  return typeof found === 'number' && codes.includes(found & 0xff);
}
