/** Tasks towards contacts, and contact records for the own devices (03 §17, §18; 04 §7.4). */
import { type ContactGrant, type ContactRecord, cleanGrant, utf8Length } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { knownState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { sendMessage } from '../messages/send-message.ts';
import { sendToOwnDevices } from '../messages/send-to-own-devices.ts';
import { Collection } from '../store/collection.ts';
import { dropTasks, type PendingTask, removeTask } from '../sync/tasks.ts';
import { retryUnverifiedGrant } from './apply-contact.ts';
import { contactRow, contactRows } from './contact-rows.ts';
import { resolveContactState } from './contact-state.ts';

/** Bytes of records in one message; an envelope holds some 196,000 (04 §3). */
const batchBytes = 100_000;

/** Type of the object that carries records, without the service word. */
const contactsSync = 'account.contacts.sync';

/** Milliseconds between automatic reads of one account's device state (04 §7.4). */
const refreshInterval = 30_000;
/** Unix milliseconds of the last automatic read, by account. */
const refreshes = new Collection<number>('refreshes');

type ContactTask = Extract<PendingTask, { account: string }>;

/** Whether a task is towards one contact, and not towards the own devices. */
export function isContactTask({ kind }: PendingTask): boolean {
  return kind === 'update-grant' || kind === 'tell-devices' || kind === 'refresh-state';
}

/**
 * Runs one task about contacts. Contact records are sent together, see {@link sendContactRecords}.
 */
export async function runContactTask(
  core: AccountCore,
  task: PendingTask,
  signal: AbortSignal,
): Promise<void> {
  switch (task.kind) {
    case 'request-snapshot':
      return await sendToOwnDevices(core, {
        name: contactsSync,
        tasks: [task],
        content: { request_snapshot: true },
        signal,
      });
    case 'update-grant':
      return await sendToContact(core, task, { content: async (grant) => grant, signal });
    case 'tell-devices':
      return await sendToContact(core, task, { content: () => deviceHint(core), signal });
    case 'refresh-state':
      return await refreshContactState(core, task, signal);
    default:
      throw new TypeError(`${task.kind} is not run alone`);
  }
}

/** Whether a task is done by sending contact records to the own devices. */
export function isRecordTask({ kind }: PendingTask): boolean {
  return kind === 'sync-contact' || kind === 'send-snapshot';
}

async function deviceHint(core: AccountCore): Promise<JsonObject | undefined> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined) return undefined;
  return { $type: core.network.type('device.state.changed'), revision: state.revision };
}

/** Sends the changed contact records, or all of them, to the own devices, in several messages. */
export async function sendContactRecords(
  core: AccountCore,
  tasks: readonly PendingTask[],
  signal: AbortSignal,
): Promise<void> {
  if (tasks.length === 0) return;
  const all = tasks.some(({ kind }) => kind === 'send-snapshot');
  const accounts = new Set(tasks.map((task) => ('account' in task ? task.account : undefined)));
  const rows = await core.store.read((tx) => contactRows(tx));
  const records = rows
    .filter(({ account }) => all || accounts.has(account))
    .flatMap(({ record }) => (record === undefined ? [] : [record]));
  const batches = inBatches(records);
  for (const [index, batch] of batches.entries()) {
    const isLast = index === batches.length - 1;
    await sendToOwnDevices(core, {
      name: contactsSync,
      tasks: isLast ? tasks : [],
      content: { records: batch },
      signal,
    });
  }
  if (batches.length === 0) await dropTasks(core, tasks);
}

function inBatches(records: readonly ContactRecord[]): ContactRecord[][] {
  const batches: ContactRecord[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const record of records) {
    const bytes = utf8Length(canonicalJson(record));
    if (size + bytes > batchBytes) {
      batches.push([]);
      size = 0;
    }
    batches.at(-1)?.push(record);
    size += bytes;
  }
  return batches;
}

/** Sends an object to an established contact; drops the task if the contact is gone meanwhile. */
async function sendToContact(
  core: AccountCore,
  task: ContactTask,
  message: {
    /** Receives the grant this account issued to the contact. */
    readonly content: (issued: ContactGrant) => Promise<JsonObject | undefined>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { record } = await core.store.read((tx) => contactRow(tx, task.account));
  const { grant_from_contact: authorization, grant_to_contact: issued } = record ?? {};
  const content =
    issued === undefined ? undefined : await message.content(await cleanIssuedGrant(core, issued));
  if (content === undefined || authorization === undefined) return await dropTasks(core, [task]);
  await sendMessage(core, {
    to: task.account,
    content,
    authorization,
    purpose: { kind: 'duty', duties: [task] },
    signal: message.signal,
    inTransaction: (tx) => removeTask(tx, task),
  });
}

/** Removes signatures of devices that are gone from the copy that is sent (03 §16.4). */
async function cleanIssuedGrant(core: AccountCore, grant: ContactGrant): Promise<ContactGrant> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined) return grant;
  return cleanGrant(core.network, grant, { state, now: unixSeconds(core.clock) });
}

/** Reads a contact's device state after a hint or because a grant is not verified yet. */
async function refreshContactState(
  core: AccountCore,
  task: ContactTask,
  signal: AbortSignal,
): Promise<void> {
  const { account } = task;
  const now = core.clock.milliseconds();
  const row = await core.store.write(async (tx) => {
    const last = await refreshes.get(tx, account);
    if (last !== undefined && now - last < refreshInterval) return undefined;
    await refreshes.put(tx, account, now);
    return await contactRow(tx, account);
  });
  if (row === undefined) return;
  const authorization = row.record?.grant_from_contact ?? row.request?.grant;
  await resolveContactState(core, account, { ...(authorization && { authorization }), signal });
  await core.store.write(async (tx) => {
    await retryUnverifiedGrant(core, tx, account);
    await removeTask(tx, task);
  });
}
