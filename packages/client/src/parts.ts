/**
 * What modules that are loaded later use of the others. They are given it instead of importing it: a
 * bundler would otherwise divide or wrap nearly every module of the client, and a page would load more.
 */
import {
  AccountId,
  ChannelId,
  Counter,
  checkRelayInfo,
  checkSchema,
  clientSecretCommitment,
  closedDescriptor,
  createGroupSecret,
  currentDevices,
  encodeBase64url,
  GroupId,
  MessageId,
  RelayId,
  signChannelClose,
  signChannelDescriptor,
  signChannelUpdate,
  Type,
  UnixSeconds,
} from '@posthouse/protocol';
import { ownKey, ownRecords, routes, timelines } from './accounts/account-rows.ts';
import { adoptState, knownState, resolveOwnState } from './accounts/device-states.ts';
import { noteHomeChange } from './accounts/former-relay-rows.ts';
import { homeRelay, refreshHome, resolveRouteAt } from './accounts/home-relay.ts';
import { mayHaveLeft, moveSteps, moves, storeMove, unfinishedMove } from './accounts/move-rows.ts';
import { knownProfile, publishProfile, resolveProfile } from './accounts/profiles.ts';
import { nextState, stageState } from './accounts/publish-devices.ts';
import { draftFor, makeRouteDraft, publishRoute } from './accounts/publish-route.ts';
import { channelRow, channelRows, putChannel, requireChannel } from './channels/channel-rows.ts';
import { submitDescriptor } from './channels/descriptors/submit-descriptor.ts';
import { followChannel, unfollowChannel } from './channels/follow-channel.ts';
import { enqueueWrite, isPending } from './channels/outbox.ts';
import { outgoingToChannel } from './channels/send-waiting.ts';
import { currentDescriptor } from './channels/timeline/read-channel.ts';
import { backoff, isTemporary } from './connect/backoff.ts';
import { accountIdentity } from './connect/session.ts';
import { callWithoutSession } from './connect/unauthenticated-call.ts';
import { contactRows } from './contacts/contact-rows.ts';
import {
  changeConversation,
  conversationRow,
  conversationsByTime,
  messagePrefix,
  shownMessages,
  unreadMessages,
} from './conversations/conversation-rows.ts';
import { unixSeconds } from './environment.ts';
import {
  ClientError,
  checkInput,
  checkRelayAnswer,
  isClientError,
  isRefusal,
  RelayMisbehaviour,
  RelayUnreachable,
} from './errors.ts';
import { rotationCandidates } from './groups/keys/key-candidates.ts';
import { newMemberKey, putMemberKey, secretBytes } from './groups/keys/key-rows.ts';
import { sealBoxes } from './groups/keys/secret-boxes.ts';
import { accountsAtOnce } from './groups/membership/requests.ts';
import { refreshGroup, requireGroup } from './groups/timeline/read-group.ts';
import { writeChainEvent } from './groups/timeline/write-chain-event.ts';
import { messageRow } from './messages/message-rows.ts';
import { outbox } from './messages/outbox.ts';
import { sendObjectToOwnDevices } from './messages/send-to-own-devices.ts';
import { changeRows, seenDevices, sentChanges, sharedChannels } from './own-devices/change-rows.ts';
import { accountStateType } from './own-devices/object-types.ts';
import { positionKey } from './store/row-keys.ts';
import { callHost } from './sync/host-calls.ts';
import { whileKept } from './sync/outbox.ts';
import { dropTasks, enqueueTask } from './sync/tasks.ts';

export const allParts = {
  AccountId,
  accountIdentity,
  accountsAtOnce,
  accountStateType,
  adoptState,
  backoff,
  callHost,
  callWithoutSession,
  changeConversation,
  changeRows,
  ChannelId,
  channelRow,
  channelRows,
  checkInput,
  checkRelayAnswer,
  checkRelayInfo,
  checkSchema,
  ClientError,
  clientSecretCommitment,
  closedDescriptor,
  contactRows,
  conversationRow,
  conversationsByTime,
  Counter,
  createGroupSecret,
  currentDescriptor,
  currentDevices,
  draftFor,
  dropTasks,
  encodeBase64url,
  enqueueTask,
  enqueueWrite,
  followChannel,
  GroupId,
  homeRelay,
  isClientError,
  isPending,
  isRefusal,
  isTemporary,
  knownProfile,
  knownState,
  makeRouteDraft,
  mayHaveLeft,
  MessageId,
  messagePrefix,
  messageRow,
  moves,
  moveSteps,
  newMemberKey,
  nextState,
  noteHomeChange,
  outbox,
  outgoingToChannel,
  ownKey,
  ownRecords,
  positionKey,
  publishProfile,
  publishRoute,
  putChannel,
  putMemberKey,
  refreshGroup,
  refreshHome,
  RelayId,
  RelayMisbehaviour,
  RelayUnreachable,
  requireChannel,
  requireGroup,
  resolveOwnState,
  resolveProfile,
  resolveRouteAt,
  rotationCandidates,
  routes,
  sealBoxes,
  secretBytes,
  seenDevices,
  sendObjectToOwnDevices,
  sentChanges,
  sharedChannels,
  shownMessages,
  signChannelClose,
  signChannelDescriptor,
  signChannelUpdate,
  stageState,
  storeMove,
  submitDescriptor,
  timelines,
  Type,
  unfinishedMove,
  unfollowChannel,
  UnixSeconds,
  unixSeconds,
  unreadMessages,
  whileKept,
  writeChainEvent,
};

/** The parts by name. */
export type Parts = typeof allParts;
