/**
 * Candidates for key material: an own recovery request, and a rotation under preparation. Each is
 * stored before its request leaves, apart from keys in use (05 §13.21, §13.26, §17.4). Their
 * private keys are stored as member keys at once and never removed: a request that was given up may
 * still take effect, and no other copy of the key exists.
 */
import type { GroupMemberRecoveryRequest } from '@posthouse/protocol';
import { Collection } from '../../store/collection.ts';

/** A key recovery request of the own account, by group. */
export interface RecoveryCandidate {
  readonly request: GroupMemberRecoveryRequest;
  /** Unix seconds at which it expires; absent before the host answered. */
  readonly expires_at?: number;
}
export const recoveryCandidates = new Collection<RecoveryCandidate>('group-recoveries');

/** A rotation of the client secret under preparation, by group (05 §13.26). */
export interface RotationCandidate {
  readonly base_commitment: string;
  readonly client_secret_commitment: string;
  /** The new client secret, base64url. */
  readonly secret: string;
  /** The owner's next member public key, if the rotation replaces it. */
  readonly ownerKey?: string;
  /** Member keys whose boxes the host accepted, by account. */
  readonly uploaded: Readonly<Record<string, string>>;
  readonly expires_at?: number;
  /** Signatures of the commits that were sent; one of them may have taken effect. */
  readonly signatures: readonly string[];
  /** Whether the verified chain contains one of these commits. */
  readonly landed: boolean;
}
export const rotationCandidates = new Collection<RotationCandidate>('group-rotations');
