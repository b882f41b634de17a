import type { Migration } from '../storage/types.ts';

export const usageMigrations: readonly Migration[] = [
  {
    id: 901,
    name: 'usage: bytes of a day',
    statements: [
      // owner: `account <id>`, `group <id>` or `channel <id>`; day: of the Unix epoch, UTC. Bytes of
      // calls that stored something, without the last ones of each process.
      `CREATE TABLE daily_bytes (
        owner TEXT NOT NULL,
        day BIGINT NOT NULL,
        bytes BIGINT NOT NULL,
        PRIMARY KEY (owner, day)
      )`,
      'CREATE INDEX daily_bytes_by_day ON daily_bytes (day)',
    ],
  },
];
