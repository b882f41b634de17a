import {
  chunksAtOnce,
  closedUpgrades,
  emptyFragments,
  malformedRequests,
  pipelinedHeads,
  pipelinedPosts,
  pipelinedTiny,
  pipelinedUnknown,
} from './at-once.ts';
import type { Attack } from './attack.ts';
import { churn } from './churn.ts';
import { foreignLock } from './foreign-lock.ts';
import { forgedProxy } from './forged-proxy.ts';
import { moveOnFullDisk } from './full-disk.ts';
import { halfOpen } from './half-open.ts';
import { hotAccounts } from './hot-accounts.ts';
import { hotGroups } from './hot-groups.ts';
import { idleConnections, manyIdleConnections } from './idle-connections.ts';
import { largeBodies } from './large-bodies.ts';
import { manySessions } from './many-sessions.ts';
import { neverReading } from './never-reading.ts';
import { newcomers } from './newcomers.ts';
import { apiDocuments, preflights, unknownPaths } from './no-methods.ts';
import { pings } from './pings.ts';
import { pipelining } from './pipelining.ts';
import { keySync, outsiderBan, refusedForRate, unknownMembers } from './prices.ts';
import { slowloris } from './slowloris.ts';
import {
  chunkExtensions,
  owedChunks,
  smallChunks,
  smallRecords,
  tinyHeaderRecords,
  trailers,
} from './small-pieces.ts';
import { subscribedNeverReading } from './subscribed.ts';
import { unfinishedBodies } from './unfinished-bodies.ts';
import { unfinishedMessages } from './unfinished-messages.ts';
import { waves } from './waves.ts';
import { natsCut } from './without-bus.ts';
import { wrongSignatures } from './wrong-signatures.ts';

/** Every row, by the name that `--rows` takes. */
export const attacks: Readonly<Record<string, Attack>> = {
  pings,
  waves,
  'small-chunks': smallChunks,
  'owed-chunks': owedChunks,
  'small-records': smallRecords,
  'tiny-header-records': tinyHeaderRecords,
  'chunk-extensions': chunkExtensions,
  trailers,
  'chunks-at-once': chunksAtOnce,
  'pipelined-tiny': pipelinedTiny,
  'pipelined-unknown': pipelinedUnknown,
  'pipelined-posts': pipelinedPosts,
  'pipelined-heads': pipelinedHeads,
  'malformed-requests': malformedRequests,
  'closed-upgrades': closedUpgrades,
  'empty-fragments': emptyFragments,
  'unfinished-messages': unfinishedMessages,
  'unfinished-bodies': unfinishedBodies,
  pipelining,
  'never-reading': neverReading,
  'large-bodies': largeBodies,
  'idle-connections': idleConnections,
  'many-idle-connections': manyIdleConnections,
  slowloris,
  'half-open': halfOpen,
  churn,
  'subscribed-never-reading': subscribedNeverReading,
  'wrong-signatures': wrongSignatures,
  'forged-proxy': forgedProxy,
  newcomers,
  'many-sessions': manySessions,
  'hot-accounts': hotAccounts,
  'hot-groups': hotGroups,
  'key-sync': keySync,
  'outsider-ban': outsiderBan,
  'unknown-members': unknownMembers,
  'refused-for-rate': refusedForRate,
  'unknown-paths': unknownPaths,
  preflights,
  'api-documents': apiDocuments,
  'foreign-lock': foreignLock,
  'nats-cut': natsCut,
  'move-full-disk': moveOnFullDisk,
};
