import { type Static, Type } from '@posthouse/protocol';
import { accountLimits } from './account-limits.ts';
import { byteLimits } from './byte-limits.ts';
import { connectionLimits } from './connection-limits.ts';
import { limit, period, timer } from './limit-kinds.ts';
import { memoryLimits } from './memory-limits.ts';
import { peerLimits } from './peer-limits.ts';

/**
 * Every limit of a deployment, with its default; `checkRelayLimits` checks how they depend on each
 * other. An operator sets them under `limits` in the configuration.
 */
export const RelayLimits = Type.Object({
  challengeLifetime: period(300, 'Seconds a challenge can be used (02 §18).'),
  challenges: limit(
    20_000,
    'Challenges that wait for their proof; more end the oldest of the network with the most.',
  ),
  challengesPerAddress: limit(
    1_000,
    'Challenges of one address that wait; one more ends the oldest.',
  ),
  challengesOfAccount: limit(
    20,
    'Challenges for one account that wait, from one address; one more ends the oldest.',
  ),
  deviceSessionLifetime: period(
    86_400,
    'Seconds of a device session, never past the certificate (02 §10.2).',
  ),
  accountSessionLifetime: period(3_600, 'Seconds of an account session.'),
  sessionTrust: timer(
    2_000,
    'Milliseconds for which one of several processes serves sessions from memory after it last read from storage which ended.',
  ),
  sessionCheck: timer(500, 'Milliseconds between those reads, if the relay has several processes.'),
  authClockTolerance: period(
    300,
    "Seconds a device's clock may differ in authentication (02 §9.3); published as clock_tolerance.",
    0,
  ),
  futureTolerance: period(
    300,
    'Seconds a signed time may lie ahead (01 §11 F4, 04 §3); published as future_tolerance.',
    0,
  ),
  clockJump: period(
    86_400,
    'Seconds the clock may be ahead of the last mark, which is written every minute; further ahead, nothing is deleted for clockPause.',
    120,
  ),
  clockPause: period(86_400, 'Seconds for which nothing is deleted after such a jump.'),
  signedQueryAge: period(300, 'Seconds a signed query may be old (03 §5.6).'),
  deliveryAgeLimit: period(
    604_800,
    'Seconds an envelope may be old when it is taken for delivery (04 §3); published as max_delivery_age.',
  ),
  stagingWindow: period(
    86_400,
    'Seconds a pre-stored device state of an account with a known route is kept, and the longest life of any (03 §4.2).',
  ),
  stagingWindowOfUnknown: period(
    900,
    'Seconds a pre-stored device state of an account without a known route is kept.',
  ),
  stagedStates: limit(
    10_000,
    'Pre-stored device states kept at once; any account may ask for one.',
  ),
  stagedStatesPerAddress: limit(20, 'Pre-stored device states of one address kept at once.'),
  accountsPerAddress: limit(
    50,
    'Accounts that one address brings to this relay, as new ones or from another, in a day (UTC).',
  ),
  ...accountLimits,
  sessionsPerMinute: limit(
    60,
    'Sessions that one device opens in a minute; account sessions of one account likewise.',
  ),
  sessionsOfDevice: limit(
    64,
    'Sessions of one device, and account sessions of one account; one more ends the oldest.',
  ),
  sessionsOfAccount: limit(
    640,
    'Sessions of one account with all its devices; one more ends the oldest.',
  ),
  messageRetention: period(
    2_592_000,
    'Seconds messages are kept at least; published as message_retention (04 §17.4).',
  ),
  groupMessageRetention: period(
    2_592_000,
    'Seconds group messages are kept at least; published as group_message_retention (05 §11.2).',
  ),
  groupMembers: limit(
    10_000,
    'Largest capacity of new groups and of increases; published as max_group_members (05 §8.3).',
  ),
  groupsOfAccount: limit(10_000, 'Groups one account owns here when it creates another (02 §5).'),
  groupInviteTtl: period(
    2_592_000,
    'Seconds an invitation lasts at most; published as max_group_invite_ttl (05 §4.6).',
  ),
  groupSubscriptions: limit(
    500,
    'Groups one connection subscribes; published as max_group_subscriptions (02 §13).',
    0,
  ),
  groupBans: limit(
    10_000,
    'Banned accounts of one group; published as max_group_bans (05 §13.19).',
  ),
  groupInvites: limit(1_000, 'Valid invitations one account has issued in one group.'),
  groupRecordBytes: limit(
    4_194_304,
    'Bytes of the valid invitations, the application and the recovery request of one account in one group.',
  ),
  groupRecoveryWait: period(604_800, 'Seconds a key recovery request is open (05 §9.3).'),
  groupStagingPeriod: period(604_800, 'Seconds a rotation can be prepared (05 §13.26).'),
  groupKeyPage: limit(50, 'Epochs of one page of group keys; each is sealed anew (05 §13.25).'),
  channelTimelineRetention: period(
    2_592_000,
    'Seconds channel events are kept at least; published as channel_timeline_retention (06 §7.5).',
  ),
  channelSubscriptions: limit(
    500,
    'Channels one connection subscribes; published as max_channel_subscriptions (02 §13).',
    0,
  ),
  channelsOfAccount: limit(1_000, 'Channels one account has created here (06 §8.2).'),
  channelPostBytes: limit(
    262_144,
    'Bytes of a channel post with all that its edits put into it (06 §6.2).',
  ),
  channelReportReason: limit(2_048, 'Bytes of the reason of a report (06 §8.10).'),
  channelReports: limit(1_000, 'Reports of one account that are kept.'),
  channelReportPeriod: period(7_776_000, 'Seconds a report is kept for the operator.'),
  keyBoxBytes: limit(4_096, 'Bytes of one key box with its unknown members (04 §5).'),
  credentialBytes: limit(65_536, 'Bytes of the credential of a delivery (04 §11).'),
  queuedDeliveries: limit(1_000, 'Messages of one account that wait for delivery to other relays.'),
  deliveryConcurrency: limit(256, 'Deliveries from the queue under way at once.'),
  deliveriesPerRelay: limit(
    112,
    'Deliveries to one relay under way at once, and no more than seven eighths of the calls it allows.',
  ),
  deliveryLookups: limit(16, 'Recipients of queued messages that are located at once.'),
  deliveryBatch: limit(1_000, 'Queued messages postponed or woken in one transaction.'),
  deliveryRetryFirst: period(5, 'Seconds until a delivery is tried again, at first.'),
  deliveryRetryMost: period(900, 'Seconds until a delivery is tried again, at the most.'),
  deliveryLease: period(
    120,
    'Seconds until a delivery whose process was killed is tried again; an attempt ends before.',
  ),
  countedDeliveries: limit(
    100_000,
    'Queued messages that the metric deliveries_waiting counts at the most.',
  ),
  federationRegistryCheck: period(
    60,
    'Seconds a registry record serves to admit a relay (07 §B4).',
  ),
  federationRegistryRefresh: period(
    600,
    'Seconds between refreshes of the registry; no relay is admitted by an older answer (07 §B5).',
  ),
  federationRegistryRetry: period(30, 'Seconds until a failed refresh is repeated, at first.'),
  federationRegistryTimeout: timer(10_000, 'Milliseconds to read one record of the registry.'),
  federationRegistryListTimeout: timer(60_000, 'Milliseconds to read the whole registry.'),
  federationNodeTimeout: timer(
    4_000,
    'Milliseconds until a node of the chain that has not answered is replaced by the next (07 §A6).',
  ),
  federationRegistryBytes: limit(
    4_194_304,
    'Bytes of one answer of a node of the chain with records of the list (07 §A6).',
  ),
  federationRegistryRelays: limit(10_000, 'Relays of the registry that are used.'),
  federationUnknownRelay: period(
    60,
    'Seconds a relay that the registry does not list is remembered.',
  ),
  federationUnknownRelays: limit(10_000, 'Relays remembered as not listed in the registry.'),
  federationLookupRate: limit(10, 'Registry reads in a second that unknown relays cause.'),
  federationAddressLookupRate: limit(
    1,
    'Such registry reads in a second that one address causes, sustained.',
  ),
  federationAddressLookupBurst: limit(5, 'Such registry reads that one address causes at once.'),
  federationDescriptorBytes: limit(16_384, "Bytes of another relay's descriptor (07 §A8)."),
  federationDescriptorTimeout: timer(10_000, 'Milliseconds to fetch a descriptor over HTTPS.'),
  federationDescriptorFetches: limit(16, 'Descriptors fetched at once.'),
  federationDescriptorPause: period(300, 'Seconds between two fetches from one relay (07 §A9).'),
  federationDescriptorForced: period(
    30,
    'Seconds between two fetches from one relay that failed checks or calls ask for.',
  ),
  federationDescriptors: limit(2_000, 'Descriptors of other relays kept in memory.'),
  federationPeers: limit(1_000, 'Other relays admitted at once.'),
  federationBlockCheck: period(
    2,
    'Seconds until a relay that the operator blocks is dropped, and a changed registry file is read.',
  ),
  federationDescriptorRefresh: period(21_600, 'Seconds until a descriptor is fetched again.'),
  routeCache: period(600, 'Seconds a route of another relay serves until it is looked up again.'),
  routeNotFound: period(30, 'Seconds until an account without a usable route is looked up again.'),
  routeLookups: limit(32, 'Accounts whose routes are looked up in the network at once.'),
  routeLookupsWithoutSession: limit(
    16,
    'Such lookups under way at once that callers without a device session and other relays cause.',
  ),
  routeLookupsEach: limit(
    16,
    'Such lookups under way at once that one address, account or other relay causes.',
  ),
  routeLookupRate: limit(
    5,
    'Such lookups in a second that one address, account or other relay causes, sustained.',
  ),
  routeLookupBurst: limit(
    100,
    'Such lookups that one address, account or other relay causes at once.',
  ),
  rememberedRouteLookups: limit(100_000, 'Accounts whose last lookup is remembered.'),
  blockedRelays: limit(10_000, 'Relays that the operator has blocked.'),
  blockReason: limit(2_048, "Bytes of the operator's reason for a block."),
  ownRouteCheck: period(
    43_200,
    'Seconds until the network is asked again whether an account left this relay (07 §B12).',
  ),
  deviceStatusCache: period(
    300,
    "Seconds a home relay's answer about a device serves for new sessions (07 §C5).",
    0,
  ),
  deviceStatusRecheck: period(
    86_400,
    'Seconds until a home relay is asked again for a device that uses this relay (07 §C9).',
  ),
  remoteDeviceRetention: period(
    86_400,
    'Seconds a device of another relay is remembered without session and group access.',
  ),
  askedDevices: limit(
    16,
    'Devices of one account at home elsewhere that wait for the first answer about them.',
  ),
  remoteRetryFirst: period(30, 'Seconds until another relay is asked again, at first.'),
  remoteRetryMost: period(900, 'Seconds until another relay is asked again, at the most.'),
  statusWatchers: limit(64, 'Relays that are sent hints of one device (07 §C9).'),
  statusWatchPeriod: period(
    2_592_000,
    'Seconds after its last question in which a relay is sent hints of a device.',
    30,
  ),
  pageSize: limit(100, 'Entries of a page where the client names no limit.'),
  maxPageSize: limit(500, 'Entries of a page at the most.'),
  pageBytes: limit(900_000, "Bytes of a page's text; a WebSocket message holds 1 MiB."),
  httpBodyBytes: limit(2_097_152, 'Bytes of an HTTP request body (02 §18).'),
  outstandingRequests: limit(64, 'Requests under way on one WebSocket connection.'),
  droppedBodyBytes: limit(
    8_388_608,
    'Bytes of the body of a request that was refused which are read, until its connection is ended.',
  ),
  blobTransfers: limit(256, 'Uploads and downloads of attachments under way at once.'),
  blobTransfersPerOwner: limit(
    16,
    'Those of one account that uploads, or of one address that downloads.',
  ),
  pipelinedRequests: limit(
    16,
    'Requests of one HTTP connection that are under way or wait for the answer before theirs.',
  ),
  ...byteLimits,
  unfinishedMessageTimeout: timer(
    10_000,
    'Milliseconds from the first byte of a WebSocket message to its last; with a session, for slowMessageBytes of it.',
  ),
  slowMessageBytes: limit(
    16_384,
    'Bytes of a message or body with a session that arrive in each period of its timeout, at least.',
  ),
  slowMessageTimeout: timer(
    300_000,
    'Milliseconds from the first byte of a message or body with a session to its last.',
  ),
  unboundTimeout: timer(
    60_000,
    'Milliseconds that a WebSocket connection may have no session and make no accepted call.',
  ),
  sendTimeout: timer(
    60_000,
    'Milliseconds in which a peer takes at least one answer or notification while some wait for it.',
  ),
  closeTimeout: timer(5_000, 'Milliseconds a peer has to answer the close of a WebSocket.'),
  ...connectionLimits,
  sendBufferBytes: limit(
    4_194_304,
    'Bytes waiting for a peer that reads slowly before it is disconnected; its next requests wait from the half on.',
  ),
  requestTimeout: timer(
    30_000,
    'Milliseconds a peer has for the headers of a request, and for its body; with a session, for slowMessageBytes of it.',
  ),
  pingInterval: timer(30_000, 'Milliseconds between pings of a WebSocket connection.'),
  drainTime: Type.Integer({
    description:
      'Milliseconds for which a relay that stops still serves while /readyz says 503, so that a balancer sends no more clients.',
    default: 0,
    minimum: 0,
    maximum: 600_000,
  }),
  stopGrace: timer(10_000, 'Milliseconds that requests under way have when the relay stops.'),
  tokenLookups: limit(
    16,
    'Look-ups of tokens under way at once that one address causes after it used up its calls.',
  ),
  tokenLookupWait: timer(5_000, 'Milliseconds that further such look-ups wait for a place.'),
  accountRate: limit(1_000, 'Units of calls of one account in a second, sustained (02 §18).'),
  accountBurst: limit(10_000, 'Units of calls of one account at once; its debt is never larger.'),
  addressRate: limit(
    500,
    'Units of calls without a session from one address in a second, sustained.',
  ),
  addressBurst: limit(5_000, 'Units of such calls at once; the debt is never larger.'),
  lateAnswers: limit(
    64,
    'Answers that one account or address gets late at once over HTTP; above that its connections end.',
  ),
  routeResolvesPerCall: limit(
    4,
    'Calls of account.route.resolve without a session that count as one call of their address.',
  ),
  diskFree: limit(
    0,
    'Bytes of a disk that stay free: with less, calls that write to it are refused. 0: 500 MiB, or 5 % of a smaller disk.',
    0,
  ),
  ...peerLimits,
  ...memoryLimits,
});
export type RelayLimits = Readonly<Static<typeof RelayLimits>>;

export const defaultLimits = Object.fromEntries(
  Object.entries(RelayLimits.properties).map(([name, schema]) => [
    name,
    (schema as { readonly default?: number }).default,
  ]),
) as RelayLimits;
