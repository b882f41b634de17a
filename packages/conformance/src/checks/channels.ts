import type { Check } from '../check.ts';
import { channelCloseChecks } from './channel-close.ts';
import { channelCommonChecks } from './channel-common.ts';
import { channelCreateChecks } from './channel-create.ts';
import { channelDeleteChecks } from './channel-delete.ts';
import { channelEditChecks } from './channel-edit.ts';
import { channelGateChecks } from './channel-gate.ts';
import { channelHintChecks } from './channel-hints.ts';
import { channelPatchChecks } from './channel-patch.ts';
import { channelPostChecks } from './channel-post.ts';
import { channelReadChecks } from './channel-read.ts';
import { channelRepeatChecks } from './channel-repeats.ts';
import { channelReportChecks } from './channel-report.ts';
import { channelResolveChecks } from './channel-resolve.ts';
import { channelSubscribeChecks } from './channel-subscribe.ts';
import { channelTargetChecks } from './channel-targets.ts';
import { channelUpdateChecks } from './channel-update.ts';
import { channelDepthChecks } from './depth.ts';

/** The checks of `channel.host.v1`: what all methods have in common, then what is each one's own. */
export const channelChecks: readonly Check[] = [
  ...channelCommonChecks,
  ...channelGateChecks,
  ...channelCreateChecks,
  ...channelResolveChecks,
  ...channelUpdateChecks,
  ...channelCloseChecks,
  ...channelPostChecks,
  ...channelRepeatChecks,
  ...channelTargetChecks,
  ...channelEditChecks,
  ...channelPatchChecks,
  ...channelDeleteChecks,
  ...channelReportChecks,
  ...channelReadChecks,
  ...channelDepthChecks,
  ...channelSubscribeChecks,
  ...channelHintChecks,
];
