/**
 * What this device made and nobody confirmed yet: a recovery request, a rotation, messages on their
 * way. Kept before anything of it leaves, apart from what is in use (05 §13.21, §13.26, §17.4).
 * The private keys of both stand among the member keys from the beginning and stay there: a request
 * or a commit that was given up may have taken effect all the same, and then nobody else has them.
 */
import type { GroupMemberRecoveryRequest } from '@posthouse/protocol';
import { Collection } from '../../store/collection.ts';

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
