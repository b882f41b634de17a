/** Events that `sync` returns and `follow` yields, for a program that shows them to a person. */
import type { ChannelDescriptor } from '@posthouse/protocol';
import type { ChannelPostEntry } from './channels/timeline/channel-entry.ts';
import type { ConversationKey } from './conversations/conversation-rows.ts';
import type { PlainError } from './errors.ts';
import type { GroupBlock } from './groups/group-rows.ts';
import type { GroupChange, GroupMessage } from './groups/timeline/group-entry.ts';
import type { Message } from './messages/message.ts';
import type { SendingStatus } from './messages/message-rows.ts';

/** Events of groups. Everything in them was verified, unless stated otherwise. */
export type GroupAccountEvent =
  /** This account became a member, with a verified key. */
  | { readonly kind: 'group-joined'; readonly groupId: string }
  /** The host does not let this account read any more: it left, was removed or banned. Not verified. */
  | { readonly kind: 'group-ended'; readonly groupId: string }
  /** A decrypted message to show. */
  | {
      readonly kind: 'group-message';
      readonly groupId: string;
      readonly message: GroupMessage;
    }
  /** A member's nickname in one group; `null` if it was cleared. */
  | {
      readonly kind: 'group-nickname';
      readonly groupId: string;
      readonly account: string;
      readonly nickname: string | null;
    }
  | {
      readonly kind: 'group-member';
      readonly groupId: string;
      readonly account: string;
      readonly change: 'joined' | 'left';
      /** Account that signed the event. */
      readonly by?: string;
    }
  /** Properties, roles, owner, keys, bans or status changed. */
  | { readonly kind: 'group-change'; readonly groupId: string; readonly change: GroupChange }
  /** A message was rejected; later messages are read. */
  | {
      readonly kind: 'group-message-rejected';
      readonly groupId: string;
      readonly sequence: number;
      readonly reason: string;
    }
  /** The history does not verify from here on; no later event is used (05 §5.5). */
  | { readonly kind: 'group-blocked'; readonly groupId: string; readonly blocked: GroupBlock }
  /**
   * The host lost events that it had given, for example because it was put back to a backup. Its
   * messages since the last change are read again; messages of that time may be missing.
   */
  | { readonly kind: 'group-rollback'; readonly groupId: string }
  /** Key material of an epoch does not verify and is not used (05 §7.5). */
  | {
      readonly kind: 'group-key-rejected';
      readonly groupId: string;
      readonly epoch: number;
      readonly status: 'rejected' | 'missing_box';
    }
  /** The list of applications or key recovery requests changed: read it again. */
  | {
      readonly kind: 'group-applications' | 'group-recoveries';
      readonly groupId: string;
    }
  /** A read limit was reached; the next synchronization reads the rest. */
  | { readonly kind: 'group-incomplete'; readonly groupId: string }
  /** A group could not be read this time; the other groups were. */
  | { readonly kind: 'group-failed'; readonly groupId: string; readonly error: PlainError };

/** Events of followed channels. Everything in them was verified. */
export type ChannelAccountEvent =
  /** This device began to follow a channel, or created one. */
  | { readonly kind: 'channel-followed'; readonly channelId: string }
  /** A new post, with the edits that were read with it. */
  | {
      readonly kind: 'channel-post';
      readonly channelId: string;
      readonly post: ChannelPostEntry;
    }
  /** A stored post was edited; `post` is its current form. */
  | {
      readonly kind: 'channel-edited';
      readonly channelId: string;
      readonly post: ChannelPostEntry;
    }
  /** A post was deleted and removed from this store. */
  | {
      readonly kind: 'channel-deleted';
      readonly channelId: string;
      readonly sequence: number;
      readonly by: string;
      readonly reason?: string;
    }
  /** A newer descriptor was read: name, moderators, or the end of the channel. */
  | {
      readonly kind: 'channel-changed';
      readonly channelId: string;
      readonly descriptor: ChannelDescriptor;
    }
  /** An event does not verify and is not used; later events are read. */
  | {
      readonly kind: 'channel-event-refused';
      readonly channelId: string;
      readonly sequence: number;
      readonly reason: string;
    }
  /** Some events of the range are not available; that proves nothing (06 §8.11). */
  | {
      readonly kind: 'channel-gap';
      readonly channelId: string;
      readonly from: number;
      readonly through: number;
    }
  /**
   * The host lost events that it had given, for example because it was put back to a backup. The
   * timeline since the last change of the descriptor is read again; posts may be missing.
   * With `revision` it lost descriptors: it has this one, lower than what was verified here. This
   * client goes by the newest; the owner's publishes it again.
   */
  | { readonly kind: 'channel-rollback'; readonly channelId: string; readonly revision?: number }
  /** A read limit was reached; the next synchronization reads the rest. */
  | { readonly kind: 'channel-incomplete'; readonly channelId: string }
  /** A channel could not be read this time; the other channels were. */
  | { readonly kind: 'channel-failed'; readonly channelId: string; readonly error: PlainError };

/**
 * What this device wrote has another status. `messageId` is the ID that `post` returned, also after
 * the message was sealed again with another one; edits and deletions of channel posts, and writes of
 * descriptors, have no ID.
 */
export interface MessageStatusEvent {
  readonly kind: 'message-status';
  readonly conversation: { readonly kind: 'person' | 'group' | 'channel'; readonly id: string };
  readonly messageId?: string;
  readonly write?: 'create' | 'update' | 'close' | 'edit' | 'delete';
  readonly status: SendingStatus;
  /** Why it will not take effect: a code of the relay or of {@link ClientError}. */
  readonly error?: { readonly code: string; readonly message: string };
}

/** How far the hand-over of this device's messages to another own device is. */
export interface HandOverEvent {
  readonly kind: 'hand-over';
  /** The device that gets the messages. */
  readonly deviceId: string;
  readonly sent: number;
  /** Messages that are left out because they do not fit into one of the account's own. */
  readonly skipped: number;
  /** Messages there are at most. */
  readonly total: number;
  readonly isComplete: boolean;
  /** Why it was given up. */
  readonly error?: PlainError;
}

/**
 * An event of the account: its messages, contacts, groups, channels and connection.
 *
 * @example
 * for (const event of await account.sync()) {
 *   if (event.kind === 'contact-request') console.log(event.account, event.note);
 *   if (event.kind === 'group-message') console.log(event.groupId, event.message.content);
 * }
 */
export type AccountEvent =
  | GroupAccountEvent
  | ChannelAccountEvent
  /** A message to show was received, or was sent by another device of this account. */
  | { readonly kind: 'message'; readonly message: Message }
  /** Another account asks to become a contact. */
  | { readonly kind: 'contact-request'; readonly account: string; readonly note?: string }
  | {
      readonly kind: 'contact-changed';
      readonly account: string;
      readonly status: 'active' | 'deleted';
    }
  | MessageStatusEvent
  /** Another device of this account marked messages as read; fewer are unread here now. */
  | { readonly kind: 'conversation-read'; readonly conversation: ConversationKey }
  | HandOverEvent
  /**
   * Another own device handed messages over. They are at their places in the lists, read, and marked
   * with `handedOverBy`; `sent` and `total` count the messages of the whole hand-over.
   */
  | {
      readonly kind: 'history';
      /** The device that has the messages. */
      readonly deviceId: string;
      /** Messages that were not here. */
      readonly added: number;
      readonly sent: number;
      readonly total: number;
      readonly isComplete: boolean;
    }
  /** A record of the timeline was refused; `message.reason` names the rule. */
  | { readonly kind: 'message-refused'; readonly message: Message }
  /** A known message ID was received with other content: the second one was refused (04 §18.2). */
  | { readonly kind: 'message-conflict'; readonly from: string; readonly messageId: string }
  /**
   * Records may be missing: the relay's `retention` dropped them before this device read them
   * (04 §17.4), or a `rollback` took the relay back to an earlier state, for example a backup. After
   * a rollback everything that the relay has is read again (04 §18.3).
   */
  | {
      readonly kind: 'timeline-gap';
      readonly relayId: string;
      readonly cause: 'retention' | 'rollback';
    }
  /** A read limit was reached on a relay's timeline; the next `sync` reads the rest. */
  | { readonly kind: 'timeline-incomplete'; readonly relayId: string }
  /**
   * This device's certificate ends in 30, 7 or 1 days or less, and the client cannot renew it: the
   * account key is not stored here, or renewing failed. After the end the device is refused. Call
   * `account.devices.renew` with the key, or have the request of `Client.requestDevice` approved.
   */
  | {
      readonly kind: 'device-expires';
      /** Unix seconds. */
      readonly expiresAt: number;
      readonly days: 30 | 7 | 1;
    }
  /** More happened than the log of events holds: read the lists again. Newer events follow. */
  | { readonly kind: 'events-missed' }
  /** The home relay is being connected. */
  | { readonly kind: 'connection'; readonly state: 'connecting' }
  /** The home relay is connected, over this transport. Lists may have changed meanwhile. */
  | {
      readonly kind: 'connection';
      readonly state: 'connected';
      readonly transport: 'websocket' | 'http';
    }
  /** The connection to the home relay was lost or could not be opened; the client tries again. */
  | {
      readonly kind: 'connection';
      readonly state: 'disconnected';
      readonly error: PlainError;
      /** Unix milliseconds of the next try; waking the client makes it earlier. */
      readonly nextTryAt: number;
    };
