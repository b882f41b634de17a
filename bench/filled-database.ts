/** Fills an account's timeline in the database of a relay that is not running. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Characters of a digest. */
const digestLength = 43;

/**
 * Copies the newest record of the only timeline until it has so many records. Each copy has an
 * envelope of its own, under an ID as random as a digest; after a time, ten in a second, if the relay
 * that stored the record does so.
 *
 * @param folder data folder of the relay
 */
export function fillTimeline(folder: string, records: number): void {
  using database = new DatabaseSync(join(folder, 'relay.sqlite'));
  const newest = database
    .prepare('SELECT account, max(sequence) AS sequence, envelope_id AS id FROM timeline_records')
    .get() as { account: string; sequence: number; id: string };
  const { account, sequence, id } = newest;
  const time = id.length > digestLength ? "printf('%08x', 1700000000 + n / 10) || " : '';
  const copies = records - sequence - 1;
  if (copies <= 0) return;
  const of = 'r.account = ? AND r.sequence = ?';
  const source = 'FROM copies, timeline_records r';
  const statements = [
    `INSERT INTO message_envelopes
      SELECT copies.envelope_id, e.keep_until, e.envelope
      ${source} JOIN message_envelopes e ON e.envelope_id = r.envelope_id WHERE ${of}`,
    `INSERT INTO timeline_records
      SELECT r.account, copies.sequence, r.accepted_at, r.keep_until, copies.envelope_id,
        r.certificate_id, r.bytes, r.visible_to
      ${source} WHERE ${of}`,
    `INSERT INTO timeline_boxes
      SELECT b.account, b.device_id, copies.sequence, b.key_box
      ${source} JOIN timeline_boxes b ON b.account = r.account AND b.sequence = r.sequence
      WHERE ${of}`,
  ];
  database.exec('PRAGMA synchronous=OFF; PRAGMA cache_size=-262144; BEGIN');
  database.exec('CREATE TEMP TABLE copies (sequence INTEGER PRIMARY KEY, envelope_id TEXT)');
  database
    .prepare(`WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
      INSERT INTO copies SELECT ? + n, ${time}lower(hex(randomblob(21))) FROM numbers`)
    .run(copies, sequence);
  for (const sql of statements) database.prepare(sql).run(account, sequence);
  database
    .prepare('UPDATE timeline_heads SET head = ? WHERE account = ?')
    .run(sequence + copies, account);
  database.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)');
}
