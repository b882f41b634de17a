/** All SQL of reports that accounts make about posts (06 §8.10). */
import { canonicalJson } from '@posthouse/protocol/json';
import type { Reader, Row, SqlValue, Writer } from '../../storage/types.ts';
import type { StoredPost } from '../post-store.ts';

/** The latest report of an account about a post. */
export interface Report {
  readonly channelId: string;
  /** Sequence of the post. */
  readonly sequence: number;
  readonly account: string;
  readonly deviceId: string;
  readonly reason: string;
  /** Unix seconds. */
  readonly reportedAt: number;
}

/** Key of a report: an account has one about a post. */
export type ReportKey = Pick<Report, 'channelId' | 'sequence' | 'account'>;

/** Stores a report and replaces the account's earlier one about the post. */
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

/** Tells whether an account's report was stored at or after an instant, Unix seconds. */
export async function hasReportSince(
  tx: Reader,
  account: string,
  instant: number,
): Promise<boolean> {
  const found = await tx.get(
    'SELECT account FROM channel_reports WHERE account = ? AND reported_at >= ? LIMIT 1',
    account,
    instant,
  );
  return found !== undefined;
}

/**
 * Returns when fewer than `quota` reports of an account will be stored, Unix seconds; `undefined` if
 * fewer are stored now.
 */
export async function readReportQuotaEnd(
  tx: Reader,
  account: string,
  quota: number,
): Promise<number | undefined> {
  const row = await tx.get<{ clear_after: number }>(
    `SELECT clear_after FROM channel_reports WHERE account = ?
      ORDER BY clear_after DESC LIMIT 1 OFFSET ?`,
    account,
    quota - 1,
  );
  return row?.clear_after;
}

/** Counts the reports about a post, up to `limit`. */
export async function countReports(
  tx: Reader,
  { channelId, sequence }: Pick<Report, 'channelId' | 'sequence'>,
  limit: number,
): Promise<number> {
  const rows = await tx.all(
    'SELECT account FROM channel_reports WHERE channel_id = ? AND sequence = ? LIMIT ?',
    channelId,
    sequence,
    limit,
  );
  return rows.length;
}

/** Status of a post; `withheld`: by the operator, `gone`: its retention is over. */
export type PostStatus = 'readable' | 'withheld' | 'deleted' | 'gone';

/** A report with the status of its post. */
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

/** Selects all reports, those of a channel, or those of a post in it. */
export interface ReportScope {
  readonly channelId?: string | undefined;
  readonly sequence?: number | undefined;
}

/** The order of reports: by time, channel, sequence and account. */
export type ReportPosition = readonly [at: number, channelId: string, sequence: number, by: string];

/** After the newest report. */
export const lastReport: ReportPosition = [Number.MAX_SAFE_INTEGER, '', 0, ''];

/** Reads reports of a scope before a position, the newest first. */
export async function readReports(
  tx: Reader,
  { channelId, sequence }: ReportScope,
  { before, limit }: { readonly before: ReportPosition; readonly limit: number },
): Promise<ListedReport[]> {
  const conditions: [string, SqlValue | undefined][] = [
    ['r.channel_id = ?', channelId],
    ['r.sequence = ?', sequence],
  ];
  const given = conditions.filter(([, value]) => value !== undefined);
  const where = given.map(([condition]) => `${condition} AND `).join('');
  const rows = await tx.all<ReportRow>(
    `SELECT r.channel_id, r.sequence, r.account, r.device_id, r.reason, r.reported_at,
        CASE WHEN p.withheld_at IS NULL THEN COALESCE(p.status, 'gone') ELSE 'withheld' END AS post
      FROM channel_reports r
      LEFT JOIN channel_posts p ON p.channel_id = r.channel_id AND p.sequence = r.sequence
      WHERE ${where}(r.reported_at, r.channel_id, r.sequence, r.account) < (?, ?, ?, ?)
      ORDER BY r.reported_at DESC, r.channel_id DESC, r.sequence DESC, r.account DESC LIMIT ?`,
    ...given.map(([, value]) => value as SqlValue),
    ...before,
    limit,
  );
  return rows.map(({ post, ...row }) => ({
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

/** Reads a stored post with its account, and with its time as long as its event is stored. */
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

/** Removes reports about a post, all or those of one account; returns how many. */
export async function deleteReports(
  tx: Writer,
  {
    channelId,
    sequence,
    account,
  }: Omit<ReportKey, 'account'> & { readonly account?: string | undefined },
  batchSize: number,
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
    batchSize,
  );
}

/** Removes reports past their deadline; returns how many. */
export async function deleteDueReports(
  tx: Writer,
  now: number,
  batchSize: number,
): Promise<number> {
  // The outer condition has the deadline too: a report replaced meanwhile has another one.
  return await tx.run(
    `DELETE FROM channel_reports
      WHERE clear_after <= ? AND (channel_id, sequence, account) IN
        (SELECT channel_id, sequence, account FROM channel_reports WHERE clear_after <= ? LIMIT ?)`,
    now,
    now,
    batchSize,
  );
}

/** Removes the reports that an account made. */
export async function deleteReportsBy(tx: Writer, account: string): Promise<void> {
  await tx.run('DELETE FROM channel_reports WHERE account = ?', account);
}
