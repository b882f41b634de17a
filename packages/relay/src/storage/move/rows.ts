/** Reads, writes and digests the rows of any table in bounded batches, in key order. */
import { createHash } from 'node:crypto';
import type { Reader, Row, SqlValue, Storage, Writer } from '../types.ts';

/** Limits of a batch; a single row may exceed the bytes. */
const batchRows = 512;
const batchBytes = 4 * 1_048_576;
/** Rows per INSERT; keeps the number of values below the limits of both engines. */
const statementRows = 32;

/** A table, described alike for both engines. */
export interface Table {
  readonly name: string;
  /** Sorted by name, so that the order is the same in every database. */
  readonly columns: readonly string[];
  /** Columns of the primary key, in its order. */
  readonly key: readonly string[];
}

interface CatalogueRow extends Row {
  table_name: string;
  column_name: string;
  key_position: number;
}

/** Returns the tables of a database, sorted by name. */
export async function readTables(
  storage: Pick<Storage, 'read' | 'catalogueSql'>,
): Promise<Table[]> {
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

/** Some rows of a table. */
export interface Filter {
  /** A condition with `?` for its values. */
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Returns the FROM clause for all rows after a key, in order; the filter's values come last. */
function fromAfter({ name, key }: Table, after: Key | undefined, only?: Filter): string {
  const conditions = [
    ...(after === undefined ? [] : [`(${columnList(key)}) > ${placeholders(key.length)}`]),
    ...(only === undefined ? [] : [`(${only.sql})`]),
  ];
  const where = conditions.length === 0 ? '' : ` WHERE ${conditions.join(' AND ')}`;
  return `FROM "${name}"${where} ORDER BY ${columnList(key)}`;
}

function keyOf({ key }: Table, row: Row): Key {
  return key.map((column) => row[column] ?? null);
}

/** Returns the number of rows of a table. */
export async function countRows(tx: Reader, { name }: Table): Promise<number> {
  const row = await tx.get<{ rows: number }>(`SELECT COUNT(*) AS rows FROM "${name}"`);
  return row?.rows ?? 0;
}

/** Returns the last key of a table; `undefined` if it is empty. */
export async function highestKey(tx: Reader, table: Table): Promise<Key | undefined> {
  const { name, key } = table;
  const row = await tx.get(
    `SELECT ${columnList(key)} FROM "${name}" ORDER BY ${columnList(key, ' DESC')} LIMIT 1`,
  );
  return row && keyOf(table, row);
}

/** The next rows after a key, in order; empty at the end of the table. */
export interface Batch {
  readonly rows: readonly Row[];
  /** Key of the last row. */
  readonly last: Key | undefined;
}

/** Reads the next rows after a key, all or those of a filter, within the limits of a batch. */
export async function readBatch(
  tx: Reader,
  table: Table,
  after: Key | undefined,
  only?: Filter,
): Promise<Batch> {
  const from = fromAfter(table, after, only);
  const values = [...(after ?? []), ...(only?.values ?? [])];
  const sizes = await tx.all<{ row_bytes: number }>(
    `SELECT ${sizeOf(table)} AS row_bytes ${from} LIMIT ${batchRows}`,
    ...values,
  );
  if (sizes.length === 0) return { rows: [], last: undefined };
  const rows = await tx.all(
    `SELECT ${columnList(table.columns)} ${from} LIMIT ${rowsThatFit(sizes)}`,
    ...values,
  );
  const last = rows.at(-1);
  return { rows, last: last && keyOf(table, last) };
}

function sizeOf({ columns }: Table): string {
  return columns
    .map((column) => `COALESCE(OCTET_LENGTH(CAST("${column}" AS TEXT)), 0)`)
    .join(' + ');
}

/** Returns a power of two, so that few distinct statements are prepared. */
function rowsThatFit(sizes: readonly { readonly row_bytes: number }[]): number {
  let bytes = 0;
  const over = sizes.findIndex(({ row_bytes }) => {
    bytes += row_bytes;
    return bytes > batchBytes;
  });
  return over === -1 ? batchRows : 2 ** Math.floor(Math.log2(Math.max(over, 1)));
}

/** Returns the key that many rows after another one; `undefined` if there are fewer. */
export async function keyFurther(
  tx: Reader,
  table: Table,
  { after, rows }: { readonly after: Key | undefined; readonly rows: number },
): Promise<Key | undefined> {
  const row = await tx.get(
    `SELECT ${columnList(table.key)} ${fromAfter(table, after)} LIMIT 1 OFFSET ${rows - 1}`,
    ...(after ?? []),
  );
  return row && keyOf(table, row);
}

/** Returns the condition of a row whose key is not above another one. */
export function upTo({ key }: Table, last: Key): Filter {
  return { sql: `(${columnList(key)}) <= ${placeholders(key.length)}`, values: last };
}

/** Inserts rows. */
export async function insertRows(tx: Writer, table: Table, rows: readonly Row[]): Promise<void> {
  const { name, columns } = table;
  const into = `INSERT INTO "${name}" (${columnList(columns)}) VALUES `;
  let inserted = 0;
  while (inserted < rows.length) {
    const count = rows.length - inserted < statementRows ? 1 : statementRows;
    const batch = rows.slice(inserted, inserted + count);
    await tx.run(
      into + batch.map(() => placeholders(columns.length)).join(', '),
      ...batch.flatMap((row) => columns.map((column) => row[column] ?? null)),
    );
    inserted += count;
  }
}

/**
 * Deletes the next rows after a key; all rows up to it must have been deleted already.
 * @returns the number of rows, and the last key; no key if the table is empty
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

/** Digest of a table's content. */
export interface TableDigest {
  readonly rows: number;
  /** SHA-256 of the columns' names and the rows in the order of their keys, hexadecimal. */
  readonly digest: string;
}

/** Digests every row of a table that has a primary key, with one call of `read` per batch. */
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
    const batch = await read((tx) => readBatch(tx, table, after));
    for (const row of batch.rows) {
      hash.update(line(table.columns.map((column) => row[column] ?? null)));
    }
    rows += batch.rows.length;
    after = batch.last;
    progress(rows);
  } while (after !== undefined);
  return { rows, digest: hash.digest('hex') };
}

/** Encodes a row as JSON: different rows have different texts. */
function line(values: readonly SqlValue[]): string {
  return `${JSON.stringify(values)}\n`;
}
