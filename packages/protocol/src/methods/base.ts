import { DeviceStateQuery } from '../contacts/index.ts';
import { OpaqueToken } from '../identity/auth.ts';
import {
  AccountDeviceState,
  AccountProfile,
  AccountRoute,
  Challenge,
  DeviceCertificate,
  RelayDescriptor,
  RelayInfo,
  SessionCredentials,
} from '../identity/index.ts';
import { limits } from '../limits.ts';
import {
  DeliveryStatus,
  DeliveryStatusQuery,
  SendRequest,
  TimelineChanged,
  TimelinePage,
  TimelineSyncRequest,
} from '../messages/index.ts';
import {
  AccountId,
  AccountPublicKey,
  Counter,
  Signature,
  type Static,
  Type,
  UnixSeconds,
} from '../schema.ts';
import { defineMethod, type NotificationDefinition } from './definition.ts';

/** Methods and notifications every relay has (chapter 01, section 18; 02, section 14). */

const NoParams = Type.Object({});
const OneAccount = Type.Object({
  /** The handler runs `checkAccountId`. */
  account: AccountId,
});

/** Parameters of `auth.device.verify` (02 §9.3). The handler runs `checkDeviceCertificate`. */
export const DeviceVerification = Type.Object({
  nonce: OpaqueToken,
  timestamp: UnixSeconds,
  signer_certificate: DeviceCertificate,
  device_signature: Signature,
});
export type DeviceVerification = Static<typeof DeviceVerification>;

/** Parameters of `auth.account.verify` (02 §9.4). */
export const AccountVerification = Type.Object({
  nonce: OpaqueToken,
  account_public_key: AccountPublicKey,
  account_signature: Signature,
});
export type AccountVerification = Static<typeof AccountVerification>;

/** Answer of `device.state.publish` (03 §4): the deadline is there for `staged` alone. */
export const DeviceStatePublished = Type.Union([
  Type.Object({ status: Type.Literal('accepted') }),
  Type.Object({ status: Type.Literal('staged'), staged_until: UnixSeconds }),
]);
export type DeviceStatePublished = Static<typeof DeviceStatePublished>;

/** Answer of `profile.resolve` (03 §8). */
export const ResolvedProfile = Type.Object({
  profile: AccountProfile,
  /** The certificate that verified the profile when it was published. */
  signer_certificate: DeviceCertificate,
});
export type ResolvedProfile = Static<typeof ResolvedProfile>;

const { account: _, ...signed } = DeviceStateQuery.properties;
/**
 * Parameters of `device.state.resolve` (03 §5). With any member of the signed form, the handler
 * runs `checkDeviceStateQuery` on the whole.
 */
const StateQuery = Type.Object({
  account: AccountId,
  $type: Type.Optional(signed.$type),
  authorization: Type.Optional(signed.authorization),
  signer_certificate: Type.Optional(signed.signer_certificate),
  created_at: Type.Optional(signed.created_at),
  device_signature: Type.Optional(signed.device_signature),
});

export const baseMethods = {
  'relay.descriptor': defineMethod({
    name: 'relay.descriptor',
    http: ['GET'],
    session: 'none',
    params: NoParams,
    result: RelayDescriptor,
    source: '02 §11.1',
  }),
  'relay.info': defineMethod({
    name: 'relay.info',
    http: ['GET'],
    session: 'none',
    params: NoParams,
    result: RelayInfo,
    source: '02 §11.2',
  }),
  'auth.challenge': defineMethod({
    name: 'auth.challenge',
    http: ['POST'],
    session: 'none',
    params: OneAccount,
    result: Challenge,
    source: '02 §9.2',
  }),
  'auth.device.verify': defineMethod({
    name: 'auth.device.verify',
    http: ['POST'],
    session: 'none',
    params: DeviceVerification,
    result: SessionCredentials,
    handlerChecksParams: true,
    source: '02 §9.3',
  }),
  'auth.account.verify': defineMethod({
    name: 'auth.account.verify',
    http: ['POST'],
    session: 'none',
    params: AccountVerification,
    result: SessionCredentials,
    handlerChecksParams: true,
    source: '02 §9.4',
  }),
  'device.state.publish': defineMethod({
    name: 'device.state.publish',
    http: ['PUT'],
    session: 'any',
    /** The handler runs `checkDeviceState`. */
    params: AccountDeviceState,
    result: DeviceStatePublished,
    /** Comes back as `result`; a certificate at the deepest as that of an item of a list. */
    depth: limits.jsonDepth - 1,
    memberDepth: { certificates: limits.jsonDepth - 3 },
    source: '03 §4',
  }),
  'device.state.resolve': defineMethod({
    name: 'device.state.resolve',
    http: ['GET', 'POST'],
    session: 'any',
    params: StateQuery,
    result: AccountDeviceState,
    queryRefuses: Object.keys(signed),
    source: '03 §5',
  }),
  'profile.publish': defineMethod({
    name: 'profile.publish',
    http: ['PUT'],
    session: 'device',
    /** The handler runs `checkProfile`. */
    params: AccountProfile,
    result: null,
    /** Comes back as `result.profile`. */
    depth: limits.jsonDepth - 2,
    source: '03 §7',
  }),
  'profile.resolve': defineMethod({
    name: 'profile.resolve',
    http: ['GET'],
    session: 'device',
    params: OneAccount,
    result: ResolvedProfile,
    source: '03 §8',
  }),
  'account.route.publish': defineMethod({
    name: 'account.route.publish',
    http: ['PUT'],
    session: 'account',
    /** The handler runs `checkRouteDraft`. */
    params: AccountRoute,
    result: AccountRoute,
    /** Comes back as `result`. */
    depth: limits.jsonDepth - 1,
    source: '03 §9',
  }),
  'account.route.resolve': defineMethod({
    name: 'account.route.resolve',
    http: ['GET'],
    session: 'none',
    params: OneAccount,
    result: AccountRoute,
    source: '03 §10',
  }),
  'message.send': defineMethod({
    name: 'message.send',
    http: ['POST'],
    session: 'device',
    /** The handler runs `readSendRequest`. */
    params: SendRequest,
    result: DeliveryStatus,
    /** Envelope and boxes come back in `result.items[…]`; other members do not. */
    memberDepth: {
      envelope: limits.jsonDepth - 4,
      recipient_boxes: limits.jsonDepth - 3,
      sender_boxes: limits.jsonDepth - 3,
    },
    source: '04 §12',
  }),
  'message.delivery.status': defineMethod({
    name: 'message.delivery.status',
    http: ['GET'],
    session: 'device',
    params: DeliveryStatusQuery,
    result: DeliveryStatus,
    source: '04 §14.3',
  }),
  'message.timeline.sync': defineMethod({
    name: 'message.timeline.sync',
    http: ['GET'],
    session: 'device',
    params: TimelineSyncRequest,
    result: TimelinePage,
    page: 'sequence',
    source: '04 §18',
  }),
} as const;

export const baseNotifications = {
  'device.state.changed': {
    name: 'device.state.changed',
    params: Type.Object({ revision: Counter }),
    source: '02 §12.4',
  },
  'message.timeline.changed': {
    name: 'message.timeline.changed',
    params: TimelineChanged,
    source: '02 §12.5',
  },
} as const satisfies Record<string, NotificationDefinition>;
