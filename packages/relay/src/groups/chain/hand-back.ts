/** Applies the part of a chain that the owner hands back to a restored host (05 §5.6). */
import {
  type ChainEvent,
  decideGroupEvent,
  type GroupEffects,
  type Network,
  nextGroupPosition,
  ProtocolError,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { RelayContext } from '../../context.ts';
import { forEach } from '../../storage/in-lists.ts';
import { restoredStep } from '../../storage/restored.ts';
import type { Writer } from '../../storage/types.ts';
import { applyLostEvent, beginEpoch } from './apply-event.ts';
import { insertEvent } from './event-store.ts';
import { readAccounts, readGroup, type StoredGroup, updateGroup } from './group-store.ts';
import type { HandedBack, HandedBackEvent } from './handed-back.ts';
import { writeBox } from './key-store.ts';
import { loadGroup } from './load-group.ts';
import { rotationEvent } from './stale-access.ts';
import { signedEventOf, targetsOf } from './write-event.ts';

/** The accounts that a lost part of the chain changed. */
interface Changed {
  readonly accounts: ReadonlySet<string>;
  readonly hasNewSecret: boolean;
}

/**
 * Puts lost events back at the sequences and epochs that they had, which no other event was given
 * since; then begins a new epoch, in which those that left take no part. The group's head is the last
 * of the events afterwards.
 *
 * @throws ProtocolError `state_conflict` if nothing was lost, or the chain went on since, or the events
 *   do not continue it; `forbidden` by the rules of the chain; `bad_request` for a missing box
 */
export async function handBack(
  context: RelayContext,
  tx: Writer,
  { group, handedBack, now }: { group: StoredGroup; handedBack: HandedBack; now: number },
): Promise<void> {
  const head = requireRestored(group);
  const { group_id: groupId } = head;
  // As it was when the part was lost.
  await updateGroup(tx, { ...head, sequence: head.lost_after, epoch: head.lost_epoch }, 0);
  const changed = await applyEvents(context.network, tx, { groupId, handedBack, now });
  const reached = (await readGroup(tx, groupId)) as StoredGroup;
  const end = head.lost_after + restoredStep;
  const lastEpoch = head.lost_epoch + restoredStep;
  if (reached.sequence >= end || reached.epoch >= lastEpoch) {
    throw conflict('the events are not of the time before the restore');
  }
  const position = nextGroupPosition(head, { advancesEpoch: true });
  const next: StoredGroup = {
    ...reached,
    ...position,
    access_ended: position.sequence,
    lost_after: null,
    lost_epoch: null,
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
 * Requires that the host was put back to an earlier state, and that the chain did not go on since.
 * @throws ProtocolError `state_conflict`
 */
export function requireRestored(group: StoredGroup) {
  const { lost_after, lost_epoch } = group;
  if (lost_after === null || lost_epoch === null) {
    throw conflict('the host was not put back to an earlier state, or the chain went on since');
  }
  return { ...group, lost_after, lost_epoch };
}

async function applyEvents(
  network: Network,
  tx: Writer,
  { groupId, handedBack, now }: { groupId: string; handedBack: HandedBack; now: number },
): Promise<Changed> {
  const accounts = new Set<string>();
  let hasNewSecret = false;
  for (const each of handedBack.events) {
    const effects = await applyOne(network, tx, { groupId, each, now });
    for (const { account } of [...effects.joined, ...effects.rekeyed]) accounts.add(account);
    for (const account of effects.left) accounts.delete(account);
    hasNewSecret ||= effects.client_secret_commitment !== undefined;
  }
  return { accounts, hasNewSecret };
}

async function applyOne(
  network: Network,
  tx: Writer,
  { groupId, each, now }: { groupId: string; each: HandedBackEvent; now: number },
): Promise<GroupEffects> {
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
