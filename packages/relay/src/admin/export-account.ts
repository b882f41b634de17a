/** Exports what the relay keeps of one account, for the person (posthouse account export). */
import { ProtocolError } from '@posthouse/protocol';
import { type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { readBoundRelay } from '../storage/identity.ts';
import {
  type Filter,
  type Key,
  keyFurther,
  readBatch,
  readTables,
  type Table,
  upTo,
} from '../storage/move/rows.ts';
import type { Reader, Row, SqlValue } from '../storage/types.ts';
import { storedText } from '../storage/values.ts';
import { type AccountKeys, accountTables, type ExportedTable } from './inventory/account-tables.ts';
import type { VerbTools } from './verb.ts';

/** The version of the form; a reader refuses a later one. */
const formVersion = 1;

/** Rows of a table without an index that are passed over in one step. */
const stepRows = 1_000;
/** Rows whose messages are read at once. */
const envelopesAtOnce = 8;

const exportedTables = accountTables.filter((table) => 'kind' in table);

const notes = [
  'One JSON object per line. The first says whose file this is, the last how many lines of each kind there are.',
  'Envelopes, key boxes and group messages are sealed: this relay cannot read them. The person can, with the keys on ' +
    'the devices.',
  'Contacts, names given to them and read positions are not here: devices keep them, and send them to each other sealed.',
  'Attachments are listed with name and size; they are sealed too, and the devices fetch them by name.',
  'Left out: secrets of sessions and sign-ins, and what other accounts have stored.',
];

interface ExportTools extends Pick<VerbTools, 'storage' | 'clock' | 'progress' | 'signal'> {
  /** Takes the lines, in order. */
  readonly emit: (lines: readonly JsonObject[]) => Promise<void>;
}

/**
 * Exports all rows of an account from one snapshot, in batches of bounded size.
 *
 * @returns how many lines of each kind there are
 * @throws ProtocolError `not_found` if there is none, also of a guest or an account that was deleted; the reason
 *   of the signal
 */
export async function exportAccount(
  { storage, clock, progress, signal, emit }: ExportTools,
  account: string,
): Promise<JsonObject> {
  const tables = new Map((await readTables(storage)).map((table) => [table.name, table]));
  return await storage.longRead(async (tx) => {
    const relay = (await readBoundRelay(tx)) ?? '';
    const now = clock.now();
    const head = { kind: 'posthouse.account', version: formVersion, account, relay };
    const first = { ...head, exported_at: now, notes };
    const keys = await readKeys(tx, account, tables);
    const lines: Record<string, number> = {};
    let done = 0;
    for (const exported of exportedTables) {
      for await (const batch of rowsOf(tx, { exported, tables, keys })) {
        signal?.throwIfAborted();
        if (done === 0 && batch.length > 0) await emit([first]);
        for await (const some of linesOf(tx, exported, batch)) await emit(some);
        const { kind, table } = exported;
        if (batch.length > 0) lines[kind] = (lines[kind] ?? 0) + batch.length;
        done += batch.length;
        progress?.({ step: `exporting ${table}`, done, total: undefined });
      }
    }
    if (done === 0) {
      throw new ProtocolError('not_found', `${account}: this relay keeps nothing of it`);
    }
    await emit([{ kind: 'end', lines }]);
    return { account, lines };
  });
}

/** Reads the account's rows of a table in batches, some of which may be empty. */
async function* rowsOf(
  tx: Reader,
  {
    exported,
    tables,
    keys,
  }: {
    readonly exported: ExportedTable;
    readonly tables: ReadonlyMap<string, Table>;
    readonly keys: AccountKeys;
  },
): AsyncGenerator<readonly Row[]> {
  const { isIndexed, isOf, ...rows } = exported.rows;
  const only = rows.of(keys);
  const table = tables.get(exported.table);
  if (only === undefined || table === undefined) return;
  const all = { ...table, columns: [...new Set([...table.key, ...columnsOf(exported)])] };
  const batches = isIndexed ? indexedRows(tx, all, only) : scannedRows(tx, all, only);
  for await (const batch of batches) {
    yield isOf === undefined ? batch : batch.filter((row) => isOf(row, keys));
  }
}

function columnsOf({ columns, hasEnvelope = false }: ExportedTable): readonly string[] {
  return hasEnvelope ? [...columns, 'envelope_id', 'certificate_id'] : columns;
}

async function* indexedRows(
  tx: Reader,
  table: Table,
  only: Filter,
): AsyncGenerator<readonly Row[]> {
  for (let after: Key | undefined; ; ) {
    const { rows, last } = await readBatch(tx, table, after, only);
    yield rows;
    if (last === undefined) return;
    after = last;
  }
}

/** Reads the whole table in steps, so that no statement takes long. */
async function* scannedRows(
  tx: Reader,
  table: Table,
  only: Filter,
): AsyncGenerator<readonly Row[]> {
  let after: Key | undefined;
  for (let isLast = false; !isLast; ) {
    const end = await keyFurther(tx, table, { after, rows: stepRows });
    const within = end && upTo(table, end);
    const filter =
      within === undefined
        ? only
        : { sql: `(${only.sql}) AND ${within.sql}`, values: [...only.values, ...within.values] };
    for (let from = after; ; ) {
      const { rows, last } = await readBatch(tx, table, from, filter);
      yield rows;
      if (last === undefined) break;
      from = last;
    }
    after = end;
    isLast = end === undefined;
  }
}

/** Makes the lines of rows, a few at a time if they have messages. */
async function* linesOf(
  tx: Reader,
  exported: ExportedTable,
  rows: readonly Row[],
): AsyncGenerator<JsonObject[]> {
  const { kind, hasEnvelope = false } = exported;
  if (!hasEnvelope) {
    if (rows.length > 0) yield rows.map((row) => ({ kind, row: valuesOf(exported, row) }));
    return;
  }
  for (let at = 0; at < rows.length; at += envelopesAtOnce) {
    const some = rows.slice(at, at + envelopesAtOnce);
    const envelopes = await readTexts(tx, envelopeSql, some.map(idOf('envelope_id')));
    const certificates = await readTexts(tx, certificateSql, some.map(idOf('certificate_id')));
    yield some.map((row) => ({
      kind,
      row: {
        ...valuesOf(exported, row),
        envelope: envelopes.get(String(row.envelope_id)) ?? null,
        certificate: certificates.get(String(row.certificate_id)) ?? null,
      },
    }));
  }
}

const idOf = (column: string) => (row: Row) => String(row[column]);

const marks = Array(envelopesAtOnce).fill('?').join(', ');
const envelopeSql = `SELECT envelope_id AS id, envelope AS text FROM message_envelopes
  WHERE envelope_id IN (${marks})`;
const certificateSql = `SELECT certificate_id AS id, certificate AS text FROM message_certificates
  WHERE certificate_id IN (${marks})`;

/** Reads JSON texts by ID. */
async function readTexts(
  tx: Reader,
  sql: string,
  ids: readonly string[],
): Promise<Map<string, JsonValue>> {
  const last = ids.at(-1) ?? '';
  const all = [...ids, ...Array<string>(envelopesAtOnce - ids.length).fill(last)];
  const rows = await tx.all<{ id: string; text: string }>(sql, ...all);
  return new Map(rows.map(({ id, text }) => [id, decoded(text)]));
}

function valuesOf({ columns, json = [], escaped = [] }: ExportedTable, row: Row): JsonObject {
  return Object.fromEntries(
    columns.map((column) => {
      const value = row[column] ?? null;
      if (json.includes(column)) return [column, decoded(value)];
      return [column, escaped.includes(column) ? storedText(String(value)) : value];
    }),
  );
}

/** Returns what a JSON text encodes; of a text that is none, as a route that was ended, the text. */
function decoded(value: SqlValue): JsonValue {
  if (typeof value !== 'string') return value;
  try {
    return parseJson(value);
  } catch {
    return value;
  }
}

/** Reads by what rows are found to be of an account. */
async function readKeys(
  tx: Reader,
  account: string,
  tables: ReadonlyMap<string, Table>,
): Promise<AccountKeys> {
  const rows = await tx.all<{ device_id: string }>(
    `SELECT device_id FROM devices WHERE account = ?
      UNION SELECT device_id FROM inactive_devices WHERE account = ?
      UNION SELECT device_id FROM remote_devices WHERE account = ?`,
    ...[account, account, account],
  );
  const devices = new Set(rows.map(({ device_id }) => device_id));
  const certificates = new Set<string>();
  const keys = { account, devices: [], certificates: [] };
  for (const exported of exportedTables) {
    const { table } = exported;
    if (table !== 'channel_certificates' && table !== 'group_certificates') continue;
    for await (const batch of rowsOf(tx, { exported, tables, keys })) {
      for (const { device_id, certificate_id } of batch) {
        if (typeof device_id === 'string') devices.add(device_id);
        if (typeof certificate_id === 'string') certificates.add(certificate_id);
      }
    }
  }
  return { account, devices: [...devices], certificates: [...certificates] };
}
