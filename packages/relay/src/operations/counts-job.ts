/** Counts accounts, groups and channels for the metrics, a few hundred rows at a time. */
import type { Job, RelayContext } from '../context.ts';
import { countedAtHome } from '../observability/events.ts';
import type { Row } from '../storage/types.ts';

/** Seconds between two counts. */
const interval = 600;
/** Rows of one read: less than a millisecond. */
const step = 500;

/** For each kind: the rows after an ID, of which `counted` are at home here, or not closed. */
const statements = {
  accounts: `SELECT max(id) AS last, count(*) AS seen,
      sum(CASE WHEN relay = ? AND route <> '' THEN 1 ELSE 0 END) AS counted
    FROM (SELECT account AS id, relay_id AS relay, route FROM account_routes WHERE account > ?
      ORDER BY account LIMIT ?) AS rows`,
  groups: `SELECT max(id) AS last, count(*) AS seen,
      sum(CASE WHEN status <> 'closed' AND ? <> '' THEN 1 ELSE 0 END) AS counted
    FROM (SELECT group_id AS id, status FROM groups WHERE group_id > ?
      ORDER BY group_id LIMIT ?) AS rows`,
  channels: `SELECT max(id) AS last, count(*) AS seen,
      sum(CASE WHEN status <> 'closed' AND ? <> '' THEN 1 ELSE 0 END) AS counted
    FROM (SELECT channel_id AS id, status FROM channels WHERE channel_id > ?
      ORDER BY channel_id LIMIT ?) AS rows`,
} as const;

/** Kinds that are counted. */
type Counted = keyof typeof statements;

interface CountRow extends Row {
  last: string | null;
  seen: number;
  counted: number | null;
}

/** The job that counts; a kind of a module that this relay does not host is counted too. */
export const countsJob: Job = {
  name: 'operations.counts',
  async run(context, signal) {
    for (const kind of Object.keys(statements) as Counted[]) {
      const count = await countRows(context, kind, signal);
      if (signal.aborted) break;
      countedAtHome(context, { kind, count });
    }
    return context.clock.now() + interval;
  },
};

async function countRows(
  { identity, storage }: Pick<RelayContext, 'identity' | 'storage'>,
  kind: Counted,
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  for (let after = ''; !signal.aborted; ) {
    const row = await storage.read((tx) =>
      tx.get<CountRow>(statements[kind], identity.relayId, after, step),
    );
    count += row?.counted ?? 0;
    if (row === undefined || row.last === null || row.seen < step) break;
    after = row.last;
  }
  return count;
}
