export {
  closeAccess,
  type DeviceAccess,
  hasOpenAccess,
  mayReadKeys,
  mayReadMessage,
  openAccessAfter,
  openAccessAt,
  type TimelinePosition,
} from './access.ts';
export {
  checkGroupBody,
  GroupApplicationApproval,
  type GroupChainBodies,
  type GroupChainBody,
  type GroupChainKind,
  GroupClientSecretRotation,
  GroupClose,
  GroupCreate,
  GroupMemberBan,
  GroupMemberLeave,
  GroupMemberRecoveryApproval,
  GroupMemberRemoval,
  GroupMemberUnban,
  GroupOwnerTransfer,
  GroupRoleUpdate,
  GroupUpdate,
} from './bodies.ts';
export {
  checkGroupSecretBox,
  findMemberPrivateKey,
  GroupSecretBox,
  openClientSecret,
  openRelaySecret,
  relaySecretToSeal,
  sealClientSecret,
  sealRelaySecret,
  secretBox,
} from './boxes.ts';
export * from './chain/index.ts';
export {
  checkGroupContent,
  checkGroupMemberNicknameUpdate,
  checkGroupMessage,
  type GroupContent,
  GroupMemberNicknameUpdate,
  GroupMessage,
  readGroupContent,
} from './content.ts';
export { checkGroupEvent, createKeyRotated, GroupEvent, type GroupEventContent } from './events.ts';
export { GroupInvitePolicy, GroupMemberKey, GroupRole, GroupStatus } from './fields.ts';
export {
  createGroupInviteId,
  createGroupNonce,
  deriveGroupId,
  GroupId,
  GroupInviteId,
} from './ids.ts';
export { extendKeyHistory, type GroupEpochKeys, type GroupKeyHistory } from './key-history.ts';
export {
  checkGroupKeyPage,
  GroupKeyEntry,
  GroupKeyPage,
  type GroupKeyResult,
  openGroupKeys,
} from './key-sync.ts';
export { managementHash } from './management-hash.ts';
export {
  checkGroupMessageEnvelope,
  deriveGroupMessageKey,
  GroupMessageEnvelope,
  openGroupMessage,
  type SealGroupMessageInput,
  sealGroupMessage,
} from './message.ts';
export {
  applyNickname,
  forgetNicknames,
  type GroupNickname,
  type GroupNicknames,
  type NicknameResult,
} from './nicknames.ts';
export {
  isGroupManager,
  mayApproveRecovery,
  mayBanAccount,
  mayCreateInvite,
  mayRejectRecovery,
  mayRemoveMember,
  mayRevokeInvite,
  mayViewInvite,
  mayViewRecovery,
} from './permissions.ts';
export { checkBanCap, checkCapacityCap } from './policy.ts';
export {
  GroupMember,
  type GroupProjection,
  type GroupView,
  restoreGroup,
  SavedGroup,
  saveGroup,
} from './projection.ts';
export {
  checkApplicationInvite,
  checkGroupApplication,
  checkGroupInvite,
  checkGroupInviteTimes,
  checkGroupMemberRecoveryRequest,
  GroupApplication,
  GroupInvite,
  type GroupInviteState,
  GroupMemberRecoveryRequest,
  groupInviteState,
  groupRecordSignatures,
  inviteAppliesTo,
  remainingInviteUses,
  type StoredInvite,
  verifyGroupApplication,
  verifyGroupInvite,
  verifyGroupMemberRecoveryRequest,
} from './records.ts';
export {
  ClientSecretBoxes,
  checkGroupParams,
  checkGroupParamsInSteps,
  type GroupMethodName,
  type GroupParams,
} from './requests.ts';
export {
  checkGroupRecoveryAcceptance,
  checkGroupResolution,
  GroupApplicationList,
  GroupInviteList,
  GroupInviteResolution,
  GroupMessageAcceptance,
  GroupRecoveryAcceptance,
  GroupRecoveryList,
  GroupRotationPreparation,
  verifyGroupApplicationList,
  verifyGroupInviteList,
  verifyGroupInviteResolution,
  verifyGroupRecoveryList,
} from './responses.ts';
export {
  checkRotationCommit,
  prepareRotation,
  type RotationStaging,
  stagingAfter,
} from './rotation.ts';
export {
  clientSecretCommitment,
  createGroupSecret,
  deriveEpochApplicationSecret,
} from './secrets.ts';
export { checkGroupState, GroupState, groupStateOf } from './state.ts';
export {
  advanceGroup,
  checkGroupSyncPage,
  type GroupAdvance,
  type GroupOutcome,
  type GroupSigners,
  GroupSyncPage,
  groupSyncPageSignatures,
  type VerifiedGroupPage,
  verifyGroupEvent,
  verifyGroupSyncPage,
} from './sync.ts';
