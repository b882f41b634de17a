/** The stable shapes of `--json`. Members are only ever added. */
import type { AccountStatus } from '../account.ts';
import type { DeviceInfo } from '../accounts/devices.ts';
import type { Contact, ContactStatus } from '../contacts/contact.ts';
import type { Message } from '../messages/message.ts';

export function messageShape(row: Message, self: string) {
  const { body, attachments, replyTo } = row;
  return {
    message_id: row.messageId,
    from: row.from,
    to: row.to,
    direction: directionOf(row, self),
    created_at: row.createdAt,
    accepted_at: row.acceptedAt,
    order: row.order,
    type: row.content?.$type,
    text: body?.text,
    content_type: body?.content_type,
    attachments,
    reply_to: replyTo && { from: replyTo.from, message_id: replyTo.messageId },
    status: row.status,
    error: row.error,
    handed_over_by: row.handedOverBy,
  };
}

/** A message as lists have it: with `unread`, if it was before it was shown. */
export function unreadShape(row: Message, self: string, isUnread: boolean) {
  return { ...messageShape(row, self), ...(isUnread && { unread: true }) };
}

function directionOf({ from, to }: Message, self: string): 'in' | 'out' | 'self' {
  if (from === to) return 'self';
  return from === self ? 'out' : 'in';
}

/** The words of the stable JSON. */
const standings: Readonly<Record<ContactStatus, string>> = {
  active: 'active',
  asks: 'pending',
  waiting: 'awaiting',
  removed: 'deleted',
  blocked: 'blocked',
  none: 'none',
};

/** Returns one word for the state of a relationship. */
export function contactState({ status }: Contact): string {
  return standings[status];
}

export function contactShape(contact: Contact) {
  return {
    account: contact.account,
    alias: contact.alias,
    standing: contactState(contact),
    note: contact.note,
  };
}

export function deviceShape(device: DeviceInfo) {
  return {
    device: device.deviceId,
    this_device: device.isThisDevice,
    valid: device.isValidNow,
    not_before: device.notBefore,
    expires_at: device.expiresAt,
    history: device.history,
  };
}

export function statusShape(status: AccountStatus) {
  return {
    account: status.account,
    device: status.deviceId,
    relay: status.homeRelay,
    position: status.position,
    gap: status.hasGap,
    outbox: status.outbox,
    owed: status.pendingTasks,
  };
}
