import type { Migration } from '../storage/types.ts';

export const blockMigrations: readonly Migration[] = [
  {
    id: 1001,
    name: 'blocks of accounts and addresses',
    statements: [
      // What the operator refuses. kind: account, address or relay. created_at, ends_at: Unix seconds;
      // without an end, until it is removed.
      `CREATE TABLE blocks (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        reason TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        ends_at BIGINT,
        PRIMARY KEY (kind, id)
      )`,
      'CREATE INDEX blocks_by_end ON blocks (ends_at) WHERE ends_at IS NOT NULL',
      `INSERT INTO blocks (kind, id, reason, created_at)
        SELECT 'relay', relay_id, reason, created_at FROM blocked_relays`,
      'DROP TABLE blocked_relays',
      // One row: how often blocks were changed. A process reads it each second, and the blocks if it rose.
      'CREATE TABLE block_changes (id BIGINT NOT NULL PRIMARY KEY, number BIGINT NOT NULL)',
    ],
  },
];
