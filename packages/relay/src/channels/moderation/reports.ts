/** Reports for the operator: list, show, dismiss (06 §8.10). */
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
  type ReportPosition,
  type ReportScope,
  readAuthorship,
  readReports,
} from './report-store.ts';

/** Reports removed in one transaction, so that the relay's own writes come between. */
const batchSize = 200;

/** Reads reports before a position, the newest first. */
export async function listReports(
  storage: Storage,
  scope: ReportScope,
  range: { readonly before: ReportPosition; readonly limit: number },
): Promise<ListedReport[]> {
  return await storage.read((tx) => readReports(tx, scope, range));
}

/** A post with its status for the operator. */
export interface ReportedPost {
  /** Current name of the channel; `undefined` if this relay hosts no such channel. */
  readonly channelName: string | undefined;
  readonly status: PostStatus;
  /** The account that published it and when, Unix seconds, while stored. */
  readonly account?: string;
  readonly acceptedAt?: number;
  /** When the operator withheld it. */
  readonly withheldAt?: number;
  /** State after all edits; only of a readable or a withheld post. */
  readonly state?: PostState;
}

/** Reads a post as it is now. */
export async function readReportedPost(
  storage: Storage,
  { channelId, sequence }: Omit<ReportKey, 'account'>,
): Promise<ReportedPost> {
  return await storage.read((tx) => readPostStatus(tx, channelId, sequence));
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
  // A deleted post has no event any more.
  if (acceptedAt === null) return { channelName, status, account };
  const state = await readPostState(tx, channelId, found);
  const post = { channelName, account, acceptedAt, state };
  if (withheldAt === null) return { ...post, status };
  return { ...post, status: 'withheld', withheldAt };
}

/**
 * Removes reports about a post, all or those of one account. The accounts can report again.
 *
 * @returns how many there were
 * @throws Error if the database is being moved
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
