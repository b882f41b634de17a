/** Opens verified envelopes: decrypts messages and applies their content (05 §14). */
import {
  applyNickname,
  type GroupContent,
  type GroupMember,
  type GroupMessageEnvelope,
  openGroupMessage,
  ProtocolError,
  readGroupContent,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import { recordEvents } from '../../events/event-log.ts';
import type { GroupAccountEvent } from '../../events.ts';
import type { StoreWriter } from '../../store/index.ts';
import { keyOf } from '../../store/row-keys.ts';
import { pendingOf } from '../../sync/outbox.ts';
import { forgetEnded } from '../../sync/written-messages.ts';
import { memberOf, nicknames } from '../group-rows.ts';
import { type EpochSecret, epochSecret, secretBytes } from '../keys/key-rows.ts';
import { endMessage, groupOutbox, messageIdOf } from '../outbox.ts';
import {
  addUndecrypted,
  claimMessageId,
  nextUndecryptedEpoch,
  putGroupEntry,
  removeUndecrypted,
  undecryptedOf,
} from './group-entries.ts';
import { type GroupMessageRow, toGroupEntry } from './group-entry.ts';

/** A verified envelope with its position in the timeline. */
export type VerifiedMessage = Omit<GroupMessageRow, 'kind' | 'outcome'> & {
  readonly envelope: GroupMessageEnvelope;
};

interface OpenContext {
  readonly core: AccountCore;
  readonly tx: StoreWriter;
  readonly secretOf: (epoch: number) => Promise<EpochSecret | undefined>;
}

/** Returns a reader of epoch secrets that reads each one once in a transaction. */
export function secretsIn(tx: StoreWriter, groupId: string): OpenContext['secretOf'] {
  const found = new Map<number, EpochSecret | undefined>();
  return async (epoch) => {
    if (!found.has(epoch)) found.set(epoch, await epochSecret(tx, groupId, epoch));
    return found.get(epoch);
  };
}

/** Stores a new message: decrypted, or sealed until its epoch's secret is known (05 §14.2). */
export async function storeMessage(
  opening: OpenContext,
  message: VerifiedMessage,
): Promise<GroupAccountEvent[]> {
  const { core, tx } = opening;
  const row: GroupMessageRow = { ...message, kind: 'message', outcome: 'pending' };
  const claim = await claimMessageId(tx, row);
  // Read again after the host went back.
  if (claim === 'known') return [];
  if (claim === 'taken') {
    const reason = 'a second event of the same message';
    const { group_id, sequence, epoch, accepted_at } = row;
    await putGroupEntry(core, tx, {
      kind: 'rejected',
      group_id,
      sequence,
      epoch,
      accepted_at,
      reason,
    });
    return [{ kind: 'group-message-rejected', groupId: group_id, sequence, reason }];
  }
  if (row.from === core.account && row.from_device_id === core.device.deviceId) {
    for (const each of await pendingOf(tx, groupOutbox, row.group_id)) {
      if (messageIdOf(each.value) !== row.message_id) continue;
      const { group_id, sequence } = row;
      await endMessage(tx, group_id, { pending: each, status: 'target_accepted', sequence });
    }
    await forgetEnded(tx, row.group_id, row.message_id);
  }
  const events = await openMessage(opening, message);
  if (events !== undefined) return events;
  await addUndecrypted(tx, row);
  await putGroupEntry(core, tx, row);
  return [];
}

/** Messages decrypted in one transaction. */
const batchSize = 100;

/** Decrypts stored messages whose epoch's secret is known now. */
export async function* openUndecrypted(
  core: AccountCore,
  groupId: string,
): AsyncGenerator<readonly GroupAccountEvent[]> {
  let epoch = -1;
  let after = -1;
  for (;;) {
    const at: { epoch: number; after: number } = { epoch, after };
    const step = await core.store.write(async (tx) => {
      const secretOf = secretsIn(tx, groupId);
      if (at.after < 0) {
        const next = await nextUndecryptedEpoch(tx, groupId, at.epoch);
        if (next === undefined) return undefined;
        at.epoch = next;
      }
      if ((await secretOf(at.epoch)) === undefined)
        return { events: [], next: { ...at, after: -1 } };
      const rows = await undecryptedOf(tx, groupId, { ...at, limit: batchSize });
      const events: GroupAccountEvent[] = [];
      for (const { kind: _kind, outcome: _outcome, envelope, ...row } of rows) {
        if (envelope === undefined) continue;
        const opened = await openMessage({ core, tx, secretOf }, { ...row, envelope });
        if (opened === undefined) continue;
        await removeUndecrypted(tx, { ...row, kind: 'message', outcome: 'pending' });
        events.push(...opened);
      }
      await recordEvents(tx, events);
      const last = rows.length < batchSize ? -1 : (rows.at(-1)?.sequence ?? -1);
      return { events, next: { epoch: at.epoch, after: last } };
    });
    if (step === undefined) return;
    if (step.events.length > 0) yield step.events;
    ({ epoch, after } = step.next);
  }
}

/** @returns the events; `undefined` if the epoch's secret is missing */
async function openMessage(
  { core, tx, secretOf }: OpenContext,
  message: VerifiedMessage,
): Promise<GroupAccountEvent[] | undefined> {
  const { envelope, ...rest } = message;
  const secret = await secretOf(message.epoch);
  if (secret === undefined) return undefined;
  const plaintext = openGroupMessage(core.network, envelope, {
    applicationSecret: secretBytes(secret.secret),
    sender: { account: message.from, deviceId: message.from_device_id },
  });
  // A staged secret was not verified here: the secret may be wrong instead of the message.
  if (plaintext === undefined && !secret.isVerified) return undefined;
  const row = { ...rest, kind: 'message' } as const;
  const content =
    plaintext === undefined ? 'does not decrypt' : contentOf(core, plaintext, message);
  if (typeof content === 'string') {
    await putGroupEntry(core, tx, { ...row, outcome: 'rejected', reason: content });
    const { group_id, sequence } = message;
    return [{ kind: 'group-message-rejected', groupId: group_id, sequence, reason: content }];
  }
  const outcome = content.kind === 'unknown' ? 'stored' : 'applied';
  const shown: GroupMessageRow = { ...row, outcome, content: content.content };
  await putGroupEntry(core, tx, shown);
  if (content.kind === 'nickname') {
    const { nickname } = content.content;
    return await storeNickname(core, tx, { ...shown, nickname });
  }
  return [{ kind: 'group-message', groupId: row.group_id, message: toGroupEntry(shown) }];
}

/** Returns the checked content, or the reason for rejecting it. */
function contentOf(
  { network }: AccountCore,
  plaintext: Uint8Array,
  { sequence }: VerifiedMessage,
): GroupContent | string {
  try {
    return readGroupContent(network, plaintext, sequence);
  } catch (error) {
    if (error instanceof ProtocolError) return error.message;
    throw error;
  }
}

/** Stores a member's nickname; the newest update counts, in whatever order they open (05 §14.4). */
async function storeNickname(
  core: AccountCore,
  tx: StoreWriter,
  update: { from: string; nickname: string | null; sequence: number; group_id: string },
): Promise<GroupAccountEvent[]> {
  const { from: account, nickname, sequence, group_id } = update;
  const key = keyOf(group_id, account);
  const known = await nicknames.get(tx, key);
  const members = new Map<string, GroupMember>();
  for (const each of [account, core.account]) {
    const member = await memberOf(tx, group_id, each);
    if (member !== undefined) members.set(each, member);
  }
  const { result } = applyNickname(
    new Map(known === undefined ? [] : [[account, known]]),
    { group: { members }, reader: core.account },
    { account, nickname, sequence },
  );
  if (result !== 'applied') return [];
  await nicknames.put(tx, key, { nickname, sequence });
  return [{ kind: 'group-nickname', groupId: group_id, account, nickname }];
}
