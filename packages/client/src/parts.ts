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
  currentDevices,
  GroupId,
  MessageId,
  RelayId,
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
import { channelRow, channelRows } from './channels/channel-rows.ts';
import { followChannel, unfollowChannel } from './channels/follow-channel.ts';
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
  checkRelayAnswer,
  isClientError,
  isRefusal,
  RelayMisbehaviour,
  RelayUnreachable,
} from './errors.ts';
import { messageRow } from './messages/message-rows.ts';
import { outbox } from './messages/outbox.ts';
import { sendObjectToOwnDevices } from './messages/send-to-own-devices.ts';
import { changeRows, seenDevices, sentChanges, sharedChannels } from './own-devices/change-rows.ts';
import { accountStateType } from './own-devices/object-types.ts';
import { positionKey } from './store/row-keys.ts';
import { dropTasks, enqueueTask } from './sync/tasks.ts';

export const allParts = {
  AccountId,
  accountIdentity,
  accountStateType,
  adoptState,
  backoff,
  callWithoutSession,
  changeConversation,
  changeRows,
  ChannelId,
  channelRow,
  channelRows,
  checkRelayAnswer,
  checkRelayInfo,
  checkSchema,
  ClientError,
  contactRows,
  conversationRow,
  conversationsByTime,
  Counter,
  currentDevices,
  draftFor,
  dropTasks,
  enqueueTask,
  followChannel,
  GroupId,
  homeRelay,
  isClientError,
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
  nextState,
  noteHomeChange,
  outbox,
  ownKey,
  ownRecords,
  positionKey,
  publishProfile,
  publishRoute,
  refreshHome,
  RelayId,
  RelayMisbehaviour,
  RelayUnreachable,
  resolveOwnState,
  resolveProfile,
  resolveRouteAt,
  routes,
  seenDevices,
  sendObjectToOwnDevices,
  sentChanges,
  sharedChannels,
  shownMessages,
  stageState,
  storeMove,
  timelines,
  Type,
  unfinishedMove,
  unfollowChannel,
  unixSeconds,
  UnixSeconds,
  unreadMessages,
};

/** The parts by name. */
export type Parts = typeof allParts;
