/**
 * What modules that are loaded later use of the others. They are given it instead of importing it: a
 * bundler would otherwise divide or wrap nearly every module of the client, and a page would load more.
 */
import {
  AccountId,
  activeRelays,
  ChannelId,
  Counter,
  checkAccountId,
  checkDepth,
  checkGroupBody,
  checkRelayInfo,
  checkSchema,
  clientSecretCommitment,
  closedDescriptor,
  createGroupNonce,
  createGroupSecret,
  currentDevices,
  DeviceId,
  deriveDeviceId,
  deriveGroupId,
  deviceSigner,
  encodeBase64url,
  GroupId,
  isErrorCode,
  limits,
  MessageId,
  mayWriteChannel,
  ProtocolError,
  parseContent,
  RelayId,
  readGroupContent,
  sealClientSecret,
  sealMessage,
  signAsDevice,
  signChannelClose,
  signChannelDescriptor,
  signChannelUpdate,
  signDeviceCertificate,
  Type,
  UnixSeconds,
  utf8,
  utf8Length,
} from '@posthouse/protocol';
import { canonicalJson, decodeUtf8, isJsonObject, parseJson } from '@posthouse/protocol/json';
import {
  accountKeys,
  deviceKeys,
  deviceStates,
  ownCertificates,
  ownKey,
  ownRecords,
  routes,
  timelines,
} from './accounts/account-rows.ts';
import { adoptState, knownState, resolveOwnState } from './accounts/device-states.ts';
import { noteHomeChange } from './accounts/former-relay-rows.ts';
import { homeRelay, refreshHome, resolveRouteAt } from './accounts/home-relay.ts';
import { mayHaveLeft, moveSteps, moves, storeMove, unfinishedMove } from './accounts/move-rows.ts';
import {
  askOwnDevices,
  certificateLead,
  certificateLifetime,
  contactsWait,
} from './accounts/new-device.ts';
import { knownProfile, publishProfile, resolveProfile } from './accounts/profiles.ts';
import {
  nextState,
  publishDevices,
  stageState,
  withCertificate,
} from './accounts/publish-devices.ts';
import { draftFor, makeRouteDraft, publishRoute } from './accounts/publish-route.ts';
import { usableRoute } from './accounts/routes.ts';
import { deviceKeyBytes } from './accounts/stored-keys.ts';
import { channelRow, channelRows, putChannel, requireChannel } from './channels/channel-rows.ts';
import { submitDescriptor } from './channels/descriptors/submit-descriptor.ts';
import { followChannel, unfollowChannel } from './channels/follow-channel.ts';
import { enqueueWrite, isPending } from './channels/outbox.ts';
import { outgoingToChannel } from './channels/send-waiting.ts';
import {
  deletedMessage,
  lastDescriptorChange,
  listChannelEntries,
  listPosts,
} from './channels/timeline/channel-entries.ts';
import {
  readChannelPage,
  readPageAfter,
  resolveDescriptor,
} from './channels/timeline/channel-page.ts';
import { currentDescriptor } from './channels/timeline/read-channel.ts';
import { backoff, leavesOpen, mayRecover, retryHintOf } from './connect/backoff.ts';
import { untilAborted } from './connect/deadline.ts';
import { accountIdentity } from './connect/session.ts';
import { callWithoutSession } from './connect/unauthenticated-call.ts';
import { contactRows } from './contacts/contact-rows.ts';
import { buildConversations, skipBuilding } from './conversations/build-conversations.ts';
import {
  changeConversation,
  conversationRow,
  conversationsByTime,
  messagePrefix,
  readBatch,
  readBatchSize,
  shownMessages,
} from './conversations/conversation-rows.ts';
import { randomFraction, unixSeconds } from './environment.ts';
import {
  ClientError,
  checkInput,
  checkRelayAnswer,
  isClientError,
  isRefusal,
  RelayMisbehaviour,
  RelayRefused,
  RelayUnreachable,
} from './errors.ts';
import { recordEvents, recordPassing } from './events/event-log.ts';
import { emptyGroupRow, groupRow, groupRows, putGroup } from './groups/group-rows.ts';
import { rotationCandidates } from './groups/keys/key-candidates.ts';
import {
  newMemberKey,
  putClientSecret,
  putMemberKey,
  secretBytes,
} from './groups/keys/key-rows.ts';
import { runGroupTask } from './groups/keys/own-device-sync.ts';
import { sealBoxes } from './groups/keys/secret-boxes.ts';
import { accountsAtOnce } from './groups/membership/requests.ts';
import { submitCreation } from './groups/membership/submit-creation.ts';
import {
  groupEntry,
  groupMessage,
  hasMessageId,
  lastChange,
  putGroupEntry,
  removeUndecrypted,
} from './groups/timeline/group-entries.ts';
import { isGroupMessage } from './groups/timeline/group-entry.ts';
import { readGroupBuffered, refreshGroup, requireGroup } from './groups/timeline/read-group.ts';
import { writeChainEvent } from './groups/timeline/write-chain-event.ts';
import {
  addEarlierMessage,
  messageArrivals,
  messageRow,
  removeMessage,
} from './messages/message-rows.ts';
import { outbox } from './messages/outbox.ts';
import { recipientsOf } from './messages/recipients.ts';
import { sendObjectToOwnDevices } from './messages/send-to-own-devices.ts';
import { checkedStatus } from './messages/submit.ts';
import { requestPage } from './messages/timeline-page.ts';
import {
  changeRows,
  seenDevices,
  sentChanges,
  sharedChannels,
  waitingMarks,
  waitingObjects,
} from './own-devices/change-rows.ts';
import { handedOver, handOverDays, handOvers } from './own-devices/hand-over-rows.ts';
import { accountStateType, historyType, isOwnDeviceType } from './own-devices/object-types.ts';
import { Collection } from './store/collection.ts';
import { positionKey } from './store/row-keys.ts';
import { ReadBudget } from './sync/budget.ts';
import { callHost, callPage } from './sync/host-calls.ts';
import { whileKept } from './sync/outbox.ts';
import { restoredAtOf } from './sync/reach-relay.ts';
import { dropTasks, enqueueTask } from './sync/tasks.ts';
import { notSentYet } from './sync/write-outcomes.ts';

/** In the order in which `taken.ts` names them: names would be in the bundle twice. */
export const allParts = [
  Type,
  AccountId,
  accountIdentity,
  accountKeys,
  accountsAtOnce,
  accountStateType,
  activeRelays,
  addEarlierMessage,
  adoptState,
  askOwnDevices,
  backoff,
  buildConversations,
  callHost,
  callPage,
  callWithoutSession,
  canonicalJson,
  certificateLead,
  certificateLifetime,
  changeConversation,
  changeRows,
  ChannelId,
  channelRow,
  channelRows,
  checkAccountId,
  checkDepth,
  checkedStatus,
  checkGroupBody,
  checkInput,
  checkRelayAnswer,
  checkRelayInfo,
  checkSchema,
  ClientError,
  clientSecretCommitment,
  closedDescriptor,
  Collection,
  contactRows,
  contactsWait,
  conversationRow,
  conversationsByTime,
  Counter,
  createGroupNonce,
  createGroupSecret,
  currentDescriptor,
  currentDevices,
  decodeUtf8,
  deletedMessage,
  deriveDeviceId,
  deriveGroupId,
  DeviceId,
  deviceKeyBytes,
  deviceKeys,
  deviceSigner,
  deviceStates,
  draftFor,
  dropTasks,
  emptyGroupRow,
  encodeBase64url,
  enqueueTask,
  enqueueWrite,
  followChannel,
  groupEntry,
  GroupId,
  groupMessage,
  groupRow,
  groupRows,
  handedOver,
  handOverDays,
  handOvers,
  hasMessageId,
  historyType,
  homeRelay,
  isClientError,
  isErrorCode,
  isGroupMessage,
  isJsonObject,
  isOwnDeviceType,
  isPending,
  isRefusal,
  knownProfile,
  knownState,
  lastChange,
  lastDescriptorChange,
  leavesOpen,
  limits,
  listChannelEntries,
  listPosts,
  makeRouteDraft,
  mayHaveLeft,
  mayRecover,
  mayWriteChannel,
  messageArrivals,
  MessageId,
  messagePrefix,
  messageRow,
  moves,
  moveSteps,
  newMemberKey,
  nextState,
  noteHomeChange,
  notSentYet,
  outbox,
  outgoingToChannel,
  ownCertificates,
  ownKey,
  ownRecords,
  parseContent,
  parseJson,
  positionKey,
  ProtocolError,
  publishDevices,
  publishProfile,
  publishRoute,
  putChannel,
  putClientSecret,
  putGroup,
  putGroupEntry,
  putMemberKey,
  randomFraction,
  readBatch,
  readBatchSize,
  ReadBudget,
  readChannelPage,
  readGroupBuffered,
  readGroupContent,
  readPageAfter,
  recipientsOf,
  recordEvents,
  recordPassing,
  refreshGroup,
  refreshHome,
  RelayId,
  RelayMisbehaviour,
  RelayRefused,
  RelayUnreachable,
  removeMessage,
  removeUndecrypted,
  requestPage,
  requireChannel,
  requireGroup,
  resolveDescriptor,
  resolveOwnState,
  resolveProfile,
  resolveRouteAt,
  restoredAtOf,
  retryHintOf,
  rotationCandidates,
  routes,
  runGroupTask,
  sealBoxes,
  sealClientSecret,
  sealMessage,
  secretBytes,
  seenDevices,
  sendObjectToOwnDevices,
  sentChanges,
  sharedChannels,
  shownMessages,
  signAsDevice,
  signChannelClose,
  signChannelDescriptor,
  signChannelUpdate,
  signDeviceCertificate,
  skipBuilding,
  stageState,
  storeMove,
  submitCreation,
  submitDescriptor,
  timelines,
  unfinishedMove,
  unfollowChannel,
  UnixSeconds,
  unixSeconds,
  untilAborted,
  usableRoute,
  utf8,
  utf8Length,
  waitingMarks,
  waitingObjects,
  whileKept,
  withCertificate,
  writeChainEvent,
] as const;

/** The parts in their order. */
export type Parts = typeof allParts;
