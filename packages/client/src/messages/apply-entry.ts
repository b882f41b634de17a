/** Applies one opened timeline record, inside the transaction that moves the position. */
import {
  admitContent,
  currentDevices,
  type ParsedContent,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { ownKey, ownRecords } from '../accounts/account-rows.ts';
import { knownState, noteStateHint } from '../accounts/device-states.ts';
import {
  applyConsent,
  applyContactSync,
  applyGrant,
  applyOwnConsent,
} from '../contacts/apply-contact.ts';
import { contactRow } from '../contacts/contact-rows.ts';
import { mayWriteToUs } from '../contacts/relationship-rules.ts';
import type { AccountCore } from '../core.ts';
import { unixSeconds } from '../environment.ts';
import type { AccountEvent } from '../events.ts';
import {
  applyHistorySync,
  applyStateRequest,
  applyStateSync,
} from '../groups/keys/own-device-sync.ts';
import type { applyOwnDeviceObject } from '../own-devices/apply-object.ts';
import { waitingObjects } from '../own-devices/change-rows.ts';
import { isOwnDeviceType } from '../own-devices/object-types.ts';
import type { StoreReader, StoreWriter } from '../store/index.ts';
import { enqueueTask } from '../sync/tasks.ts';
import { toMessage } from './message.ts';
import {
  addMessage,
  canHoldMessage,
  holdMessage,
  type MessageRow,
  messageRow,
  type RecordOutcome,
  removeMessage,
  takeHeldMessages,
  updateMessage,
} from './message-rows.ts';
import type { OpenedEntry } from './open-page.ts';

/**
 * The result of applying a record. If it is not complete, the own device state must be read first,
 * and the position stays before the record.
 */
export type ApplyResult =
  | {
      readonly complete: true;
      /** Whether no record with this logical key was known, or only one that did not decrypt. */
      readonly isNew: boolean;
      readonly events: readonly AccountEvent[];
    }
  | { readonly complete: false; readonly needs: 'own-state' };

export interface ApplyOptions {
  /** Whether the own device state was read in this synchronization. */
  readonly ownStateIsFresh: boolean;
  /** Applies objects of {@link isOwnDeviceType}; loaded before the transaction if it is needed and can be. */
  readonly applyOwnDeviceObject?: typeof applyOwnDeviceObject | undefined;
}

/** Refused because box or payload did not authenticate; another relay may have a valid copy. */
const notDecryptable = 'not_decryptable';

interface Decision {
  readonly outcome: RecordOutcome;
  readonly reason?: string;
  readonly events?: readonly AccountEvent[];
}

/**
 * Applies a record once, from any relay: a record with the same logical key and content is a
 * duplicate, one with other content is refused (04 §18.2).
 */
export async function applyEntry(
  core: AccountCore,
  tx: StoreWriter,
  opened: OpenedEntry,
  options: ApplyOptions,
): Promise<ApplyResult> {
  const { envelope, accepted_at: acceptedAt } = opened.entry;
  const { from, message_id: messageId } = envelope;
  const known = await messageRow(tx, { from, message_id: messageId });
  if (known !== undefined && !mayBeReplaced(known, opened)) {
    // What cannot be opened here proves nothing of a copy.
    if (known.handedOverBy !== undefined && opened.parsed === undefined) {
      return { complete: true, isNew: false, events: [] };
    }
    if (known.digest !== opened.digest) {
      const conflict: AccountEvent = { kind: 'message-conflict', from, messageId };
      return { complete: true, isNew: false, events: [conflict] };
    }
    const { handedOverBy, ...verified } = known;
    if (known.accepted_at === undefined || handedOverBy !== undefined) {
      await updateMessage(tx, { ...verified, accepted_at: acceptedAt });
    }
    return { complete: true, isNew: false, events: [] };
  }
  const verdict = await decideOutcome(core, tx, opened, options);
  if (verdict === 'own-state') return { complete: false, needs: verdict };
  if (known !== undefined) await removeMessage(core, tx, known);
  const row = await addMessage(core, tx, {
    message_id: messageId,
    from,
    from_device_id: envelope.from_device_id,
    to: envelope.to,
    created_at: envelope.created_at,
    digest: opened.digest,
    ...contentOf(opened.parsed),
    outcome: verdict.outcome,
    ...(verdict.reason !== undefined && { reason: verdict.reason }),
    accepted_at: acceptedAt,
  });
  return { complete: true, isNew: true, events: await eventsOf(core, tx, row, verdict) };
}

/**
 * Whether a record takes the place of a stored one: that one was not opened, or was handed over by
 * another device and is not what the relay has.
 */
function mayBeReplaced(known: MessageRow, arrived: OpenedEntry): boolean {
  if (known.handedOverBy === undefined) return known.reason === notDecryptable;
  return arrived.parsed !== undefined && !isSameMessage(known, arrived);
}

/** Compares everything that is shown: the digest of a copy says nothing of the copy's content. */
function isSameMessage(known: MessageRow, { entry, digest, parsed }: OpenedEntry): boolean {
  const arrived = { ...entry.envelope, digest, ...contentOf(parsed) };
  return shownText(known) === shownText(arrived);
}

function shownText(row: Omit<MessageRow, 'order' | 'outcome'>): string {
  const { to, from_device_id, created_at, digest, content = null } = row;
  return canonicalJson({ to, from_device_id, created_at, digest, content });
}

function contentOf(parsed: ParsedContent | undefined): Pick<MessageRow, 'content'> {
  if (parsed === undefined || parsed.kind === 'invalid') return {};
  // What it brought has rows of its own.
  if (isOwnDeviceType(parsed.content.$type)) return { content: { $type: parsed.content.$type } };
  return { content: parsed.content };
}

async function eventsOf(
  core: AccountCore,
  tx: StoreWriter,
  row: MessageRow,
  { outcome, events = [] }: Decision,
): Promise<AccountEvent[]> {
  const released = await releaseHeldMessages(core, tx, events);
  if (outcome === 'held') {
    await holdMessage(tx, row);
    return [];
  }
  const type = row.content?.$type;
  if (isOwnDeviceType(type)) return [...events];
  if (outcome === 'refused') return [{ kind: 'message-refused', message: toMessage(row) }];
  const shown = outcome === 'stored' || type === core.network.type('message.direct');
  return [
    ...(shown ? [{ kind: 'message', message: toMessage(row) } as const] : []),
    ...events,
    ...released,
  ];
}

/** Releases held messages of accounts that became contacts. */
async function releaseHeldMessages(
  core: AccountCore,
  tx: StoreWriter,
  events: readonly AccountEvent[],
): Promise<AccountEvent[]> {
  const released: AccountEvent[] = [];
  for (const event of events) {
    if (event.kind !== 'contact-changed' || event.status !== 'active') continue;
    const row = await contactRow(tx, event.account);
    if (!(await mayWriteToUs(core, tx, row))) continue;
    for (const { reason: _held, ...held } of await takeHeldMessages(tx, event.account)) {
      const message = await addMessage(core, tx, { ...held, outcome: 'applied' });
      released.push({ kind: 'message', message: toMessage(message) });
    }
  }
  return released;
}

async function decideOutcome(
  core: AccountCore,
  tx: StoreWriter,
  opened: OpenedEntry,
  options: ApplyOptions,
): Promise<Decision | 'own-state'> {
  const { parsed, direction, entry } = opened;
  const { envelope } = entry;
  if (parsed === undefined) return { outcome: 'refused', reason: notDecryptable };
  if (parsed.kind === 'invalid') return { outcome: 'refused', reason: parsed.reason.message };
  const name = parsed.kind === 'known' ? parsed.name : undefined;
  const admission = admitContent({ direction, name });
  const isOwnDevices = parsed.kind === 'unknown' && isOwnDeviceType(parsed.type);
  if (admission.admit === 'refuse' || (isOwnDevices && direction !== 'self')) {
    return { outcome: 'refused', reason: 'not_permitted' };
  }
  if (isOwnDevices || admission.requires === 'current-device') {
    if (!(await isCurrentDevice(core, tx, envelope.from_device_id))) {
      if (!options.ownStateIsFresh) return 'own-state';
      return { outcome: 'refused', reason: 'sender_not_current' };
    }
  }
  if (admission.requires === 'issued-grant') {
    const contact = await contactRow(tx, envelope.from);
    if (!(await mayWriteToUs(core, tx, contact))) return await withoutRelationship(core, tx, name);
  }
  if (parsed.kind === 'unknown' && !isOwnDevices) return { outcome: 'stored' };
  try {
    if (parsed.kind === 'unknown') {
      const { applyOwnDeviceObject } = options;
      const object = { content: parsed.content, deviceId: envelope.from_device_id };
      // Later, with the part that is missing: the timeline goes on.
      if (!applyOwnDeviceObject) await waitingObjects.put(tx, envelope.message_id, object);
      const events = await applyOwnDeviceObject?.(core, tx, object);
      return events === undefined ? { outcome: 'stored' } : { outcome: 'applied', events };
    }
    return { outcome: 'applied', events: await applyContent(core, tx, { opened, parsed }) };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { outcome: 'refused', reason: error.message };
  }
}

async function isCurrentDevice(
  core: AccountCore,
  tx: StoreReader,
  deviceId: string,
): Promise<boolean> {
  const state = await knownState(tx, core.account);
  if (state === undefined) return false;
  return currentDevices(core.network, state, unixSeconds(core.clock)).has(deviceId);
}

/** Holds a message of an unknown account while a new device waits for its contacts; else refuses. */
async function withoutRelationship(
  core: AccountCore,
  tx: StoreReader,
  name: string | undefined,
): Promise<Decision> {
  const self = await ownRecords.get(tx, ownKey);
  const waits = unixSeconds(core.clock) < (self?.awaitsContactsUntil ?? 0);
  const held = waits && name === 'message.direct' && (await canHoldMessage(tx));
  return { outcome: held ? 'held' : 'refused', reason: 'no_relationship' };
}

/** Applies an admitted object. @throws ProtocolError if the object's own rules refuse it */
async function applyContent(
  core: AccountCore,
  tx: StoreWriter,
  item: {
    readonly opened: OpenedEntry;
    readonly parsed: Extract<ParsedContent, { kind: 'known' }>;
  },
): Promise<readonly AccountEvent[]> {
  const { opened, parsed } = item;
  const { envelope } = opened.entry;
  switch (parsed.name) {
    case 'contact.consent': {
      const consent = { consent: parsed.content, envelope };
      if (opened.direction === 'sent') return await applyOwnConsent(core, tx, consent);
      return await applyConsent(core, tx, consent);
    }
    case 'contact.grant':
      if (opened.direction === 'received') {
        await applyGrant(core, tx, { grant: parsed.content, from: envelope.from });
      }
      return [];
    case 'device.state.changed':
      if (opened.direction === 'received') {
        const { revision } = parsed.content;
        const pending = await noteStateHint(tx, envelope.from, revision);
        if (pending) await enqueueTask(tx, { kind: 'refresh-state', account: envelope.from });
      }
      return [];
    case 'account.contacts.sync':
      return await applyContactSync(core, tx, parsed.content);
    case 'account.group.state.request':
      await applyStateRequest(tx, parsed.content);
      return [];
    case 'account.group.state.sync':
      await applyStateSync(core, tx, parsed.content);
      return [];
    case 'account.group.history_secret.sync':
      await applyHistorySync(tx, parsed.content);
      return [];
    default:
      return [];
  }
}
