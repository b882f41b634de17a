import type { Check } from '../check.ts';
import { groupAccessChecks } from './group-access.ts';
import { groupAdmissionChecks } from './group-admission.ts';
import { groupApplicationChecks } from './group-applications.ts';
import { groupBanChecks } from './group-bans.ts';
import { groupCapacityChecks } from './group-capacity.ts';
import { groupCommonChecks } from './group-common.ts';
import { groupCreateChecks } from './group-create.ts';
import { groupGateChecks } from './group-gate.ts';
import { groupHintChecks } from './group-hints.ts';
import { groupInviteChecks } from './group-invites.ts';
import { groupLaterChecks } from './group-later.ts';
import { groupListChecks } from './group-lists.ts';
import { groupMemberChecks } from './group-members.ts';
import { groupMessageChecks } from './group-messages.ts';
import { groupPropertyChecks } from './group-properties.ts';
import { groupReadChecks } from './group-reads.ts';
import { groupRecoveryChecks } from './group-recovery.ts';
import { groupRekeyingChecks } from './group-rekeying.ts';
import { groupRevocationChecks } from './group-revocation.ts';
import { groupRotationChecks } from './group-rotation.ts';
import { groupStagingChecks } from './group-staging.ts';
import { groupSubscribeChecks } from './group-subscribe.ts';
import { groupWaitChecks } from './group-waits.ts';

/** The checks of `group.host.v1`: what all methods have in common, then what is each one's own. */
export const groupChecks: readonly Check[] = [
  ...groupCommonChecks,
  ...groupGateChecks,
  ...groupCreateChecks,
  ...groupPropertyChecks,
  ...groupInviteChecks,
  ...groupRevocationChecks,
  ...groupApplicationChecks,
  ...groupAdmissionChecks,
  ...groupCapacityChecks,
  ...groupListChecks,
  ...groupMemberChecks,
  ...groupBanChecks,
  ...groupRecoveryChecks,
  ...groupRekeyingChecks,
  ...groupStagingChecks,
  ...groupRotationChecks,
  ...groupReadChecks,
  ...groupAccessChecks,
  ...groupMessageChecks,
  ...groupSubscribeChecks,
  ...groupHintChecks,
  ...groupLaterChecks,
  ...groupWaitChecks,
];
