/** What accounts, groups and channels have stored, owner by owner. */
import type { Row } from '../../storage/types.ts';
import { type Source, scan, step } from './scan.ts';

/** What owns records: messages of a timeline, messages and events of a group, events of a channel. */
export type OwnerKind = 'account' | 'group' | 'channel';

/**
 * One step through the records of all owners, in the order of owner and sequence. Parameters: a time,
 * for each table an owner, a sequence and a limit, and the limit again. The tables of one kind share
 * the sequence, so no position is two rows.
 */
const statements = {
  account: {
    tables: 1,
    sql: `SELECT owner, max(sequence) AS last, count(*) AS records,
        CAST(sum(bytes) AS BIGINT) AS bytes, min(accepted_at) AS oldest, max(accepted_at) AS newest,
        CAST(sum(CASE WHEN accepted_at >= ? THEN bytes ELSE 0 END) AS BIGINT) AS recent
      FROM (SELECT owner, sequence, bytes, accepted_at FROM
        (SELECT account AS owner, sequence, bytes, accepted_at FROM timeline_records
          WHERE (account, sequence) > (?, ?) ORDER BY account, sequence LIMIT ?) AS timelines
        ORDER BY owner, sequence LIMIT ?) AS rows
      GROUP BY owner ORDER BY owner`,
  },
  group: {
    tables: 2,
    sql: `SELECT owner, max(sequence) AS last, count(*) AS records,
        CAST(sum(bytes) AS BIGINT) AS bytes, min(accepted_at) AS oldest, max(accepted_at) AS newest,
        CAST(sum(CASE WHEN accepted_at >= ? THEN bytes ELSE 0 END) AS BIGINT) AS recent
      FROM (SELECT owner, sequence, bytes, accepted_at FROM
        (SELECT * FROM (SELECT group_id AS owner, sequence, bytes, accepted_at FROM group_messages
          WHERE (group_id, sequence) > (?, ?) ORDER BY group_id, sequence LIMIT ?) AS messages
        UNION ALL
        SELECT * FROM (SELECT group_id AS owner, sequence, bytes, accepted_at FROM group_events
          WHERE (group_id, sequence) > (?, ?) ORDER BY group_id, sequence LIMIT ?) AS events) AS of_both
        ORDER BY owner, sequence LIMIT ?) AS rows
      GROUP BY owner ORDER BY owner`,
  },
  channel: {
    tables: 2,
    sql: `SELECT owner, max(sequence) AS last, count(*) AS records,
        CAST(sum(bytes) AS BIGINT) AS bytes, min(accepted_at) AS oldest, max(accepted_at) AS newest,
        CAST(sum(CASE WHEN accepted_at >= ? THEN bytes ELSE 0 END) AS BIGINT) AS recent
      FROM (SELECT owner, sequence, bytes, accepted_at FROM
        (SELECT * FROM (SELECT channel_id AS owner, sequence, bytes, accepted_at FROM channel_events
          WHERE (channel_id, sequence) > (?, ?) ORDER BY channel_id, sequence LIMIT ?) AS readable
        UNION ALL
        SELECT * FROM (SELECT channel_id AS owner, sequence, bytes, accepted_at
          FROM channel_withheld_events
          WHERE (channel_id, sequence) > (?, ?) ORDER BY channel_id, sequence LIMIT ?) AS withheld)
          AS of_both
        ORDER BY owner, sequence LIMIT ?) AS rows
      GROUP BY owner ORDER BY owner`,
  },
} as const satisfies Record<OwnerKind, { readonly tables: number; readonly sql: string }>;

/** What the records of one owner amount to, or a part of them. Times are Unix seconds. */
export interface Amount {
  readonly owner: string;
  readonly records: number;
  /** Bytes of their texts. */
  readonly bytes: number;
  /** Bytes of those accepted since the time that was asked for. */
  readonly recent: number;
  readonly oldest: number;
  readonly newest: number;
}

interface AmountRow extends Row {
  owner: string;
  last: number;
  records: number;
  bytes: number;
  recent: number;
  oldest: number;
  newest: number;
}

/**
 * Adds up the records of owners, in the order of their IDs.
 *
 * @param from the first owner
 * @param found is called once for each owner that has any; returns false to end it
 */
export async function amountsOf(
  storage: Source,
  kind: OwnerKind,
  { since, from = '' }: { readonly since: number; readonly from?: string },
  found: (amount: Amount) => boolean,
): Promise<void> {
  const { sql, tables } = statements[kind];
  let current: Amount | undefined;
  await scan<readonly [string, number], AmountRow[]>(storage, [from, -1], {
    read(tx, position) {
      const places = Array.from({ length: tables }, () => [...position, step]).flat();
      return tx.all<AmountRow>(sql, since, ...places, step);
    },
    take(rows) {
      for (const row of rows) {
        if (current?.owner === row.owner) {
          current = together(current, row);
          continue;
        }
        const isOver = current !== undefined && !found(current);
        current = isOver ? undefined : row;
        if (isOver) return undefined;
      }
      const seen = rows.reduce((sum, { records }) => sum + records, 0);
      const last = rows.at(-1);
      return last === undefined || seen < step ? undefined : [last.owner, last.last];
    },
  });
  if (current !== undefined) found(current);
}

function together(left: Amount, right: Amount): Amount {
  return {
    owner: left.owner,
    records: left.records + right.records,
    bytes: left.bytes + right.bytes,
    recent: left.recent + right.recent,
    oldest: Math.min(left.oldest, right.oldest),
    newest: Math.max(left.newest, right.newest),
  };
}
