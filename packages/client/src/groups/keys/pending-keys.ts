/**
 * What this device made and nobody confirmed yet: a recovery request, a rotation, messages on their
 * way. Kept before anything of it leaves, apart from what is in use (05 §13.21, §13.26, §17.4).
 * The private keys of both stand among the member keys from the beginning and stay there: a request
 * or a commit that was given up may have taken effect all the same, and then nobody else has them.
 */
import type {
  GroupMemberRecoveryRequest,
  GroupMessageEnvelope,
  JsonObject,
} from '@posthouse/protocol';
import { Collection, type StoreReader, type StoreWriter } from '../../store/index.ts';
import { keyOf } from '../../store/row-keys.ts';

/** A key recovery request of the own account, by group. */
export interface RecoveryCandidate {
  readonly request: GroupMemberRecoveryRequest;
  /** Unix seconds from which on nobody can approve it; absent before the host answered. */
  readonly expires_at?: number;
}
export const recoveryCandidates = new Collection<RecoveryCandidate>('group-recoveries');

/** A rotation of the client secret that is being prepared, by group (05 §13.26). */
export interface RotationCandidate {
  readonly base_commitment: string;
  readonly client_secret_commitment: string;
  /** The new client secret, base64url. */
  readonly secret: string;
  /** The owner's next member public key, where it is replaced. */
  readonly ownerKey?: string;
  /** Member keys whose boxes the host confirmed, by account. */
  readonly uploaded: Readonly<Record<string, string>>;
  readonly expires_at?: number;
  /** Signatures of the commits that left; one of them may have been carried out. */
  readonly signatures: readonly string[];
  /** Whether the verified chain has one of them. */
  readonly landed: boolean;
}
export const rotationCandidates = new Collection<RotationCandidate>('group-rotations');

/** A group message whose fate is not known yet, by its group and place (05 §13.28). */
export interface GroupOutboxRow {
  /** Sent unchanged, as often as it takes; after a conflict another one takes its place. */
  readonly envelope: GroupMessageEnvelope;
  /** To be sealed anew for a later epoch. */
  readonly content: JsonObject;
}
export const groupOutbox = new Collection<GroupOutboxRow>('group-outbox');

/** A row of the outbox with its key. */
export interface WaitingMessage {
  readonly key: string;
  readonly value: GroupOutboxRow;
}

/** What waits to be sent to a group, in the order in which it was written. */
export async function waitingIn(tx: StoreReader, groupId: string): Promise<WaitingMessage[]> {
  return await groupOutbox.list(tx, { prefix: `${groupId}/` });
}

/** Puts a message behind all that wait. @returns its key */
export async function addWaiting(tx: StoreWriter, row: GroupOutboxRow): Promise<string> {
  const prefix = `${row.envelope.group_id}/`;
  const [last] = await groupOutbox.list(tx, { prefix, limit: 1, reverse: true });
  const place = last === undefined ? 0 : Number(last.key.slice(prefix.length)) + 1;
  const key = keyOf(row.envelope.group_id, place);
  await groupOutbox.put(tx, key, row);
  return key;
}

/** Whether a row is still what it was: another program may have sent it, or sealed it anew. */
export async function isStillWaiting(
  tx: StoreReader,
  { key, value }: WaitingMessage,
): Promise<boolean> {
  const latest = await groupOutbox.get(tx, key);
  return latest?.envelope.message_id === value.envelope.message_id;
}

/** Lets go of a message that needs no more sending. @returns whether it was still waiting */
export async function removeWaiting(tx: StoreWriter, waiting: WaitingMessage): Promise<boolean> {
  const isThere = await isStillWaiting(tx, waiting);
  if (isThere) await groupOutbox.delete(tx, waiting.key);
  return isThere;
}
