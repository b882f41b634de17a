/** Applies one verified page, in the transaction that moves the position (05 §5.5, §17.2). */
import {
  extendKeyHistory,
  type GroupAdvance,
  type GroupEffects,
  type GroupEvent,
  type GroupOutcome,
  type GroupProjection,
  type GroupSigners,
  type VerifiedGroupEvent,
} from '@posthouse/protocol';
import type { AccountCore } from '../../core.ts';
import type { GroupAccountEvent } from '../../events.ts';
import type { StoreWriter } from '../../store/index.ts';
import { keyOf } from '../../store/row-keys.ts';
import {
  factsOf,
  type GroupBlock,
  type GroupRow,
  nicknames,
  putGroup,
  putMembers,
} from '../group-rows.ts';
import { rotationCandidates } from '../keys/key-candidates.ts';
import { epochKeys, putEpochs } from '../keys/key-rows.ts';
import { keepProof } from './chain-proofs.ts';
import { dropMessage, groupEntry, putGroupEntry } from './group-entries.ts';
import { type GroupChangeRow, type GroupMessageRow, toGroupEntry } from './group-entry.ts';
import { secretsIn, storeMessage, type VerifiedMessage } from './open-message.ts';

/** Why no later event can be applied: an error of the protocol, or that the host lost this one. */
export interface GroupStop {
  readonly event: Pick<GroupEvent, 'sequence'>;
  readonly error: { readonly code: string; readonly message: string };
}

/** What a page changes, and what stops the group after it. */
type AppliedAdvance = Pick<GroupAdvance, 'group' | 'outcomes'> & {
  readonly blocked?: GroupStop | undefined;
};

/** The row after a page, and the events of the page. */
export interface AppliedGroupPage {
  readonly row: GroupRow;
  readonly events: readonly GroupAccountEvent[];
}

/**
 * Writes everything that a page changes. History before the own membership gives no events: it is
 * read once, to verify it.
 *
 * @param row as read in this transaction
 */
export async function applyGroupPage(
  core: AccountCore,
  tx: StoreWriter,
  {
    row,
    advance,
    signers,
  }: {
    readonly row: GroupRow;
    readonly advance: AppliedAdvance;
    readonly signers: GroupSigners;
  },
): Promise<AppliedGroupPage> {
  const { group, outcomes } = advance;
  const events: GroupAccountEvent[] = [];
  if (group !== undefined) {
    await writeState(core, tx, { row, group, outcomes });
    const secretOf = secretsIn(tx, row.group_id);
    for (const outcome of outcomes) {
      if (outcome.kind === 'applied' && group.owner === core.account) {
        await keepProof(tx, row.group_id, { event: outcome.verified.event, signers });
      }
      const found = await applyOutcome({ core, tx, secretOf }, row.group_id, outcome);
      const isNews = outcome.kind !== 'applied' || row.standing === 'member';
      if (isNews) events.push(...found);
    }
  }
  const { blocked: before, creation, rollback, ...rest } = row;
  const blocked = blockOf(advance);
  const landed = creation === undefined || group !== undefined;
  const next: GroupRow = {
    ...rest,
    position: sequenceOf(outcomes.at(-1)) ?? row.position,
    ...(group !== undefined && { facts: factsOf(group) }),
    ...(blocked !== undefined && { blocked }),
    ...(!landed && { creation }),
    ...(rollback && events.length === 0 && { rollback }),
  };
  await putGroup(tx, next);
  if (blocked !== undefined && blocked.sequence !== before?.sequence) {
    events.push({ kind: 'group-blocked', groupId: row.group_id, blocked });
  }
  return { row: next, events };
}

function sequenceOf(outcome: GroupOutcome | undefined): number | undefined {
  if (outcome === undefined) return undefined;
  return (outcome.kind === 'rejected' ? outcome.event : outcome.verified.event).sequence;
}

function blockOf({ blocked }: AppliedAdvance): GroupBlock | undefined {
  if (blocked === undefined) return undefined;
  const { event, error } = blocked;
  return { sequence: event.sequence, code: error.code, reason: error.message };
}

/** Writes state and key history, only the rows that the page's events changed. */
async function writeState(
  core: AccountCore,
  tx: StoreWriter,
  page: {
    readonly row: GroupRow;
    readonly group: GroupProjection;
    readonly outcomes: readonly GroupOutcome[];
  },
): Promise<void> {
  const { row, group, outcomes } = page;
  const touched = { members: new Set<string>(), bans: new Set<string>() };
  for (const outcome of outcomes) {
    if (outcome.kind !== 'applied') continue;
    const { joined, left, roles, rekeyed, banned, unbanned } = outcome.effects;
    for (const { account } of [...joined, ...roles, ...rekeyed]) touched.members.add(account);
    for (const account of left) touched.members.add(account);
    for (const account of [...banned, ...unbanned]) touched.bans.add(account);
  }
  await putMembers(tx, group, touched);
  const epoch = row.facts?.epoch;
  const last = epoch === undefined ? undefined : await epochKeys(tx, row.group_id, epoch);
  const before = last === undefined || epoch === undefined ? [] : [{ ...last, epochs: [epoch] }];
  await putEpochs(tx, row.group_id, extendKeyHistory(before, core.account, outcomes));
}

async function applyOutcome(
  opening: Parameters<typeof storeMessage>[0],
  groupId: string,
  outcome: GroupOutcome,
): Promise<GroupAccountEvent[]> {
  const { core, tx } = opening;
  if (outcome.kind === 'message') {
    const message = verifiedMessageOf(outcome.verified);
    return message === undefined ? [] : await storeMessage(opening, message);
  }
  if (outcome.kind === 'rejected') {
    const { sequence, epoch, accepted_at } = outcome.event;
    const reason = outcome.error.message;
    const before = await groupEntry(tx, groupId, sequence);
    // Read again after the host went back.
    if (before?.kind === 'rejected' && before.reason === reason) return [];
    // The sender had been removed before, as the owner showed since (05 §5.6).
    if (
      before?.kind === 'message' &&
      before.message_id === (outcome.event.payload as Partial<GroupMessageRow>).message_id
    ) {
      await dropMessage(tx, before);
    }
    const entry = { group_id: groupId, sequence, epoch, accepted_at };
    await putGroupEntry(core, tx, { kind: 'rejected', ...entry, reason });
    return [{ kind: 'group-message-rejected', groupId, sequence, reason }];
  }
  const { verified, effects } = outcome;
  const change = changeOf(groupId, verified, effects);
  await putGroupEntry(core, tx, change);
  await forgetNicknames(core, tx, { groupId, effects });
  await markRotationLanded(tx, groupId, verified);
  return eventsOf(change, effects);
}

function verifiedMessageOf({
  event,
  content,
  signer,
}: VerifiedGroupEvent): VerifiedMessage | undefined {
  if (content.kind !== 'group.message' || signer === undefined) return undefined;
  const { body } = content;
  return {
    group_id: body.group_id,
    sequence: event.sequence,
    epoch: event.epoch,
    accepted_at: event.accepted_at,
    message_id: body.message_id,
    from: signer.account,
    from_device_id: signer.deviceId,
    created_at: body.created_at,
    envelope: body,
  };
}

function changeOf(
  groupId: string,
  { event, content, signer }: VerifiedGroupEvent,
  effects: GroupEffects,
): GroupChangeRow {
  const { left, banned, unbanned, roles, properties } = effects;
  const signature = 'body' in content ? content.body.device_signature : undefined;
  return {
    kind: 'change',
    group_id: groupId,
    sequence: event.sequence,
    epoch: event.epoch,
    accepted_at: event.accepted_at,
    type: content.kind,
    ...(signer !== undefined && { by: signer.account }),
    ...(signature !== undefined && { signature }),
    ...unlessEmpty('joined', effects.joined.map(accountOf)),
    ...unlessEmpty('left', left),
    ...unlessEmpty('banned', banned),
    ...unlessEmpty('unbanned', unbanned),
    ...unlessEmpty('rekeyed', effects.rekeyed.map(accountOf)),
    ...unlessEmpty('roles', roles),
    ...(Object.keys(properties).length > 0 && { properties: { ...properties } }),
  };
}

function accountOf({ account }: { readonly account: string }): string {
  return account;
}

/** Returns an object with the list as its member; an empty object for an empty list. */
function unlessEmpty<N extends string, T>(
  name: N,
  list: readonly T[],
): { [K in N]?: readonly T[] } {
  return list.length === 0 ? {} : ({ [name]: list } as { [K in N]?: readonly T[] });
}

function eventsOf(change: GroupChangeRow, effects: GroupEffects): GroupAccountEvent[] {
  const { group_id } = change;
  const by = change.by === undefined ? {} : { by: change.by };
  const events: GroupAccountEvent[] = [
    ...(change.joined ?? []).map(
      (account) =>
        ({ kind: 'group-member', groupId: group_id, account, change: 'joined', ...by }) as const,
    ),
    ...(change.left ?? []).map(
      (account) =>
        ({ kind: 'group-member', groupId: group_id, account, change: 'left', ...by }) as const,
    ),
  ];
  // A rotation made by the relay gives no event.
  if (events.length === 0 && (change.by !== undefined || effects.closes)) {
    events.push({ kind: 'group-change', groupId: group_id, change: toGroupEntry(change) });
  }
  return events;
}

/** Deletes nicknames of members that left; all of them if the own account left (05 §14.4). */
async function forgetNicknames(
  core: AccountCore,
  tx: StoreWriter,
  { groupId, effects: { left } }: { readonly groupId: string; readonly effects: GroupEffects },
): Promise<void> {
  if (left.includes(core.account)) {
    for (const { key } of await nicknames.list(tx, { prefix: `${groupId}/` })) {
      await nicknames.delete(tx, key);
    }
    return;
  }
  for (const account of left) await nicknames.delete(tx, keyOf(groupId, account));
}

/** Marks the rotation candidate as landed if this device signed the event (05 §17.5). */
async function markRotationLanded(
  tx: StoreWriter,
  groupId: string,
  { content }: VerifiedGroupEvent,
): Promise<void> {
  if (content.kind !== 'group.secret.rotation') return;
  const candidate = await rotationCandidates.get(tx, groupId);
  if (candidate?.signatures.includes(content.body.device_signature)) {
    await rotationCandidates.put(tx, groupId, { ...candidate, landed: true });
  }
}
