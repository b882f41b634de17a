/** Applies the part of a chain that the owner hands back to a restored host (05 §5.6). */
import {
  type ChainEvent,
  checkBanCap,
  checkCapacityCap,
  decideGroupEvent,
  type GroupEffects,
  nextGroupPosition,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../../context.ts';
import { forEach } from '../../storage/in-lists.ts';
import type { Writer } from '../../storage/types.ts';
import { applyLostEvent, beginEpoch } from './apply-event.ts';
import { insertEvent } from './event-store.ts';
import { readAccounts, readGroup, type StoredGroup, updateGroup } from './group-store.ts';
import type { HandedBack, HandedBackEvent } from './handed-back.ts';
import { writeBox } from './key-store.ts';
import { loadGroup } from './load-group.ts';
import { deleteLosses, type Loss, readLosses } from './loss-store.ts';
import { rotationEvent } from './stale-access.ts';
import { signedEventOf, targetsOf } from './write-event.ts';

/** The accounts that a lost part of the chain changed. */
interface Changed {
  readonly accounts: ReadonlySet<string>;
  readonly hasNewSecret: boolean;
}

/** What is handed back of a group, and when. */
interface Hand {
  /** The group before its lost events are back. */
  readonly group: StoredGroup;
  readonly handedBack: HandedBack;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Puts lost events back at the sequences and epochs that they had, which no other event was given
 * since; then begins a new epoch, in which those that left take no part. The group's head is the last
 * of the events afterwards.
 *
 * @throws ProtocolError `state_conflict` if nothing was lost, or the chain went on since, or the events
 *   do not continue it; `forbidden` by the rules of the chain; `bad_request` for a missing box, or a
 *   member capacity above the limit
 */
export async function handBack(context: RelayContext, tx: Writer, hand: Hand): Promise<void> {
  const { group: head, handedBack, now } = hand;
  requireRestored(head, now);
  const { group_id: groupId } = head;
  const changed = await applyEvents(context, tx, hand);
  await deleteLosses(tx, groupId);
  const reached = (await readGroup(tx, groupId)) as StoredGroup;
  const position = nextGroupPosition(head, { advancesEpoch: true });
  const next: StoredGroup = {
    ...reached,
    ...position,
    access_ended: position.sequence,
    losses_end_at: null,
    held_until: null,
    ...(changed.hasNewSecret && {
      box_set: reached.last_box_set + 1,
      last_box_set: reached.last_box_set + 1,
    }),
  };
  const event = rotationEvent(context.network, next, now);
  await insertEvent(tx, groupId, { event, signer: undefined });
  await beginEpoch(tx, next, now, context);
  await storeBoxes(tx, next, { changed, boxes: handedBack.boxes });
  await updateGroup(tx, next, Buffer.byteLength(event.payload));
}

/**
 * Requires that the host was put back to an earlier state, not too long ago, and that the chain did not
 * go on since.
 * @throws ProtocolError `state_conflict`
 */
export function requireRestored({ losses_end_at: endsAt }: StoredGroup, now: number): void {
  if (endsAt !== null && now < endsAt) return;
  throw conflict('the host was not put back to an earlier state, or the chain went on since');
}

async function applyEvents(context: RelayContext, tx: Writer, hand: Hand): Promise<Changed> {
  const { group, handedBack, now } = hand;
  const { group_id: groupId } = group;
  const losses = await readLosses(tx, groupId, { now });
  const accounts = new Set<string>();
  let hasNewSecret = false;
  let within: Loss | undefined;
  for (const each of handedBack.events) {
    const loss = lossOf(losses, each);
    if (loss !== within) {
      within = loss;
      // As the group was when this part was lost.
      const latest = (await readGroup(tx, groupId)) as StoredGroup;
      await updateGroup(tx, { ...latest, sequence: loss.after, epoch: loss.afterEpoch }, 0);
    }
    const effects = await applyOne(context, tx, { hand, each });
    for (const { account } of [...effects.joined, ...effects.rekeyed]) accounts.add(account);
    for (const account of effects.left) accounts.delete(account);
    hasNewSecret ||= effects.client_secret_commitment !== undefined;
  }
  return { accounts, hasNewSecret };
}

/**
 * Returns the loss that an event is of. Nothing else was given its sequence or epoch.
 * @throws ProtocolError `state_conflict`
 */
function lossOf(losses: readonly Loss[], { verified: { event } }: HandedBackEvent): Loss {
  const { sequence, epoch } = event;
  const loss = losses.find(({ after, end }) => after < sequence && sequence < end);
  if (loss !== undefined && loss.afterEpoch <= epoch && epoch < loss.endEpoch) return loss;
  throw conflict('an event is not of a time that the host lost');
}

async function applyOne(
  { limits, network }: RelayContext,
  tx: Writer,
  { hand, each }: { readonly hand: Hand; readonly each: HandedBackEvent },
): Promise<GroupEffects> {
  const { now } = hand;
  const { group_id: groupId, member_capacity: current } = hand.group;
  const { verified, signer } = each;
  const { event, content } = verified;
  const isSigned = content.kind !== 'group.key.rotated';
  const accounts = isSigned ? targetsOf(content as ChainEvent) : [];
  const by = verified.signer === undefined ? [] : [verified.signer.account];
  const group = await loadGroup(tx, groupId, [...by, ...accounts]);
  const effects = decideGroupEvent(group.view, verified);
  if (event.accepted_at > now) throw conflict('an event is of the future');
  const { sequence, epoch, accepted_at: acceptedAt } = event;
  if (!isSigned) {
    const payload = canonicalJson(event.payload);
    await insertEvent(tx, groupId, {
      event: { sequence, epoch, acceptedAt, payload },
      signer: undefined,
    });
    await updateGroup(tx, { ...group.stored, sequence, epoch }, Buffer.byteLength(payload));
    return effects;
  }
  // An owner may sign now what no host accepted: the host's limits hold for it.
  checkCapacityCap(effects.properties.member_capacity ?? 0, { current, cap: limits.groupMembers });
  const { ban_count: present } = group.stored;
  checkBanCap({ present, added: effects.banned.length, cap: limits.groupBans });
  const signed = signedEventOf(network, content as ChainEvent);
  await applyLostEvent(tx, {
    ...{ event: signed, group, effects, signer, now },
    at: { sequence, epoch, acceptedAt },
  });
  return effects;
}

/**
 * Stores the boxes of those that joined or have a new key, and after a rotation those of all members.
 * @throws ProtocolError `bad_request` if one is missing or of no member
 */
async function storeBoxes(
  tx: Writer,
  group: StoredGroup,
  {
    changed: { accounts, hasNewSecret },
    boxes,
  }: { readonly changed: Changed; readonly boxes: ReadonlyMap<string, string> },
): Promise<void> {
  const { group_id: groupId, box_set: boxSet, member_count: count } = group;
  const { members } = await readAccounts(tx, groupId, [...boxes.keys()]);
  const isComplete = hasNewSecret
    ? boxes.size === count
    : [...accounts].every((account) => boxes.has(account));
  if (!isComplete || members.size !== boxes.size) {
    throw new ProtocolError(
      'bad_request',
      'restore: a client secret box is missing, or of no member',
    );
  }
  const fromEpoch = hasNewSecret ? 0 : group.epoch;
  await forEach([...boxes], ([account, box]) =>
    writeBox(tx, groupId, { boxSet, account, fromEpoch, box }),
  );
}

function conflict(why: string): ProtocolError {
  return new ProtocolError('state_conflict', `restore: ${why}`);
}
