/** Rows of any table, in bounded portions and in the order of their keys. */
import { createHash } from 'node:crypto';
import type { Reader, Row, SqlValue, Storage, Writer } from '../types.ts';

/** What is read, sent and written at once, at the most; one row may be more than the bytes. */
const batchRows = 512;
const batchBytes = 4 * 1_048_576;
/** Rows written by one statement; so many fewer values than the least any engine takes. */
const statementRows = 32;

/** A table as both engines know it. */
export interface Table {
  readonly name: string;
  /** Sorted by name, so that every database of a schema agrees. */
  readonly columns: readonly string[];
  /** The primary key, in its own order. */
  readonly key: readonly string[];
}

interface CatalogueRow extends Row {
  table_name: string;
  column_name: string;
  key_position: number;
}

/** The tables of a database, by name. */
export async function readTables(storage: Storage): Promise<Table[]> {
  const rows = await storage.read((tx) => tx.all<CatalogueRow>(storage.catalogueSql));
  const byTable = Map.groupBy(rows, (row) => row.table_name);
  return [...byTable]
    .map(([name, columns]) => ({
      name,
      columns: columns.map((column) => column.column_name).sort(),
      key: columns
        .filter((column) => column.key_position > 0)
        .sort((a, b) => a.key_position - b.key_position)
        .map((column) => column.column_name),
    }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** The values of a row's primary key. */
export type Key = readonly SqlValue[];

function columnList(columns: readonly string[], direction = ''): string {
  return columns.map((column) => `"${column}"${direction}`).join(', ');
}

function placeholders(count: number): string {
  return `(${Array(count).fill('?').join(', ')})`;
}

/** Everything behind a key, in order. */
function fromAfter({ name, key }: Table, after: Key | undefined): string {
  const where =
    after === undefined ? '' : ` WHERE (${columnList(key)}) > ${placeholders(key.length)}`;
  return `FROM "${name}"${where} ORDER BY ${columnList(key)}`;
}

function keyOf({ key }: Table, row: Row): Key {
  return key.map((column) => row[column] ?? null);
}

export async function countRows(tx: Reader, { name }: Table): Promise<number> {
  const row = await tx.get<{ rows: number }>(`SELECT COUNT(*) AS rows FROM "${name}"`);
  return row?.rows ?? 0;
}

/** The last key of a table; `undefined` where it is empty. */
export async function highestKey(tx: Reader, table: Table): Promise<Key | undefined> {
  const { name, key } = table;
  const row = await tx.get(
    `SELECT ${columnList(key)} FROM "${name}" ORDER BY ${columnList(key, ' DESC')} LIMIT 1`,
  );
  return row && keyOf(table, row);
}

/** The next rows behind a key, in order; none where there are no more. */
export interface Batch {
  readonly rows: readonly Row[];
  /** Key of the last row. */
  readonly last: Key | undefined;
}

export async function readBatch(tx: Reader, table: Table, after: Key | undefined): Promise<Batch> {
  const sizes = await tx.all<{ row_bytes: number }>(
    `SELECT ${sizeOf(table)} AS row_bytes ${fromAfter(table, after)} LIMIT ${batchRows}`,
    ...(after ?? []),
  );
  if (sizes.length === 0) return { rows: [], last: undefined };
  const rows = await tx.all(
    `SELECT ${columnList(table.columns)} ${fromAfter(table, after)} LIMIT ${rowsThatFit(sizes)}`,
    ...(after ?? []),
  );
  const last = rows.at(-1);
  return { rows, last: last && keyOf(table, last) };
}

function sizeOf({ columns }: Table): string {
  return columns
    .map((column) => `COALESCE(OCTET_LENGTH(CAST("${column}" AS TEXT)), 0)`)
    .join(' + ');
}

/** A power of two: an engine that keeps statements prepared has few of them to keep. */
function rowsThatFit(sizes: readonly { readonly row_bytes: number }[]): number {
  let bytes = 0;
  const over = sizes.findIndex(({ row_bytes }) => {
    bytes += row_bytes;
    return bytes > batchBytes;
  });
  return over === -1 ? batchRows : 2 ** Math.floor(Math.log2(Math.max(over, 1)));
}

/** Writes rows that the table does not have. */
export async function insertRows(tx: Writer, table: Table, rows: readonly Row[]): Promise<void> {
  const { name, columns } = table;
  const into = `INSERT INTO "${name}" (${columnList(columns)}) VALUES `;
  let done = 0;
  while (done < rows.length) {
    const count = rows.length - done < statementRows ? 1 : statementRows;
    const portion = rows.slice(done, done + count);
    await tx.run(
      into + portion.map(() => placeholders(columns.length)).join(', '),
      ...portion.flatMap((row) => columns.map((column) => row[column] ?? null)),
    );
    done += count;
  }
}

/**
 * Deletes the next rows behind a key, which has nothing before it.
 * @returns how many, and the key to go on behind; none where the table is empty
 */
export async function deleteBatch(
  tx: Writer,
  table: Table,
  after: Key | undefined,
): Promise<{ readonly deleted: number; readonly last: Key | undefined }> {
  const { name, key } = table;
  const keys = await tx.all(
    `SELECT ${columnList(key)} ${fromAfter(table, after)} LIMIT ${batchRows}`,
    ...(after ?? []),
  );
  const row = keys.at(-1);
  if (row === undefined) return { deleted: 0, last: undefined };
  const last = keyOf(table, row);
  const deleted = await tx.run(
    `DELETE FROM "${name}" WHERE (${columnList(key)}) <= ${placeholders(key.length)}`,
    ...last,
  );
  return { deleted, last };
}

/** What a table holds, in short. */
export interface TableDigest {
  readonly rows: number;
  /** SHA-256 of the columns' names and the rows in the order of their keys, hexadecimal. */
  readonly digest: string;
}

/** Reads every row of a table that has a key, each portion with one call of `read`. */
export async function digestTable(
  table: Table,
  read: <T>(work: (tx: Reader) => Promise<T>) => Promise<T>,
  progress: (rows: number) => void,
): Promise<TableDigest> {
  const hash = createHash('sha256');
  hash.update(line([table.name, ...table.columns]));
  let rows = 0;
  let after: Key | undefined;
  do {
    const portion = await read((tx) => readBatch(tx, table, after));
    for (const row of portion.rows) {
      hash.update(line(table.columns.map((column) => row[column] ?? null)));
    }
    rows += portion.rows.length;
    after = portion.last;
    progress(rows);
  } while (after !== undefined);
  return { rows, digest: hash.digest('hex') };
}

/** JSON: no two rows of values have one text. */
function line(values: readonly SqlValue[]): string {
  return `${JSON.stringify(values)}\n`;
}
