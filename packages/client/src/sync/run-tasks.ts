/** Doing what is owed to contacts and to the account's other devices (03 §17, §18; 04 §7.4). */
import { type ContactGrant, type ContactRecord, cleanGrant, utf8Length } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { knownState, resolveState } from '../accounts/device-states.ts';
import { isTemporary } from '../connect/backoff.ts';
import { settleUnverified } from '../contacts/apply-contact.ts';
import { contactRow, contactRows } from '../contacts/contact-rows.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import { isClientError, isRefusal } from '../errors.ts';
import { isGroupTask, runGroupTask } from '../groups/keys/own-device-sync.ts';
import { send } from '../messages/send-message.ts';
import { forget, toOwnDevices } from '../messages/send-to-own-devices.ts';
import { Collection } from '../store/index.ts';
import { type Duty, duties, removeDuty } from './tasks.ts';

/** Bytes of records in one message; an envelope holds some 196,000 (04 §3). */
const batchBytes = 100_000;

/** Type of the object that carries records, behind the service word. */
const contactsSync = 'account.contacts.sync';

/** Milliseconds between automatic reads of one account's device state (04 §7.4). */
const refreshInterval = 30_000;
/** Unix milliseconds of the last automatic read, by account. */
const refreshes = new Collection<number>('refreshes');

type ContactDuty = Extract<Duty, { account: string }>;

/**
 * Does what is owed. What cannot be done for now stays owed; what another side refuses for good is
 * dropped. Neither one contact nor what the relay says of it can hold up the others.
 *
 * @throws RelayUnreachable, RelayMisbehaviour
 */
export async function runDuties(core: AccountCore, signal: AbortSignal): Promise<void> {
  const owed = (await core.store.read((tx) => duties.list(tx))).map(({ value }) => value);
  const records = owed.filter(({ kind }) => kind === 'sync-contact' || kind === 'send-snapshot');
  await attempt(core, records, () => sendRecords(core, records, signal));
  for (const duty of owed) {
    if (!records.includes(duty)) await attempt(core, [duty], () => doDuty(core, duty, signal));
  }
}

async function attempt(
  core: AccountCore,
  due: readonly Duty[],
  act: () => Promise<void>,
): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (isRefusal(error) && isTemporary(error)) return;
    // A contact can sign one state for us and another for its relay, and so make an honest relay
    // look like a lying one. Nothing of the answer was taken; it is asked again later.
    if (isClientError(error, 'relay_misbehaviour') && due.some((duty) => isOfContact(duty))) return;
    const isFinal = isRefusal(error) || isClientError(error, 'no_recipient_device');
    if (!isFinal) throw error;
    await forget(core, due);
  }
}

/** Whether a duty is towards one contact, and not towards the own devices. */
function isOfContact({ kind }: Duty): boolean {
  return kind === 'update-grant' || kind === 'tell-devices' || kind === 'refresh-state';
}

async function doDuty(core: AccountCore, duty: Duty, signal: AbortSignal): Promise<void> {
  if (isGroupTask(duty)) return await runGroupTask(core, duty, signal);
  switch (duty.kind) {
    case 'request-snapshot':
      return await toOwnDevices(core, {
        name: contactsSync,
        due: [duty],
        content: { request_snapshot: true },
        signal,
      });
    case 'update-grant':
      return await toContact(core, duty, { content: async (grant) => grant, signal });
    case 'tell-devices':
      return await toContact(core, duty, { content: () => deviceHint(core), signal });
    case 'refresh-state':
      return await refreshState(core, duty, signal);
    default:
      throw new TypeError(`${duty.kind} is done with others of its kind`);
  }
}

async function deviceHint(core: AccountCore): Promise<JsonObject | undefined> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined) return undefined;
  return { $type: core.network.type('device.state.changed'), revision: state.revision };
}

/** The changed records, or all there are, in messages of bearable size. */
async function sendRecords(
  core: AccountCore,
  due: readonly Duty[],
  signal: AbortSignal,
): Promise<void> {
  if (due.length === 0) return;
  const all = due.some(({ kind }) => kind === 'send-snapshot');
  const accounts = new Set(due.map((duty) => ('account' in duty ? duty.account : undefined)));
  const rows = await core.store.read((tx) => contactRows(tx));
  const records = rows
    .filter(({ account }) => all || accounts.has(account))
    .flatMap(({ record }) => (record === undefined ? [] : [record]));
  const batches = inBatches(records);
  for (const [index, batch] of batches.entries()) {
    const isLast = index === batches.length - 1;
    await toOwnDevices(core, {
      name: contactsSync,
      due: isLast ? due : [],
      content: { records: batch },
      signal,
    });
  }
  if (batches.length === 0) await forget(core, due);
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

/** Writes to an established contact with its grant; the contact may be gone meanwhile. */
async function toContact(
  core: AccountCore,
  duty: ContactDuty,
  message: {
    /** Gets the grant this account issued to the contact. */
    readonly content: (issued: ContactGrant) => Promise<JsonObject | undefined>;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { record } = await core.store.read((tx) => contactRow(tx, duty.account));
  const { grant_from_contact: authorization, grant_to_contact: issued } = record ?? {};
  const content =
    issued === undefined ? undefined : await message.content(await clean(core, issued));
  if (content === undefined || authorization === undefined) return await forget(core, [duty]);
  await send(core, {
    to: duty.account,
    content,
    authorization,
    purpose: { kind: 'duty', duties: [duty] },
    signal: message.signal,
    along: (tx) => removeDuty(tx, duty),
  });
}

/** The copy that is sent carries no signatures of devices that are gone (03 §16.4). */
async function clean(core: AccountCore, grant: ContactGrant): Promise<ContactGrant> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined) return grant;
  return cleanGrant(core.network, grant, { state, now: unixSeconds(core.clock) });
}

/** Reads a contact's device state because a hint or an unverified grant asks for it. */
async function refreshState(
  core: AccountCore,
  duty: ContactDuty,
  signal: AbortSignal,
): Promise<void> {
  const { account } = duty;
  const now = core.clock.milliseconds();
  const row = await core.store.write(async (tx) => {
    const last = await refreshes.get(tx, account);
    if (last !== undefined && now - last < refreshInterval) return undefined;
    await refreshes.put(tx, account, now);
    return await contactRow(tx, account);
  });
  if (row === undefined) return;
  const authorization = row.record?.grant_from_contact ?? row.unverified ?? row.request?.grant;
  await resolveState(core, account, { ...(authorization && { authorization }), signal });
  await core.store.write(async (tx) => {
    await settleUnverified(core, tx, account);
    await removeDuty(tx, duty);
  });
}
