import type { Migration } from '../storage/types.ts';

export const blobMigrations: readonly Migration[] = [
  {
    id: 701,
    name: 'blobs',
    statements: [
      // A row is there before its file, and until after it: no file is without one. counted: bytes
      // of the file in whole blocks. keep_until: of `receiving`, when its upload is over at the latest.
      `CREATE TABLE blobs (
        name TEXT NOT NULL PRIMARY KEY,
        account TEXT NOT NULL,
        bytes BIGINT NOT NULL,
        counted BIGINT NOT NULL,
        keep_until BIGINT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('receiving', 'stored', 'ending'))
      )`,
      'CREATE INDEX blobs_by_account ON blobs (account, keep_until)',
      'CREATE INDEX blobs_by_deadline ON blobs (keep_until)',
      // The counted bytes of an account's blobs.
      `CREATE TABLE blob_usage (
        account TEXT NOT NULL PRIMARY KEY,
        counted BIGINT NOT NULL
      )`,
    ],
  },
  {
    id: 702,
    name: 'blobs of all accounts',
    statements: [
      // The counted bytes of all blobs. No row in a new database: a move and a restore bring theirs.
      `CREATE TABLE blob_total (
        slot BIGINT NOT NULL PRIMARY KEY CHECK (slot = 1),
        counted BIGINT NOT NULL
      )`,
      `INSERT INTO blob_total (slot, counted)
        SELECT 1, CAST(SUM(counted) AS BIGINT) FROM blob_usage HAVING COUNT(*) > 0`,
    ],
  },
];
