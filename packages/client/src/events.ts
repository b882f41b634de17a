/** What happens to an account, for whoever shows it to a person. */
import type { ChannelDescriptor } from '@posthouse/protocol';
import type { ChannelPostEntry } from './channels/timeline/channel-entries.ts';
import type { GroupBlock } from './groups/group-rows.ts';
import type { GroupChangeRow, GroupMessageRow } from './groups/timeline/group-entries.ts';
import type { Message } from './messages/message.ts';

/** What happens in groups. Everything in it was verified, unless it says otherwise. */
export type GroupAccountEvent =
  /** This account is a member now, with a key that was verified. */
  | { readonly kind: 'group-joined'; readonly groupId: string }
  /** The host lets this account read no more: it left, was removed or banned. Its word alone. */
  | { readonly kind: 'group-ended'; readonly groupId: string }
  /** A message to show, decrypted. */
  | {
      readonly kind: 'group-message';
      readonly groupId: string;
      readonly message: GroupMessageRow;
    }
  /** A member's nickname in one group; `null` is none. */
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
      /** Who signed the event. */
      readonly by?: string;
    }
  /** Properties, roles, owner, keys, bans or status changed. */
  | { readonly kind: 'group-change'; readonly groupId: string; readonly change: GroupChangeRow }
  /** A message was rejected; reading went on. */
  | {
      readonly kind: 'group-message-rejected';
      readonly groupId: string;
      readonly sequence: number;
      readonly reason: string;
    }
  /** A message of this device will not be delivered. */
  | {
      readonly kind: 'group-message-unsent';
      readonly groupId: string;
      readonly messageId: string;
      readonly reason: string;
    }
  /** The history does not verify from here on; nothing behind it is used (05 §5.5). */
  | { readonly kind: 'group-blocked'; readonly groupId: string; readonly blocked: GroupBlock }
  /** Key material of an epoch does not verify and is not used (05 §7.5). */
  | {
      readonly kind: 'group-key-rejected';
      readonly groupId: string;
      readonly epoch: number;
      readonly status: 'rejected' | 'missing_box';
    }
  /** The list of applications, or of key recovery requests, changed: read it again. */
  | {
      readonly kind: 'group-applications' | 'group-recoveries';
      readonly groupId: string;
    }
  /** There is more at its host than is read in one go; the next synchronization goes on there. */
  | { readonly kind: 'group-incomplete'; readonly groupId: string }
  /** A group could not be read for now; the others were. */
  | { readonly kind: 'group-failed'; readonly groupId: string; readonly error: unknown };

/** What happens in channels that are followed. Everything in it was verified. */
export type ChannelAccountEvent =
  /** This device follows a channel from now on, or created one. */
  | { readonly kind: 'channel-followed'; readonly channelId: string }
  /** A new post, with the edits that came with it. */
  | {
      readonly kind: 'channel-post';
      readonly channelId: string;
      readonly post: ChannelPostEntry;
    }
  /** A post that is here was edited; `post` is as it is now. */
  | {
      readonly kind: 'channel-edited';
      readonly channelId: string;
      readonly post: ChannelPostEntry;
    }
  /** A post was deleted and is not here any more. */
  | {
      readonly kind: 'channel-deleted';
      readonly channelId: string;
      readonly sequence: number;
      readonly by: string;
      readonly reason?: string;
    }
  /** There is a newer descriptor: name, moderators, or the end of the channel. */
  | {
      readonly kind: 'channel-changed';
      readonly channelId: string;
      readonly descriptor: ChannelDescriptor;
    }
  /** An event does not verify and is not used; reading went on. */
  | {
      readonly kind: 'channel-event-refused';
      readonly channelId: string;
      readonly sequence: number;
      readonly reason: string;
    }
  /** Not everything that lies between is available; that proves nothing (06 §8.11). */
  | {
      readonly kind: 'channel-gap';
      readonly channelId: string;
      readonly from: number;
      readonly through: number;
    }
  /** Something this device wrote will not be carried out. */
  | {
      readonly kind: 'channel-write-unsent';
      readonly channelId: string;
      readonly write: 'create' | 'update' | 'close' | 'post' | 'edit' | 'delete';
      readonly reason: string;
    }
  /** There is more at its host than is read in one go; the next synchronization goes on there. */
  | { readonly kind: 'channel-incomplete'; readonly channelId: string }
  /** A channel could not be read for now; the others were. */
  | { readonly kind: 'channel-failed'; readonly channelId: string; readonly error: unknown };

export type AccountEvent =
  | GroupAccountEvent
  | ChannelAccountEvent
  /** A message to show arrived, or one this account sent from another device. */
  | { readonly kind: 'message'; readonly message: Message }
  /** Somebody asks to become a contact. */
  | { readonly kind: 'contact-request'; readonly account: string; readonly note?: string }
  | {
      readonly kind: 'contact-changed';
      readonly account: string;
      readonly status: 'active' | 'deleted';
    }
  /** A record of the timeline was refused; `reason` names the rule. */
  | { readonly kind: 'message-refused'; readonly message: Message }
  /** The same message ID came with another content: the second one was refused (04 §18.2). */
  | { readonly kind: 'message-conflict'; readonly from: string; readonly messageId: string }
  /** Records this device never read were lost to the relay's retention (04 §17.4). */
  | { readonly kind: 'timeline-gap'; readonly relayId: string }
  /** There is more on a relay's timeline than is read in one go; the next `sync` goes on there. */
  | { readonly kind: 'timeline-incomplete'; readonly relayId: string }
  /** Live reading began or went on; `transport` says how. Lists may have changed meanwhile. */
  | { readonly kind: 'connected'; readonly transport: 'websocket' | 'http' }
  /** The connection was lost; it is being rebuilt. */
  | { readonly kind: 'disconnected'; readonly error: unknown };
