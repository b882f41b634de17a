/**
 * The reducer of the management chain (05 §5.4): pure functions from a state and a verified event
 * to the next state. Relay and client apply the same ones.
 */
import { badRequest, ProtocolError } from '../../errors.ts';
import type { Network } from '../../identity/network.ts';
import type { GroupEvent, GroupEventContent } from '../events.ts';
import { deriveGroupId } from '../ids.ts';
import { managementHash } from '../management-hash.ts';
import type { GroupMessageEnvelope } from '../message.ts';
import type { GroupMember, GroupProjection, GroupView } from '../projection.ts';
import { currentMember } from './authority.ts';
import {
  checkGroupOpen,
  creationEffects,
  decideChainEvent,
  type GroupEffects,
  noGroupEffects,
} from './effects.ts';

/** The signer of an event, from the verified certificate it refers to. */
export interface GroupSigner {
  readonly account: string;
  readonly deviceId: string;
}

/** An event whose structure and signatures were verified; rights and order are still open. */
export interface VerifiedGroupEvent {
  readonly event: GroupEvent;
  readonly content: GroupEventContent;
  /** Absent for a rotation the relay made. */
  readonly signer?: GroupSigner;
}

/** What a client knows of a group before it trusts the first event: its trust anchor. */
export interface GroupAnchor {
  readonly group_id: string;
  /** Relay ID of the host, from its verified descriptor. */
  readonly relay_id: string;
  /** Account ID of the first owner, if known. */
  readonly creator?: string;
}

/**
 * Applies the creation event (05 §5.4): first owner, no bans, epoch 0. The relay calls it to accept
 * a creation, the client on the first event.
 *
 * @throws ProtocolError `bad_request` for another first event or an ID that does not derive;
 *   `forbidden` if owner, signer and expected creator differ
 * @example
 * const { group, effects } = startGroup(network, verified, { group_id, relay_id });
 */
export function startGroup(
  network: Network,
  { event, content, signer }: VerifiedGroupEvent,
  anchor: GroupAnchor,
): { readonly group: GroupProjection; readonly effects: GroupEffects } {
  if (content.kind !== 'group.create') throw badRequest('payload', 'expected the creation');
  if (event.sequence !== 0) throw badRequest('sequence', 'creation is not at 0');
  if (event.epoch !== 0) throw badRequest('epoch', 'creation is not in epoch 0');
  const { body } = content;
  const effects = creationEffects(body);
  const [owner] = effects.joined;
  const creator = owner.account;
  if (signer?.account !== creator || (anchor.creator ?? creator) !== creator) {
    throw new ProtocolError('forbidden', 'owner.account did not sign, or is not the creator');
  }
  const { nonce, group_id } = body;
  const derived = deriveGroupId(network, { creator, nonce, relay_id: anchor.relay_id });
  if (group_id !== derived || group_id !== anchor.group_id) {
    throw badRequest('group_id', 'does not follow from creator, host and nonce');
  }
  const group: GroupProjection = {
    group_id,
    status: 'active',
    owner: creator,
    ...effects.properties,
    client_secret_commitment: effects.client_secret_commitment,
    head: managementHash(network, event.payload),
    sequence: 0,
    epoch: 0,
    members: new Map([[creator, { ...owner, role: 'owner', since: 0 }]]),
    bans: new Set(),
  };
  return { group, effects };
}

/**
 * Applies one more event. The given state stays as it is, also if the event is refused.
 *
 * @throws ProtocolError `forbidden`, `state_conflict` or `bad_request` by the rule that is broken;
 *   `invalid_state` for a type this implementation does not know, which pauses the projection
 * @example
 * const next = reduceGroup(network, group, verified);
 */
export function reduceGroup(
  network: Network,
  group: GroupProjection,
  verified: VerifiedGroupEvent,
): GroupProjection {
  const effects = decideGroupEvent(group, verified);
  const draft = draftGroup(group);
  applyGroupEvent(network, draft, { verified, effects });
  return draft;
}

/**
 * Decides on an event of any category, its outer members included.
 *
 * @throws ProtocolError as {@link reduceGroup}
 * @example
 * const effects = decideGroupEvent(group, verified);
 */
export function decideGroupEvent(group: GroupView, verified: VerifiedGroupEvent): GroupEffects {
  const { event } = verified;
  const effects = decideContent(group, verified);
  if (event.sequence <= group.sequence) throw badRequest('sequence', 'not after the event before');
  const right = effects.advancesEpoch ? event.epoch > group.epoch : event.epoch === group.epoch;
  if (!right) {
    throw badRequest('epoch', effects.advancesEpoch ? 'did not advance' : 'is not the current one');
  }
  return effects;
}

/**
 * Decides on a message: its sender is a current member, the group is open, the epoch is the current
 * one (05 §5.4, §13.28). The relay calls it before it accepts one.
 *
 * @throws ProtocolError `forbidden`, `state_conflict`, `bad_request`
 * @example
 * checkGroupSender(group, groupMessage, account);
 */
export function checkGroupSender(
  group: GroupView,
  envelope: GroupMessageEnvelope,
  account: string,
): void {
  if (envelope.group_id !== group.group_id) throw badRequest('group_id', 'is of another group');
  currentMember(group, account);
  checkGroupOpen(group);
  if (envelope.epoch !== group.epoch) {
    throw new ProtocolError('state_conflict', 'epoch is not the current one');
  }
}

function decideContent(group: GroupView, verified: VerifiedGroupEvent): GroupEffects {
  const { event, content, signer } = verified;
  switch (content.kind) {
    case 'unknown':
      throw new ProtocolError('invalid_state', 'unknown management event pauses the group');
    case 'group.key.rotated':
      if (signer !== undefined) throw badRequest('signer_device_id', 'not allowed here');
      checkGroupOpen(group);
      return { ...noGroupEffects, advancesEpoch: true };
  }
  if (signer === undefined || signer.deviceId !== event.signer_device_id) {
    throw badRequest('signer_device_id', 'is not the device that signed');
  }
  switch (content.kind) {
    case 'group.create':
      throw new ProtocolError('state_conflict', 'the group exists already');
    case 'group.message':
      checkGroupSender(group, content.body, signer.account);
      return noGroupEffects;
    default:
      return decideChainEvent(group, content, signer.account);
  }
}

/** A projection in the making. */
export type GroupDraft = {
  -readonly [Name in keyof Omit<GroupProjection, 'members' | 'bans'>]: GroupProjection[Name];
} & { readonly members: Map<string, GroupMember>; readonly bans: Set<string> };

/** Returns a copy to apply events to. */
export function draftGroup(group: GroupProjection): GroupDraft {
  return { ...group, members: new Map(group.members), bans: new Set(group.bans) };
}

/** Applies a decided event; after a decision nothing can fail any more. */
export function applyGroupEvent(
  network: Network,
  draft: GroupDraft,
  decided: { readonly verified: VerifiedGroupEvent; readonly effects: GroupEffects },
): void {
  const { event, content } = decided.verified;
  const { effects } = decided;
  draft.sequence = event.sequence;
  draft.epoch = event.epoch;
  if (content.kind === 'group.message' || content.kind === 'group.key.rotated') return;
  draft.head = managementHash(network, event.payload);
  Object.assign(draft, effects.properties);
  if (effects.closes) draft.status = 'closed';
  if (effects.owner !== undefined) draft.owner = effects.owner;
  draft.client_secret_commitment =
    effects.client_secret_commitment ?? draft.client_secret_commitment;
  applyMembers(draft, effects, event.sequence);
}

function applyMembers(draft: GroupDraft, effects: GroupEffects, sequence: number): void {
  const change = (account: string, part: Partial<GroupMember>) => {
    const member = draft.members.get(account);
    if (member !== undefined) draft.members.set(account, { ...member, ...part });
  };
  for (const account of effects.left) draft.members.delete(account);
  for (const member of effects.joined) {
    draft.members.set(member.account, { ...member, role: 'member', since: sequence });
  }
  for (const { account, role } of effects.roles) change(account, { role });
  for (const { account, member_encryption_public_key } of effects.rekeyed) {
    change(account, { member_encryption_public_key });
  }
  for (const account of effects.banned) draft.bans.add(account);
  for (const account of effects.unbanned) draft.bans.delete(account);
}
