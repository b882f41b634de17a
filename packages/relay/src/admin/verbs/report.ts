/** `report`: what readers reported to the operator, and posts that the operator withholds (06 §8.10). */
import {
  AccountId,
  ChannelId,
  ProtocolError,
  type Static,
  TargetSequence,
  Type,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import {
  dismissReports,
  type ListedReport,
  lastReport,
  lastWithheld,
  listReports,
  listWithheld,
  type ReportedPost,
  readReportedPost,
  restorePost,
  type WithheldPost,
  withholdPost,
} from '../../channels/index.ts';
import { pageParams, readPage } from '../pages.ts';
import { defineVerb, type Verb } from '../verb.ts';

const PostKey = Type.Object({ channel_id: ChannelId, sequence: TargetSequence });

const keyOf = ({ channel_id, sequence }: Static<typeof PostKey>) => ({
  channelId: channel_id,
  sequence,
});

/** Names a post in messages and log lines. */
const nameOf = ({ channel_id, sequence }: Static<typeof PostKey>) =>
  `post ${sequence} of ${channel_id}`;

const list = defineVerb({
  noun: 'report',
  name: 'list',
  description:
    'Lists reports, the newest first: all, those of a channel, or those of a post in it.',
  params: Type.Object({
    ...pageParams,
    channel_id: Type.Optional(ChannelId),
    sequence: Type.Optional(TargetSequence),
  }),
  changes: false,
  run: ({ storage }, params) =>
    readPage({
      params,
      start: lastReport,
      read: async (before, limit) => {
        const { channel_id: channelId, sequence } = params;
        return await listReports(storage, { channelId, sequence }, { before, limit });
      },
      positionOf: ({ reportedAt, channelId, sequence, account }) =>
        [reportedAt, channelId, sequence, account] as const,
      wireOf: reportWire,
    }),
});

const show = defineVerb({
  noun: 'report',
  name: 'show',
  description: 'Shows the current state of a post; `report list` has the reports about it.',
  params: PostKey,
  changes: false,
  run: async ({ storage }, params) =>
    postWire(params, await readReportedPost(storage, keyOf(params))),
});

const dismiss = defineVerb({
  noun: 'report',
  name: 'dismiss',
  description: 'Removes the reports about a post, all or those of one account.',
  params: Type.Object({ ...PostKey.properties, account: Type.Optional(AccountId) }),
  changes: true,
  subject: nameOf,
  async run({ storage }, { account, ...key }) {
    const dismissed = await dismissReports(storage, { ...keyOf(key), account });
    if (dismissed > 0) return { dismissed };
    const by = account === undefined ? '' : ` by ${account}`;
    throw new ProtocolError('not_found', `${nameOf(key)}: no reports${by} to dismiss`);
  },
});

const withhold = defineVerb({
  noun: 'report',
  name: 'withhold',
  description: "Hides a post from its channel's timeline, and dismisses its reports.",
  params: PostKey,
  changes: true,
  subject: (key, { is_new }) => (is_new === true ? nameOf(key) : undefined),
  async run({ storage, clock }, key) {
    const { isNew, reports } = await withholdPost(storage, keyOf(key), clock.now());
    return { is_new: isNew, dismissed: reports };
  },
});

const restore = defineVerb({
  noun: 'report',
  name: 'restore',
  description: 'Makes a withheld post readable again, with all its edits.',
  params: PostKey,
  changes: true,
  subject: nameOf,
  async run({ storage }, key) {
    await restorePost(storage, keyOf(key));
    return { ...key };
  },
});

const withheld = defineVerb({
  noun: 'report',
  name: 'withheld',
  description: 'Lists withheld posts, the newest first.',
  params: Type.Object(pageParams),
  changes: false,
  run: ({ storage }, params) =>
    readPage({
      params,
      start: lastWithheld,
      read: (before, limit) => listWithheld(storage, { before, limit }),
      positionOf: ({ withheldAt, channelId, sequence }) =>
        [withheldAt, channelId, sequence] as const,
      wireOf: withheldWire,
    }),
});

function reportWire(report: ListedReport): JsonObject {
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

/** Members that are not known are absent. */
function postWire(key: Static<typeof PostKey>, post: ReportedPost): JsonObject {
  const { channelName: channel_name, account, acceptedAt: accepted_at } = post;
  const { withheldAt: withheld_at, state } = post;
  const facts = { channel_name, account, accepted_at, withheld_at, state };
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  return { ...key, post: post.status, ...(Object.fromEntries(known) as JsonObject) };
}

function withheldWire(post: WithheldPost): JsonObject {
  return {
    channel_id: post.channelId,
    sequence: post.sequence,
    account: post.account,
    withheld_at: post.withheldAt,
    keep_until: post.keepUntil,
  };
}

export const reportVerbs: readonly Verb[] = [list, show, dismiss, withhold, restore, withheld];
