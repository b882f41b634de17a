/**
 * Pending tasks: messages this device must send because of something that was applied or decided.
 * A task is written in the transaction that causes it and removed in the one that puts its message
 * into the outbox, so that a crash loses none. Equal tasks have one key and are stored once.
 */
import { Collection } from '../store/collection.ts';
import type { Store, StoreWriter } from '../store/index.ts';

export type PendingTask =
  /** Send a contact's record to the account's other devices (03 §17). */
  | { readonly kind: 'sync-contact'; readonly account: string }
  /** Send every contact to the account's other devices. */
  | { readonly kind: 'send-snapshot' }
  /** Ask the account's other devices for their contacts. */
  | { readonly kind: 'request-snapshot' }
  /** Send the grant to a contact, with another signature or a longer period (03 §18). */
  | { readonly kind: 'update-grant'; readonly account: string }
  /** Notify a contact that the list of own devices changed (04 §7.4). */
  | { readonly kind: 'tell-devices'; readonly account: string }
  /** Read another account's device state, after a hint or because of an unverified grant. */
  | { readonly kind: 'refresh-state'; readonly account: string }
  /** Ask the account's other devices for their keys of all groups, or of one (05 §16). */
  | { readonly kind: 'request-groups' }
  | { readonly kind: 'request-group'; readonly group: string }
  /** Send the member key of a group, or of all groups, to the account's other devices. */
  | { readonly kind: 'send-group'; readonly group: string }
  | { readonly kind: 'send-groups' }
  /** Send the application secrets of a group to the account's other devices. */
  | { readonly kind: 'send-group-history'; readonly group: string }
  /**
   * Send followed channels and read marks to one own device, or to all (decision 0039): in one
   * message, or what is left in the one with this index.
   */
  | { readonly kind: 'send-account-state'; readonly device?: string; readonly part?: number }
  /** Publish the own profile again if the home relay lost it (03 §7, decision 0040). */
  | { readonly kind: 'publish-profile' };

/** The collection keeps the name it has in existing stores. */
export const pendingTasks = new Collection<PendingTask>('duties');

function taskKey(task: PendingTask): string {
  if ('account' in task) return `${task.kind}/${task.account}`;
  if ('group' in task) return `${task.kind}/${task.group}`;
  if (task.kind !== 'send-account-state') return task.kind;
  return [task.kind, task.device, task.part].filter((part) => part !== undefined).join('/');
}

export async function enqueueTask(tx: StoreWriter, task: PendingTask): Promise<void> {
  await pendingTasks.put(tx, taskKey(task), task);
}

export async function removeTask(tx: StoreWriter, task: PendingTask): Promise<void> {
  await pendingTasks.delete(tx, taskKey(task));
}

/** Removes tasks for which nothing is left to be done. */
export async function dropTasks(
  { store }: { readonly store: Store },
  tasks: readonly PendingTask[],
): Promise<void> {
  await store.write(async (tx) => {
    for (const task of tasks) await removeTask(tx, task);
  });
}
