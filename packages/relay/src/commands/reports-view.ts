/** How posts and reports look on a terminal, and as JSON; what strangers wrote commands neither. */
import { terminalColumns, terminalLine, terminalText } from '@posthouse/protocol/terminal';
import type { ListedReport, ReportedPost } from '../channels/index.ts';
import type { Named } from './reports-arguments.ts';

export function place({ channelId, sequence }: Named): string {
  return `post ${sequence} of ${channelId}`;
}

export function print(lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${line}\n`);
}

/** A remark that is not part of the result. */
export function note(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** Characters of a reason in the table. */
const shortReason = 60;

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

/** Text of somebody else as one line. */
function oneLine(text: string): string {
  return terminalLine(text.replaceAll('\n', ' '));
}

/** As {@link oneLine}, no longer than the table has room for. */
function shortened(text: string): string {
  const characters = [...oneLine(text)];
  if (characters.length <= shortReason) return characters.join('');
  return `${characters.slice(0, shortReason - 1).join('')}…`;
}

/** As logs have it. */
export function instant(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().replace('.000', '');
}

const fates = {
  readable: 'readable',
  withheld: 'withheld from its channel',
  deleted: 'deleted by the owner or a moderator',
  gone: 'not there: its retention is over, or there never was one',
} as const;

export function postLines(named: Named, post: ReportedPost): string[] {
  const { channelName, account, acceptedAt, withheldAt, state } = post;
  const { body, attachments = [] } = state ?? {};
  const rows = [
    ['channel', `${named.channelId} ${oneLine(channelName ?? '')}`.trimEnd()],
    ['post', `${named.sequence}, ${fates[post.status]}`],
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

export function reportLines(reports: readonly ListedReport[]): string[] {
  if (reports.length === 0) return ['no reports'];
  return reports.flatMap(({ reportedAt, account, deviceId, reason }) => [
    `reported ${instant(reportedAt)} by ${account} (${deviceId})`,
    `    ${terminalText(reason)}`,
  ]);
}

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

export function wireOfPost({ channelId, sequence }: Named, post: ReportedPost): object {
  const { channelName: channel_name, account, acceptedAt: accepted_at } = post;
  const { withheldAt: withheld_at, state } = post;
  const facts = { channel_name, account, accepted_at, withheld_at, state };
  return { channel_id: channelId, sequence, post: post.status, ...facts };
}
