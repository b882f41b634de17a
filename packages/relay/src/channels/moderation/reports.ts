/** What an operator sees of reports, and does with them (06 §8.10). */
import type { PostState } from '@posthouse/protocol';
import { requireInService } from '../../storage/move/mark.ts';
import type { Reader, Storage } from '../../storage/types.ts';
import { readChannel } from '../channel-store.ts';
import { currentDescriptor } from '../descriptors.ts';
import { readPostState } from '../post-store.ts';
import {
  deleteReports,
  type ListedReport,
  type PostStatus,
  type ReportKey,
  type ReportScope,
  readAuthorship,
  readReports,
} from './report-store.ts';

/** Reports removed in one transaction: the relay's own writes come between. */
const batchSize = 200;

/** The newest reports, the newest last. */
export async function listReports(
  storage: Storage,
  scope: ReportScope,
  most: number,
): Promise<ListedReport[]> {
  return await storage.read((tx) => readReports(tx, scope, most));
}

/** A post as the operator sees it. */
export interface ReportedPost {
  /** Name of the channel now; `undefined` where this relay hosts no such channel. */
  readonly channelName: string | undefined;
  readonly status: PostStatus;
  /** Who published it and when, Unix seconds, while that is known. */
  readonly account?: string;
  readonly acceptedAt?: number;
  /** When the operator withheld it. */
  readonly withheldAt?: number;
  /** What edits have made of it; of a readable or a withheld one. */
  readonly state?: PostState;
}

/** A post with the newest reports about it, the newest last. */
export async function readReportedPost(
  storage: Storage,
  { channelId, sequence }: Omit<ReportKey, 'account'>,
  most: number,
): Promise<{ readonly post: ReportedPost; readonly reports: readonly ListedReport[] }> {
  return await storage.read(async (tx) => ({
    post: await readPostStatus(tx, channelId, sequence),
    reports: await readReports(tx, { channelId, sequence }, most),
  }));
}

async function readPostStatus(
  tx: Reader,
  channelId: string,
  sequence: number,
): Promise<ReportedPost> {
  const channel = await readChannel(tx, channelId);
  if (channel === undefined) return { channelName: undefined, status: 'gone' };
  const channelName = (await currentDescriptor(tx, channel)).name;
  const found = await readAuthorship(tx, channelId, sequence);
  if (found === undefined) return { channelName, status: 'gone' };
  const { account, status, accepted_at: acceptedAt, withheld_at: withheldAt } = found;
  // The event of a deleted post is gone.
  if (acceptedAt === null) return { channelName, status, account };
  const state = await readPostState(tx, channelId, found);
  const post = { channelName, account, acceptedAt, state };
  if (withheldAt === null) return { ...post, status };
  return { ...post, status: 'withheld', withheldAt };
}

/**
 * Removes reports about a post, all or those of one account; who made them can make others.
 *
 * @returns how many there were
 * @throws Error where the database is being moved
 */
export async function dismissReports(
  storage: Storage,
  which: Omit<ReportKey, 'account'> & { readonly account?: string | undefined },
): Promise<number> {
  for (let total = 0; ; ) {
    const count = await storage.write('channels.jobs', async (tx) => {
      await requireInService(tx);
      return await deleteReports(tx, which, batchSize);
    });
    total += count;
    if (count < batchSize) return total;
  }
}
