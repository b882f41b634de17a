import { checkChannelPostReport, ProtocolError } from '@posthouse/protocol';
import { confirmDevice } from '../../accounts/index.ts';
import type { Handler } from '../../dispatch/handler.ts';
import { postReported } from '../../observability/events.ts';
import {
  countReports,
  hasReport,
  hasReportSince,
  putReport,
  readReportQuotaEnd,
} from '../moderation/report-store.ts';
import { requireReadablePost } from '../write-access.ts';

/** Highest number of reports of one post that the log counts. */
const countLimit = 100;

/** Seconds in which the reports of one account are one log line. */
const logInterval = 60;

/** `channel.post.report` (06 §8.10). */
export const channelPostReport: Handler<'channel.post.report'> = async (context, call) => {
  const { clock, limits, storage } = context;
  const session = call.session;
  const { params } = call;
  checkChannelPostReport(params, limits.channelReportReason);
  const { channel_id: channelId, target_sequence: sequence, reason } = params;
  const { account, deviceId } = session;
  // The channel does not change, so its writers need not wait: a report concurrent with a deletion
  // counts as made before it. Only the account's number of reports needs the lock.
  const { replaces, count, isFirst } = await storage.write(
    `channel-reports:${account}`,
    async (tx) => {
      const now = clock.now();
      await confirmDevice(context, tx, { session, now });
      await requireReadablePost(tx, channelId, sequence);
      const replaces = await hasReport(tx, { channelId, sequence, account });
      if (!replaces) {
        const end = await readReportQuotaEnd(tx, account, limits.channelReports);
        if (end !== undefined) throw overQuota(end - now);
      }
      const clearAfter = now + limits.channelReportPeriod;
      const isFirst = !(await hasReportSince(tx, account, now - (now % logInterval)));
      const report = {
        channelId,
        sequence,
        account,
        deviceId,
        reason,
        reportedAt: now,
        clearAfter,
      };
      await putReport(tx, report);
      return { replaces, isFirst, count: await countReports(tx, report, countLimit) };
    },
  );
  postReported(context, { channel: channelId, sequence, count, replaces, isLogged: isFirst });
  return { result: null };
};

/** @param seconds until a stored report ends; its removal may take a moment longer */
function overQuota(seconds: number): ProtocolError {
  const data = { retry_after: Math.max(1, seconds) };
  return new ProtocolError('rate_limited', 'the account has made too many reports', { data });
}
