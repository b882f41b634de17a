import type { Check } from '../check.ts';
import { groupAccessChecks } from './group-access.ts';
import { groupAdmissionChecks } from './group-admission.ts';
import { groupApplicationChecks } from './group-applications.ts';
import { groupCommonChecks } from './group-common.ts';
import { groupCreateChecks } from './group-create.ts';
import { groupGateChecks } from './group-gate.ts';
import { groupHintChecks } from './group-hints.ts';
import { groupInviteChecks } from './group-invites.ts';
import { groupListChecks } from './group-lists.ts';
import { groupMemberChecks } from './group-members.ts';
import { groupMessageChecks } from './group-messages.ts';
import { groupPropertyChecks } from './group-properties.ts';
import { groupReadChecks } from './group-reads.ts';
import { groupRecoveryChecks } from './group-recovery.ts';
import { groupRotationChecks } from './group-rotation.ts';
import { groupSubscribeChecks } from './group-subscribe.ts';

/** The checks of `group.host.v1`: what is a method's own, then what all have in common. */
export const groupChecks: readonly Check[] = [
  ...groupCreateChecks,
  ...groupPropertyChecks,
  ...groupInviteChecks,
  ...groupApplicationChecks,
  ...groupAdmissionChecks,
  ...groupListChecks,
  ...groupMemberChecks,
  ...groupRecoveryChecks,
  ...groupRotationChecks,
  ...groupReadChecks,
  ...groupAccessChecks,
  ...groupMessageChecks,
  ...groupSubscribeChecks,
  ...groupHintChecks,
  ...Object.values(groupCommonChecks).flat(),
  ...Object.values(groupGateChecks).flat(),
];
