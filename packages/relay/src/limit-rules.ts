import { limits } from '@posthouse/protocol';
import type { RelayLimits } from './limits.ts';

/** Bytes reserved around a page: the envelope of its answer and the page's own members. */
const pageFrame = 16_384;

/** Streams of one connection that have room in what is held for a peer. */
const peerStreams = 160;

/**
 * Checks the limits against each other and against the protocol.
 * @returns one sentence per problem, starting with the name of the limit
 */
export function checkRelayLimits(relay: RelayLimits): string[] {
  const message = limits.webSocketMessageBytes;
  const largestBox = message - pageFrame - limits.envelopeBytes - limits.certificateBytes;
  const rules: readonly Rule[] = [
    [
      relay.pageBytes <= message - pageFrame,
      `pageBytes: a page must fit a WebSocket message, at most ${message - pageFrame}`,
    ],
    [
      relay.pageBytes >= limits.envelopeBytes + pageFrame,
      `pageBytes: the largest record must fit a page, at least ${limits.envelopeBytes + pageFrame}`,
    ],
    [
      relay.channelPostBytes >= limits.channelContentBytes,
      `channelPostBytes: the largest post must fit, at least ${limits.channelContentBytes}`,
    ],
    [
      relay.keyBoxBytes <= largestBox,
      `keyBoxBytes: a record must fit a WebSocket message, at most ${largestBox}`,
    ],
    [
      relay.groupRecordBytes >= limits.groupWriteBytes,
      `groupRecordBytes: the largest record must fit, at least ${limits.groupWriteBytes}`,
    ],
    [
      relay.httpBodyBytes >= message,
      `httpBodyBytes: what fits a WebSocket message must fit a body, at least ${message}`,
    ],
    [
      relay.sendBufferBytes >= message,
      `sendBufferBytes: one answer must fit the buffer, at least ${message}`,
    ],
    // A body counts more than its length: each chunk costs memory too.
    ...(['receivedBytesPerAddress', 'receivedBytesPerAccount'] as const).map(
      (name): Rule => [
        relay[name] >= 2 * relay.httpBodyBytes,
        `${name}: one body must fit, at least ${2 * relay.httpBodyBytes}`,
      ],
    ),
    ...(['waitingBytesPerAddress', 'waitingBytesPerAccount'] as const).map(
      (name): Rule => [relay[name] >= message, `${name}: one answer must fit, at least ${message}`],
    ),
    ...(['relayBytesBurst', 'dhtBytesBurst'] as const).map(
      (name): Rule => [
        relay[name] >= limits.dhtMessageBytes,
        `${name}: one request must fit, at least ${limits.dhtMessageBytes}`,
      ],
    ),
    [
      relay.relayStreams + relay.dhtStreams <= peerStreams,
      `relayStreams: with dhtStreams at most ${peerStreams}, for which there is room`,
    ],
    ...atMost.map(([name, most]): Rule => [relay[name] <= relay[most], `${name}: at most ${most}`]),
    ...atLeast.map(
      ([name, least]): Rule => [relay[name] >= relay[least], `${name}: at least ${least}`],
    ),
  ];
  return rules.filter(([holds]) => !holds).map(([, sentence]) => sentence);
}

/** Whether it holds, and the sentence if it does not. */
type Rule = readonly [boolean, string];

/** Two limits that depend on each other. */
type Pair = readonly [keyof RelayLimits, keyof RelayLimits];

/** The first limit of a pair is at most the second. */
const atMost: readonly Pair[] = [
  ['pageSize', 'maxPageSize'],
  ['stagingWindowOfUnknown', 'stagingWindow'],
  ['challengesOfAccount', 'challengesPerAddress'],
  ['challengesPerAddress', 'challenges'],
  ['stagedStatesPerAddress', 'stagedStates'],
  ['registrationRequestsPerAddress', 'registrationRequests'],
  ['sessionsPerMinute', 'sessionsOfDevice'],
  ['sessionsOfDevice', 'sessionsOfAccount'],
  ['sessionCheck', 'sessionTrust'],
  ['connectionsPerAddress', 'connections'],
  ['strangerConnections', 'connections'],
  ['receivedBytesPerAddress', 'receivedBytesOfStrangers'],
  ['receivedBytesPerAccount', 'receivedBytes'],
  ['receivedBytesOfStrangers', 'receivedBytes'],
  ['waitingBytesPerAddress', 'waitingBytesOfStrangers'],
  ['waitingBytesPerAccount', 'waitingBytes'],
  ['waitingBytesOfStrangers', 'waitingBytes'],
  ['addressHandshakesUnfinished', 'handshakesUnfinished'],
  ['subscriptionsPerAccount', 'subscriptions'],
  ['relayQueriesOfAccount', 'relayQueries'],
  ['relayQueriesToRelay', 'relayQueries'],
  ['deliveryRetryFirst', 'deliveryRetryMost'],
  ['deliveriesPerRelay', 'deliveryConcurrency'],
  ['relayCallsFirst', 'relayCallsAtOnce'],
  ['relayCallsAtOnce', 'relayStreams'],
  ['deliveryLookups', 'deliveryConcurrency'],
  ['federationRegistryCheck', 'federationRegistryRefresh'],
  ['federationNodeTimeout', 'federationRegistryTimeout'],
  ['federationRegistryTimeout', 'federationRegistryListTimeout'],
  ['federationDescriptorForced', 'federationDescriptorPause'],
  ['federationPeers', 'federationDescriptors'],
  ['federationDescriptorPause', 'federationDescriptorRefresh'],
  ['remoteRetryFirst', 'remoteRetryMost'],
  ['routeNotFound', 'routeCache'],
  ['routeLookupsWithoutSession', 'routeLookups'],
  ['routeLookupsEach', 'routeLookups'],
  ['dhtQuestionTimeout', 'dhtLookupTimeout'],
  ['dhtLookupTimeout', 'dhtPublishTimeout'],
  ['dhtReplicas', 'dhtBucket'],
  ['ownRouteCheck', 'dhtValueLife'],
  ['dhtConcurrency', 'dhtLookupRequests'],
  ['dhtBucket', 'dhtLookupRequests'],
  ['peerRetryFirst', 'peerRetryMost'],
  ['peersConnected', 'peerConnections'],
];

/** The first limit of a pair, a burst, is at least the second, its rate. */
const atLeast: readonly Pair[] = [
  ['accountBurst', 'accountRate'],
  ['addressBurst', 'addressRate'],
  ['addressHandshakeBurst', 'addressHandshakeRate'],
  ['addressBytesBurst', 'addressBytes'],
  ['accountBytesBurst', 'accountBytes'],
  ['relayBurst', 'relayRate'],
  ['relayAccountBurst', 'relayAccountRate'],
  ['relayQueryBurst', 'relayQueryRate'],
  ['routeLookupBurst', 'routeLookupRate'],
  ['relayStreamBurst', 'relayStreamRate'],
  ['relayBytesBurst', 'relayBytes'],
  ['dhtBurst', 'dhtRate'],
  ['dhtBytesBurst', 'dhtBytes'],
  ['dhtAskBurst', 'dhtAskRate'],
  ['dhtSendBurst', 'dhtSendRate'],
  ['dhtCandidateBurst', 'dhtCandidateRate'],
  ['dhtPutBurst', 'dhtPutRate'],
  ['peerHandshakeBurst', 'peerHandshakeRate'],
];

/**
 * Adds to limits that were lowered those that exceed one that they must not exceed, lowered too.
 *
 * @param isSet whether the operator has set a limit, which is not changed
 */
export function lowerDependent(
  limits: RelayLimits,
  lowered: Partial<RelayLimits>,
  isSet: (name: string) => boolean,
): Partial<RelayLimits> {
  const changed: { -readonly [Name in keyof RelayLimits]?: number } = { ...lowered };
  const now = (name: keyof RelayLimits) => changed[name] ?? limits[name];
  for (const [name, most] of atMost) {
    if (now(name) > now(most) && !isSet(name)) changed[name] = now(most);
  }
  return changed;
}

/** Returns the highest of the limits that the operator has set and that must not exceed another one. */
export function highestDependent(
  limits: RelayLimits,
  of: keyof RelayLimits,
  isSet: (name: string) => boolean,
): number {
  const set = atMost.filter(([name, most]) => most === of && isSet(name));
  return Math.max(0, ...set.map(([name]) => limits[name]));
}
