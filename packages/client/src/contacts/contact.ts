/** The public form of a contact (03 §15.2, §17.2). */
import type { ContactRecord } from '@posthouse/protocol';
import { profiles } from '../accounts/account-rows.ts';
import type { StoreReader } from '../store/index.ts';
import { aliasOf, type ContactRow, isBlocked } from './contact-rows.ts';

/**
 * The relationship to another account:
 * - `active`: both are contacts of each other;
 * - `asks`: the other account asks to become a contact, and waits for `approve` or `reject`;
 * - `waiting`: the own request was sent and is not answered yet;
 * - `removed`: was a contact, until one of the own devices removed it;
 * - `blocked`: its requests are dropped and its messages are refused, until one of the own devices unblocks it;
 * - `none`: neither.
 */
export type ContactStatus = 'active' | 'asks' | 'waiting' | 'removed' | 'blocked' | 'none';

/** Another account, as a person knows it. */
export interface Contact {
  readonly account: string;
  readonly status: ContactStatus;
  /**
   * What to call the account: its `alias`, else its `nickname`. The latter is chosen by the other
   * account: `visibleName` of `@posthouse/client/content` makes it safe to show.
   */
  readonly name?: string;
  /** The local name that the person gave it. */
  readonly alias?: string;
  /** From its verified profile, if this device has read one. It identifies no account. */
  readonly nickname?: string;
  /** What the account wrote with its request. */
  readonly note?: string;
  /** Unix seconds at which its request arrived, or the stored record of the contact changed last. */
  readonly changedAt?: number;
  /** The record that own devices share, with the grants: the protocol's object (03 §17.2). */
  readonly record?: ContactRecord;
}

/** Converts a stored row to its public form. */
export async function toContact(tx: StoreReader, row: ContactRow): Promise<Contact> {
  const { account, request, record } = row;
  const alias = aliasOf(row) || undefined;
  const nickname = (await profiles.get(tx, account))?.profile.nickname || undefined;
  const name = alias ?? nickname;
  const changedAt = request?.receivedAt ?? record?.updated_at;
  return {
    account,
    status: statusOf(row),
    ...(name !== undefined && { name }),
    ...(alias !== undefined && { alias }),
    ...(nickname !== undefined && { nickname }),
    ...(request?.note !== undefined && { note: request.note }),
    ...(changedAt !== undefined && { changedAt }),
    ...(record !== undefined && { record }),
  };
}

function statusOf(row: ContactRow): ContactStatus {
  const { status, pending, awaiting } = row.relationship;
  if (isBlocked(row)) return 'blocked';
  if (status === 'active') return 'active';
  if (pending) return 'asks';
  if (awaiting) return 'waiting';
  return status === 'deleted' ? 'removed' : 'none';
}
