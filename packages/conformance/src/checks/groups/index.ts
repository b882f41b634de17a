import type { Check } from '../../check.ts';
import { groupAccessChecks } from './access.ts';
import { groupAdmissionChecks } from './admission.ts';
import { groupApplicationChecks } from './applications.ts';
import { groupAuthorizationChecks } from './authorization.ts';
import { groupBanChecks } from './bans.ts';
import { groupCapacityChecks } from './capacity.ts';
import { groupCommonChecks } from './common.ts';
import { groupCreateChecks } from './create.ts';
import { groupExpiryChecks } from './expiry.ts';
import { groupHintChecks } from './hints.ts';
import { groupInviteChecks } from './invites.ts';
import { groupListChecks } from './lists.ts';
import { groupLongPeriodChecks } from './long-periods.ts';
import { groupMemberChecks } from './members.ts';
import { groupMessageChecks } from './messages.ts';
import { groupPropertyChecks } from './properties.ts';
import { groupReadChecks } from './reads.ts';
import { groupRecoveryChecks } from './recovery.ts';
import { groupRekeyingChecks } from './rekeying.ts';
import { groupRevocationChecks } from './revocation.ts';
import { groupRotationChecks } from './rotation.ts';
import { groupStagingChecks } from './staging.ts';
import { groupSubscribeChecks } from './subscribe.ts';

/** The checks of `group.host.v1`: rules of all methods, then rules of each method. */
export const groupChecks: readonly Check[] = [
  ...groupCommonChecks,
  ...groupAuthorizationChecks,
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
  ...groupExpiryChecks,
  ...groupLongPeriodChecks,
];
