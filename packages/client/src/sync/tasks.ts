/**
 * What this device still owes: messages to send because of something that was applied or decided.
 * A duty is written in the transaction that gives rise to it and removed in the one that puts its
 * message into the outbox, so that no crash loses one. The key says what is owed, so that the same
 * duty twice is one duty.
 */
import { Collection, type StoreWriter } from '../store/index.ts';

export type Duty =
  /** Tell the account's other devices about a contact (03 §17). */
  | { readonly kind: 'sync-contact'; readonly account: string }
  /** Send every contact to the account's other devices. */
  | { readonly kind: 'send-snapshot' }
  /** Ask the account's other devices for their contacts. */
  | { readonly kind: 'request-snapshot' }
  /** Send the grant to a contact, with another signature or a longer period (03 §18). */
  | { readonly kind: 'update-grant'; readonly account: string }
  /** Tell a contact that the list of own devices changed (04 §7.4). */
  | { readonly kind: 'tell-devices'; readonly account: string }
  /** Read the device state of another account, because a hint or an unverified grant asks so. */
  | { readonly kind: 'refresh-state'; readonly account: string }
  /** Ask the account's other devices for their keys of all groups, or of one (05 §16). */
  | { readonly kind: 'request-groups' }
  | { readonly kind: 'request-group'; readonly group: string }
  /** Tell the account's other devices the member key of a group, or of all groups. */
  | { readonly kind: 'send-group'; readonly group: string }
  | { readonly kind: 'send-groups' }
  /** Send them the application secrets of a group. */
  | { readonly kind: 'send-group-history'; readonly group: string };

export const duties = new Collection<Duty>('duties');

function dutyKey(duty: Duty): string {
  if ('account' in duty) return `${duty.kind}/${duty.account}`;
  return 'group' in duty ? `${duty.kind}/${duty.group}` : duty.kind;
}

export async function addDuty(tx: StoreWriter, duty: Duty): Promise<void> {
  await duties.put(tx, dutyKey(duty), duty);
}

export async function removeDuty(tx: StoreWriter, duty: Duty): Promise<void> {
  await duties.delete(tx, dutyKey(duty));
}
