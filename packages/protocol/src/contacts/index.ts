export {
  Authorization,
  type AuthorizationSignatures,
  type AuthorizationUse,
  authorizationSignatures,
  checkAuthorization,
  checkAuthorizationUse,
  isGrant,
  verifyAuthorization,
} from './authorization.ts';
export { ContactConsent, checkConsent, verifyConsent } from './consent.ts';
export {
  addGrantSignature,
  ContactGrant,
  checkGrant,
  checkGrantUse,
  type DeviceStateAt,
  grantSignatures,
  grantSignaturesBy,
  grantSigningInput,
  isGrantExpired,
  signGrant,
  validGrantDevices,
  verifyGrant,
} from './grant.ts';
export { cleanGrant, type GrantSelection, selectGrant } from './grant-selection.ts';
export {
  AccountGroupHistorySecretSync,
  AccountGroupPrivateStateRequest,
  AccountGroupPrivateStateSync,
  checkGroupHistorySecretSync,
  checkGroupStateRequest,
  checkGroupStateSync,
  GroupHistorySecret,
  GroupMemberPrivateState,
} from './group-sync.ts';
export {
  ContactInvite,
  checkInvite,
  checkInviteUse,
  decodeInvite,
  encodeInvite,
  inviteSignatures,
  inviteSigner,
  inviteSigningInput,
  signInvite,
  verifyInvite,
} from './invite.ts';
export {
  noRelationship,
  type Relationship,
  type RelationshipEffect,
  type RelationshipEvent,
  type RelationshipStep,
  relationshipStep,
} from './relationship.ts';
export {
  checkDeviceStateQuery,
  DeviceStateQuery,
  deviceStateQuerySignatures,
  deviceStateQuerySigningInput,
  isSignedQuery,
  signDeviceStateQuery,
  verifyDeviceStateQuery,
} from './signed-query.ts';
export {
  AccountContactSync,
  adoptRecord,
  ContactRecord,
  checkContactRecord,
  checkContactSync,
} from './sync.ts';
