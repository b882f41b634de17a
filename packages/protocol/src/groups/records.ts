/**
 * Signed records outside the timeline: invitations, applications, key recovery requests (05 §4.6
 * to §4.8). A list or an earlier answer never replaces the checks at approval.
 */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import { checkAccountId } from '../identity/account-id.ts';
import { deviceSignatures } from '../identity/device-signed.ts';
import { checkDeviceCertificate, deviceCertificateSignatures } from '../identity/index.ts';
import type { Network } from '../identity/network.ts';
import type { JsonObject } from '../json/types.ts';
import {
  AccountId,
  checkNoNull,
  checkObject,
  memberPath,
  Signature,
  type Static,
  Type,
  TypeName,
  UnixSeconds,
  X25519PublicKey,
} from '../schema.ts';
import { GroupId, GroupInviteId } from './ids.ts';

/** An invitation: targeted with `invitee`, public without (05 §4.6). Times are Unix seconds. */
export const GroupInvite = Type.Object({
  $type: TypeName,
  invite_id: GroupInviteId,
  group_id: GroupId,
  inviter: AccountId,
  invitee: Type.Optional(AccountId),
  /** Public only; absent means unlimited until expiry or revocation. */
  max_uses: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  created_at: UnixSeconds,
  expires_at: UnixSeconds,
  device_signature: Signature,
});
export type GroupInvite = Static<typeof GroupInvite>;

/** A request for admission under an invitation (05 §4.7). */
export const GroupApplication = Type.Object({
  $type: TypeName,
  account: AccountId,
  group_id: GroupId,
  invite_id: GroupInviteId,
  member_encryption_public_key: X25519PublicKey,
  device_signature: Signature,
});
export type GroupApplication = Static<typeof GroupApplication>;

/** A member's request to be given a new member key (05 §4.8). */
export const GroupMemberRecoveryRequest = Type.Object({
  $type: TypeName,
  account: AccountId,
  group_id: GroupId,
  member_encryption_public_key: X25519PublicKey,
  device_signature: Signature,
});
export type GroupMemberRecoveryRequest = Static<typeof GroupMemberRecoveryRequest>;

/**
 * Checks an invitation but its signature; whether it is in time is `checkGroupInviteTimes`.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupInvite(network, value);
 * console.log(value.invite_id);
 */
export function checkGroupInvite(
  network: Network,
  value: unknown,
  path = '',
): asserts value is GroupInvite {
  checkObject(network, { type: 'group.invite', schema: GroupInvite }, value, path);
  checkNoNull(value, path);
  checkAccountId(network, value.inviter, memberPath(path, 'inviter'));
  if (value.invitee !== undefined) {
    checkAccountId(network, value.invitee, memberPath(path, 'invitee'));
    if (value.max_uses !== undefined) {
      throw badRequest(memberPath(path, 'max_uses'), 'not allowed with an invitee');
    }
  }
  if (value.expires_at <= value.created_at) {
    throw badRequest(memberPath(path, 'expires_at'), 'not later than created_at');
  }
}

/**
 * Checks the times of a new invitation (05 §4.6, §13.9).
 *
 * @param rule all in seconds; `maxTtl` is the relay's `max_group_invite_ttl`
 * @throws ProtocolError `bad_request` for a period too long or already over; `clock_skew`
 * @example
 * checkGroupInviteTimes(groupInvite, { now, tolerance: 300, maxTtl: 2_592_000 });
 */
export function checkGroupInviteTimes(
  invite: Pick<GroupInvite, 'created_at' | 'expires_at'>,
  rule: { readonly now: number; readonly tolerance: number; readonly maxTtl: number },
): void {
  const { created_at, expires_at } = invite;
  if (expires_at - created_at > rule.maxTtl) throw badRequest('expires_at', 'too late');
  if (expires_at <= rule.now) throw badRequest('expires_at', 'already past');
  if (Math.abs(created_at - rule.now) > rule.tolerance) {
    throw new ProtocolError('clock_skew', 'created_at: outside the clock tolerance');
  }
}

/**
 * Checks an application but its signature.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupApplication(network, value);
 * console.log(value.account);
 */
export function checkGroupApplication(
  network: Network,
  value: unknown,
  path = '',
): asserts value is GroupApplication {
  checkObject(network, { type: 'group.application', schema: GroupApplication }, value, path);
  checkNoNull(value, path);
  checkAccountId(network, value.account, memberPath(path, 'account'));
}

/**
 * Checks a recovery request but its signature. That the key is a new one needs the member's state.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupMemberRecoveryRequest(network, value);
 * console.log(value.account);
 */
export function checkGroupMemberRecoveryRequest(
  network: Network,
  value: unknown,
  path = '',
): asserts value is GroupMemberRecoveryRequest {
  const definition = { type: 'group.member.recovery', schema: GroupMemberRecoveryRequest };
  checkObject(network, definition, value, path);
  checkNoNull(value, path);
  checkAccountId(network, value.account, memberPath(path, 'account'));
}

/**
 * Returns the signatures of a record that another account stored: both of the certificate, then the
 * record's own. Verify them before anything is sealed to a key of the record (05 §3.6).
 *
 * @param signed the checked record, its account, and the certificate stored with it
 * @throws ProtocolError `bad_request` for a malformed certificate or one of another account
 * @example
 * const signed = { record: application, account: application.account, certificate };
 * verifySignatures(primitives, groupRecordSignatures(network, signed), 'application');
 */
export function groupRecordSignatures(
  network: Network,
  signed: {
    readonly record: JsonObject & { readonly device_signature: string };
    readonly account: string;
    readonly certificate: unknown;
  },
): SignatureCheck[] {
  const { record, account, certificate } = signed;
  checkDeviceCertificate(network, certificate, 'signer_certificate');
  if (certificate.account !== account) {
    throw badRequest('signer_certificate', 'is of another account');
  }
  const own = deviceSignatures(network, record, certificate);
  return [...deviceCertificateSignatures(network, certificate), ...own];
}

/**
 * Checks an invitation with its signature and the certificate it was stored with. Whether that
 * certificate is still valid is not judged: it was when the invitation was accepted.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * verifyGroupInvite(network, value, certificate);
 */
export function verifyGroupInvite(
  network: Network,
  value: unknown,
  certificate: unknown,
): asserts value is GroupInvite {
  checkGroupInvite(network, value, 'invite');
  const signed = { record: value, account: value.inviter, certificate };
  verifySignatures(network.primitives, groupRecordSignatures(network, signed), 'invite');
}

/**
 * Checks an application with its signature and certificate, as {@link verifyGroupInvite}; the duty
 * of every approver before sealing (05 §13.15).
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * verifyGroupApplication(network, value, certificate);
 * checkApplicationInvite(value, groupInvite);
 */
export function verifyGroupApplication(
  network: Network,
  value: unknown,
  certificate: unknown,
): asserts value is GroupApplication {
  checkGroupApplication(network, value, 'application');
  const signed = { record: value, account: value.account, certificate };
  verifySignatures(network.primitives, groupRecordSignatures(network, signed), 'application');
}

/**
 * Checks a recovery request with its signature and certificate, as {@link verifyGroupInvite} (05
 * §13.22).
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * verifyGroupMemberRecoveryRequest(network, value, certificate);
 * console.log(value.account);
 */
export function verifyGroupMemberRecoveryRequest(
  network: Network,
  value: unknown,
  certificate: unknown,
): asserts value is GroupMemberRecoveryRequest {
  checkGroupMemberRecoveryRequest(network, value, 'request');
  const signed = { record: value, account: value.account, certificate };
  verifySignatures(network.primitives, groupRecordSignatures(network, signed), 'request');
}

/** The members of an invitation that limit its use. */
export type GroupInviteTerms = Readonly<Pick<GroupInvite, 'invitee' | 'max_uses' | 'expires_at'>>;

/** An invitation with what the relay knows of its use (05 §8.1). */
export interface StoredInvite {
  readonly invite: GroupInviteTerms;
  /** Successful uses so far: approvals, not applications. */
  readonly uses: number;
  readonly revoked: boolean;
}

/** The state of an invitation (05 §18). Only a valid one is listed, shown or used. */
export type GroupInviteState = 'valid' | 'revoked' | 'expired' | 'exhausted';

/**
 * Returns the state of an invitation at an instant. A targeted one is exhausted by one use.
 *
 * @param now Unix seconds; from `expires_at` on the invitation is expired
 * @example
 * if (groupInviteState(storedInvite, now) !== 'valid') throw new ProtocolError('not_found', 'invite');
 */
export function groupInviteState(stored: StoredInvite, now: number): GroupInviteState {
  if (stored.revoked) return 'revoked';
  if (now >= stored.invite.expires_at) return 'expired';
  return remainingInviteUses(stored) === 0 ? 'exhausted' : 'valid';
}

/**
 * Counts the uses an invitation has left; `Infinity` for a public one without `max_uses`.
 *
 * @example
 * const left = remainingInviteUses(storedInvite);
 */
export function remainingInviteUses({ invite, uses }: Omit<StoredInvite, 'revoked'>): number {
  const total = invite.invitee === undefined ? (invite.max_uses ?? Infinity) : 1;
  return Math.max(0, total - uses);
}

/**
 * Returns whether an account may apply with a valid invitation (05 §4.7).
 *
 * @example
 * if (!inviteAppliesTo(groupInvite, account)) throw new ProtocolError('forbidden', 'invite');
 */
export function inviteAppliesTo(
  invite: Pick<GroupInviteTerms, 'invitee'>,
  account: string,
): boolean {
  return invite.invitee === undefined || invite.invitee === account;
}

/**
 * Checks that an application belongs to the invitation it names; an approver does so with the
 * original invitation before sealing (05 §13.15).
 *
 * @throws ProtocolError `state_conflict`
 * @example
 * checkApplicationInvite(application, groupInvite);
 */
export function checkApplicationInvite(application: GroupApplication, invite: GroupInvite): void {
  const fits =
    application.group_id === invite.group_id &&
    application.invite_id === invite.invite_id &&
    inviteAppliesTo(invite, application.account);
  if (!fits)
    throw new ProtocolError('state_conflict', 'the invitation is not for this application');
}
