/** Formats posts and reports for terminals and as JSON, without control characters of strangers. */

import type { PostState } from '@posthouse/protocol';
import { terminalColumns, terminalText } from '@posthouse/protocol/terminal';
import { instant, oneLine, shortened } from './terminal-output.ts';

/** Members of the parameters of verbs about a post. */
export interface PostAddress {
  readonly channel_id: string;
  readonly sequence: number;
}

/** A report, as the verbs list it. */
export interface Report extends PostAddress {
  readonly post: string;
  readonly account: string;
  readonly device_id: string;
  readonly reported_at: number;
  readonly reason: string;
}

/** A post, as the verbs show it. */
export interface ShownPost extends PostAddress {
  readonly post: keyof typeof statusTexts;
  readonly channel_name?: string;
  readonly account?: string;
  readonly accepted_at?: number;
  readonly withheld_at?: number;
  readonly state?: PostState;
}

/** Names a post in a message. */
export function postName({ channel_id, sequence }: PostAddress): string {
  return `post ${sequence} of ${channel_id}`;
}

/** Formats a table of reports. */
export function reportTable(reports: readonly Report[]): string[] {
  const rows = reports.map((report) => [
    instant(report.reported_at),
    report.channel_id,
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
export function postLines(post: ShownPost): string[] {
  const { account, accepted_at, withheld_at, state } = post;
  const { body, attachments = [] } = state ?? {};
  const rows = [
    ['channel', `${post.channel_id} ${oneLine(post.channel_name ?? '')}`.trimEnd()],
    ['post', `${post.sequence}, ${statusTexts[post.post]}`],
    ...(account === undefined ? [] : [['by', account]]),
    ...(accepted_at === undefined ? [] : [['at', instant(accepted_at)]]),
    ...(withheld_at === undefined ? [] : [['withheld', instant(withheld_at)]]),
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
export function reportLines(reports: readonly Report[]): string[] {
  if (reports.length === 0) return ['no reports'];
  return reports.flatMap(({ reported_at, account, device_id, reason }) => [
    `reported ${instant(reported_at)} by ${account} (${device_id})`,
    `    ${terminalText(reason)}`,
  ]);
}
