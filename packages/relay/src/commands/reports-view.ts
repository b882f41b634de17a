/** Formats posts and reports for terminals and as JSON, without control characters of strangers. */
import { terminalColumns, terminalText } from '@posthouse/protocol/terminal';
import type { ListedReport, ReportedPost } from '../channels/index.ts';
import type { PostAddress } from './reports-arguments.ts';
import { instant, oneLine, shortened } from './terminal-output.ts';

/** Names a post in a message. */
export function postName({ channelId, sequence }: PostAddress): string {
  return `post ${sequence} of ${channelId}`;
}

/** Formats a table of reports. */
export function reportTable(reports: readonly ListedReport[]): string[] {
  const rows = reports.map((report) => [
    instant(report.reportedAt),
    report.channelId,
    String(report.sequence),
    report.post,
    report.account,
    shortened(report.reason),
  ]);
  return terminalColumns([['reported', 'channel', 'post', 'is', 'by', 'reason'], ...rows]);
}

const statusTexts = {
  readable: 'readable',
  withheld: 'withheld from its channel',
  deleted: 'deleted by the owner or a moderator',
  gone: 'gone: its retention is over, or it never existed',
} as const;

/** Formats a post. */
export function postLines(address: PostAddress, post: ReportedPost): string[] {
  const { channelName, account, acceptedAt, withheldAt, state } = post;
  const { body, attachments = [] } = state ?? {};
  const rows = [
    ['channel', `${address.channelId} ${oneLine(channelName ?? '')}`.trimEnd()],
    ['post', `${address.sequence}, ${statusTexts[post.status]}`],
    ...(account === undefined ? [] : [['by', account]]),
    ...(acceptedAt === undefined ? [] : [['at', instant(acceptedAt)]]),
    ...(withheldAt === undefined ? [] : [['withheld', instant(withheldAt)]]),
    ...attachments.map(({ uri, content_type, size }) => [
      'attachment',
      oneLine(`${uri} (${content_type}, ${size} bytes)`),
    ]),
    ...(body === undefined ? [] : [['text', oneLine(body.content_type)]]),
  ];
  const lines = terminalColumns(rows);
  return body === undefined ? lines : [...lines, `    ${terminalText(body.text)}`];
}

/** Formats the reports about one post. */
export function reportLines(reports: readonly ListedReport[]): string[] {
  if (reports.length === 0) return ['no reports'];
  return reports.flatMap(({ reportedAt, account, deviceId, reason }) => [
    `reported ${instant(reportedAt)} by ${account} (${deviceId})`,
    `    ${terminalText(reason)}`,
  ]);
}

/** Converts a report to its JSON form. */
export function wireOf(report: ListedReport): object {
  return {
    channel_id: report.channelId,
    sequence: report.sequence,
    post: report.post,
    account: report.account,
    device_id: report.deviceId,
    reported_at: report.reportedAt,
    reason: report.reason,
  };
}

/** Converts a post to its JSON form. */
export function wireOfPost({ channelId, sequence }: PostAddress, post: ReportedPost): object {
  const { channelName: channel_name, account, acceptedAt: accepted_at } = post;
  const { withheldAt: withheld_at, state } = post;
  const facts = { channel_name, account, accepted_at, withheld_at, state };
  return { channel_id: channelId, sequence, post: post.status, ...facts };
}
