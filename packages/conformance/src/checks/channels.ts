import type { Check } from '../check.ts';
import { channelCloseChecks } from './channel-close.ts';
import { channelCommonChecks } from './channel-common.ts';
import { channelCreateChecks } from './channel-create.ts';
import { channelGateChecks } from './channel-gate.ts';
import { channelResolveChecks } from './channel-resolve.ts';
import { channelUpdateChecks } from './channel-update.ts';

/** The checks of `channel.host.v1`: what all methods have in common, then what is each one's own. */
export const channelChecks: readonly Check[] = [
  ...channelCommonChecks,
  ...channelGateChecks,
  ...channelCreateChecks,
  ...channelResolveChecks,
  ...channelUpdateChecks,
  ...channelCloseChecks,
];
