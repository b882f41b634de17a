/** All SQL of reports: what accounts told the operator about posts (06 §8.10). */
import { canonicalJson } from '@posthouse/protocol/json';
import type { Reader, Row, SqlValue, Writer } from '../../storage/types.ts';
import type { StoredPost } from '../post-store.ts';

/** The report of an account about a post, as it was last made. */
export interface Report {
  readonly channelId: string;
  /** Of the post. */
  readonly sequence: number;
  readonly account: string;
  readonly deviceId: string;
  readonly reason: string;
  /** Unix seconds. */
  readonly reportedAt: number;
}

/** Which report: an account has one about a post. */
export type ReportKey = Pick<Report, 'channelId' | 'sequence' | 'account'>;

/** Stores a report, in the place of the one the account made before. */
export async function putReport(
  tx: Writer,
  report: Report & { readonly clearAfter: number },
): Promise<void> {
  await tx.run(
    `INSERT INTO channel_reports
        (channel_id, sequence, account, device_id, reason, reported_at, clear_after)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (channel_id, sequence, account) DO UPDATE
        SET device_id = excluded.device_id, reason = excluded.reason,
          reported_at = excluded.reported_at, clear_after = excluded.clear_after`,
    report.channelId,
    report.sequence,
    report.account,
    report.deviceId,
    canonicalJson(report.reason),
    report.reportedAt,
    report.clearAfter,
  );
}

export async function hasReport(tx: Reader, key: ReportKey): Promise<boolean> {
  const found = await tx.get(
    `SELECT account FROM channel_reports
      WHERE channel_id = ? AND sequence = ? AND account = ?`,
    key.channelId,
    key.sequence,
    key.account,
  );
  return found !== undefined;
}

/** Whether so many reports of an account are kept. */
export async function hasReports(tx: Reader, account: string, count: number): Promise<boolean> {
  const last = await tx.get(
    'SELECT account FROM channel_reports WHERE account = ? LIMIT 1 OFFSET ?',
    account,
    count - 1,
  );
  return last !== undefined;
}

/** How many reports there are about a post; counts no further than `most`. */
export async function countReports(
  tx: Reader,
  { channelId, sequence }: Pick<Report, 'channelId' | 'sequence'>,
  most: number,
): Promise<number> {
  const rows = await tx.all(
    'SELECT account FROM channel_reports WHERE channel_id = ? AND sequence = ? LIMIT ?',
    channelId,
    sequence,
    most,
  );
  return rows.length;
}

/** What became of a post; `withheld`: by the operator, `gone`: its retention is over. */
export type PostStatus = 'readable' | 'withheld' | 'deleted' | 'gone';

/** A report with what became of its post. */
export interface ListedReport extends Report {
  readonly post: PostStatus;
}

interface ReportRow extends Row {
  channel_id: string;
  sequence: number;
  account: string;
  device_id: string;
  reason: string;
  reported_at: number;
  post: PostStatus;
}

/** The reports of everything, of a channel, or of a post in it. */
export interface ReportScope {
  readonly channelId?: string | undefined;
  readonly sequence?: number | undefined;
}

/** The newest reports of a scope, the newest last. */
export async function readReports(
  tx: Reader,
  { channelId, sequence }: ReportScope,
  most: number,
): Promise<ListedReport[]> {
  const asked: [string, SqlValue | undefined][] = [
    ['r.channel_id = ?', channelId],
    ['r.sequence = ?', sequence],
  ];
  const given = asked.filter(([, value]) => value !== undefined);
  const where = given.map(([condition]) => condition).join(' AND ') || 'r.reported_at >= 0';
  const rows = await tx.all<ReportRow>(
    `SELECT r.channel_id, r.sequence, r.account, r.device_id, r.reason, r.reported_at,
        CASE WHEN p.withheld_at IS NULL THEN COALESCE(p.status, 'gone') ELSE 'withheld' END AS post
      FROM channel_reports r
      LEFT JOIN channel_posts p ON p.channel_id = r.channel_id AND p.sequence = r.sequence
      WHERE ${where}
      ORDER BY r.reported_at DESC, r.channel_id DESC, r.sequence DESC, r.account DESC LIMIT ?`,
    ...given.map(([, value]) => value as SqlValue),
    most,
  );
  return rows.reverse().map(({ post, ...row }) => ({
    channelId: row.channel_id,
    sequence: row.sequence,
    account: row.account,
    deviceId: row.device_id,
    reason: JSON.parse(row.reason) as string,
    reportedAt: row.reported_at,
    post,
  }));
}

interface AuthorshipRow extends StoredPost {
  account: string;
  accepted_at: number | null;
}

/** A post whose row is kept with who published it, and when, as long as its event is there. */
export async function readAuthorship(
  tx: Reader,
  channelId: string,
  sequence: number,
): Promise<AuthorshipRow | undefined> {
  return await tx.get<AuthorshipRow>(
    `SELECT p.sequence, p.account, p.status, p.keep_until, p.withheld_at,
        COALESCE(e.accepted_at, w.accepted_at) AS accepted_at
      FROM channel_posts p
      LEFT JOIN channel_events e ON e.channel_id = p.channel_id AND e.sequence = p.sequence
      LEFT JOIN channel_withheld_events w
        ON w.channel_id = p.channel_id AND w.sequence = p.sequence
      WHERE p.channel_id = ? AND p.sequence = ?`,
    channelId,
    sequence,
  );
}

/** Removes reports about a post, all or those of one account; says how many. */
export async function deleteReports(
  tx: Writer,
  {
    channelId,
    sequence,
    account,
  }: Omit<ReportKey, 'account'> & { readonly account?: string | undefined },
  portion: number,
): Promise<number> {
  return await tx.run(
    `DELETE FROM channel_reports WHERE channel_id = ? AND sequence = ? AND account IN
      (SELECT account FROM channel_reports
        WHERE channel_id = ? AND sequence = ?${account === undefined ? '' : ' AND account = ?'}
        LIMIT ?)`,
    channelId,
    sequence,
    channelId,
    sequence,
    ...(account === undefined ? [] : [account]),
    portion,
  );
}

/** Removes reports that were kept for the operator long enough; says how many went. */
export async function deleteDueReports(tx: Writer, now: number, portion: number): Promise<number> {
  // The deadline stands outside too: one that was replaced meanwhile has another.
  return await tx.run(
    `DELETE FROM channel_reports
      WHERE clear_after <= ? AND (channel_id, sequence, account) IN
        (SELECT channel_id, sequence, account FROM channel_reports WHERE clear_after <= ? LIMIT ?)`,
    now,
    now,
    portion,
  );
}
