import type { Check } from '../../check.ts';
import { channelNestingChecks } from '../nesting.ts';
import { channelAuthorizationChecks } from './authorization.ts';
import { channelCloseChecks } from './close.ts';
import { channelCommonChecks } from './common.ts';
import { channelCreateChecks } from './create.ts';
import { channelDeleteChecks } from './delete.ts';
import { channelEditChecks } from './edit.ts';
import { channelHintChecks } from './hints.ts';
import { channelPatchChecks } from './patch.ts';
import { channelPostChecks } from './post.ts';
import { channelReadChecks } from './read.ts';
import { channelRepeatChecks } from './repeats.ts';
import { channelReportChecks } from './report.ts';
import { channelResolveChecks } from './resolve.ts';
import { channelSubscribeChecks } from './subscribe.ts';
import { channelTargetChecks } from './targets.ts';
import { channelUpdateChecks } from './update.ts';

/** The checks of `channel.host.v1`: rules of all methods, then rules of each method. */
export const channelChecks: readonly Check[] = [
  ...channelCommonChecks,
  ...channelAuthorizationChecks,
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
  ...channelNestingChecks,
  ...channelSubscribeChecks,
  ...channelHintChecks,
];
