/** Responses of the group methods and what a client verifies of them (05 §13). */
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest } from '../errors.ts';
import { deviceSignatures } from '../identity/device-signed.ts';
import {
  checkDeviceCertificate,
  DeviceCertificate,
  deriveDeviceId,
  deviceCertificateSignatures,
  type Network,
} from '../identity/index.ts';
import {
  Counter,
  checkNoNull,
  checkPart,
  checkSchema,
  DeviceId,
  type Static,
  Type,
  UnixSeconds,
} from '../schema.ts';
import { GroupKeyPage } from './key-sync.ts';
import {
  checkGroupInvite,
  GroupApplication,
  GroupInvite,
  GroupMemberRecoveryRequest,
  verifyGroupApplication,
  verifyGroupInvite,
  verifyGroupMemberRecoveryRequest,
} from './records.ts';
import { GroupCursor, type GroupMethodName } from './requests.ts';
import { checkGroupState, GroupState } from './state.ts';
import { GroupSyncPage } from './sync.ts';

/** Response of `group.invite.resolve`. */
export const GroupInviteResolution = Type.Object({
  invite: GroupInvite,
  signer_certificate: DeviceCertificate,
  /** Successful uses so far. */
  uses: Counter,
});
export type GroupInviteResolution = Static<typeof GroupInviteResolution>;

/** Response of `group.invite.list`. */
export const GroupInviteList = Type.Object({
  invites: Type.Array(
    Type.Object({ invite: GroupInvite, signer_device_id: DeviceId, uses: Counter }),
  ),
  /** One for each device; their order means nothing. */
  certificates: Type.Array(DeviceCertificate),
  next: Type.Optional(GroupCursor),
});
export type GroupInviteList = Static<typeof GroupInviteList>;

/** Response of `group.application.list`; certificate and time are those of acceptance. */
export const GroupApplicationList = Type.Object({
  applications: Type.Array(
    Type.Object({
      application: GroupApplication,
      signer_certificate: DeviceCertificate,
      accepted_at: UnixSeconds,
    }),
  ),
  next: Type.Optional(GroupCursor),
});
export type GroupApplicationList = Static<typeof GroupApplicationList>;

/** Response of `group.member.recovery.submit`. */
export const GroupRecoveryAcceptance = Type.Object({
  accepted_at: UnixSeconds,
  /** Later than `accepted_at`. */
  expires_at: UnixSeconds,
});
export type GroupRecoveryAcceptance = Static<typeof GroupRecoveryAcceptance>;

/** Response of `group.member.recovery.list`. */
export const GroupRecoveryList = Type.Object({
  requests: Type.Array(
    Type.Object({
      request: GroupMemberRecoveryRequest,
      signer_certificate: DeviceCertificate,
      accepted_at: UnixSeconds,
      expires_at: UnixSeconds,
    }),
  ),
  next: Type.Optional(GroupCursor),
});
export type GroupRecoveryList = Static<typeof GroupRecoveryList>;

/** Response of `group.secret.rotation.prepare`. */
export const GroupRotationPreparation = Type.Object({
  /** Current member accounts with a stored box; the boxes' contents are not checked. */
  prepared: Counter,
  /** From then on there is no commit. */
  expires_at: UnixSeconds,
});
export type GroupRotationPreparation = Static<typeof GroupRotationPreparation>;

/** Response of `group.message.send`; it never advances the position of `group.sync`. */
export const GroupMessageAcceptance = Type.Object({
  sequence: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
export type GroupMessageAcceptance = Static<typeof GroupMessageAcceptance>;

/** The response of every group method by its name; `null` if it has none. */
export const groupResults = {
  'group.create': null,
  'group.resolve': GroupState,
  'group.sync': GroupSyncPage,
  'group.close': null,
  'group.update': null,
  'group.role.update': null,
  'group.owner.transfer': null,
  'group.invite.create': null,
  'group.invite.resolve': GroupInviteResolution,
  'group.invite.list': GroupInviteList,
  'group.invite.revoke': null,
  'group.application.submit': null,
  'group.application.list': GroupApplicationList,
  'group.application.approve': null,
  'group.application.reject': null,
  'group.member.leave': null,
  'group.member.remove': null,
  'group.member.ban': null,
  'group.member.unban': null,
  'group.member.recovery.submit': GroupRecoveryAcceptance,
  'group.member.recovery.list': GroupRecoveryList,
  'group.member.recovery.approve': null,
  'group.member.recovery.reject': null,
  'group.key.sync': GroupKeyPage,
  'group.secret.rotation.prepare': GroupRotationPreparation,
  'group.secret.rotation.commit': null,
  'group.message.send': GroupMessageAcceptance,
  'group.subscribe': null,
} as const satisfies Record<GroupMethodName, unknown>;

/**
 * Checks the response of `group.resolve`.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupResolution(network, value, { group_id });
 * console.log(value.name);
 */
export function checkGroupResolution(
  network: Network,
  value: unknown,
  request: { readonly group_id: string },
): asserts value is GroupState {
  checkGroupState(network, value);
  checkGroupOf(value, request, 'group_id');
}

/**
 * Verifies the response of `group.invite.resolve`.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * const { invite_id } = groupInvite;
 * verifyGroupInviteResolution(network, value, { group_id, invite_id });
 * console.log(value.uses);
 */
export function verifyGroupInviteResolution(
  network: Network,
  value: unknown,
  request: { readonly group_id: string; readonly invite_id: string },
): asserts value is GroupInviteResolution {
  checkSchema(GroupInviteResolution, value);
  verifyGroupInvite(network, value.invite, value.signer_certificate);
  checkGroupOf(value.invite, request, 'invite.group_id');
  if (value.invite.invite_id !== request.invite_id) {
    throw badRequest('invite.invite_id', 'is not the one asked for');
  }
}

/** The members of a request that its list is checked against. */
export interface GroupListRequest {
  readonly group_id: string;
  readonly limit?: number;
}

/**
 * Verifies a page of `group.invite.list`: every certificate, every invitation with the one it
 * refers to.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * verifyGroupInviteList(network, value, { group_id, limit: 50 });
 * for (const { invite, uses } of value.invites) console.log(invite.invite_id, uses);
 */
export function verifyGroupInviteList(
  network: Network,
  value: unknown,
  request: GroupListRequest,
): asserts value is GroupInviteList {
  checkSchema(GroupInviteList, value);
  checkList(value, value.invites, request);
  const signers = new Map<string, DeviceCertificate>();
  for (const [index, certificate] of value.certificates.entries()) {
    checkDeviceCertificate(network, certificate, `certificates.${index}`);
    const id = deriveDeviceId(network, certificate);
    if (signers.has(id)) throw badRequest(`certificates.${index}`, 'repeats a device');
    signers.set(id, certificate);
  }
  const checks = [...signers.values()].flatMap((each) =>
    deviceCertificateSignatures(network, each),
  );
  for (const [index, { invite, signer_device_id }] of value.invites.entries()) {
    const at = `invites.${index}`;
    checkGroupInvite(network, invite, `${at}.invite`);
    checkGroupOf(invite, request, `${at}.invite.group_id`);
    const certificate = signers.get(signer_device_id);
    if (certificate?.account !== invite.inviter) {
      throw badRequest(`${at}.signer_device_id`, 'refers to no certificate of the inviter');
    }
    checks.push(...deviceSignatures(network, invite, certificate));
  }
  verifySignatures(network.primitives, checks, 'invites');
}

/**
 * Verifies a page of `group.application.list`. Whether an application's invitation is genuine needs
 * the invitation: see `checkApplicationInvite`.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * verifyGroupApplicationList(network, value, { group_id });
 * for (const { application } of value.applications) console.log(application.account);
 */
export function verifyGroupApplicationList(
  network: Network,
  value: unknown,
  request: GroupListRequest,
): asserts value is GroupApplicationList {
  checkSchema(GroupApplicationList, value);
  checkList(value, value.applications, request);
  for (const [index, item] of value.applications.entries()) {
    verifyGroupApplication(network, item.application, item.signer_certificate);
    checkGroupOf(item.application, request, `applications.${index}.application.group_id`);
  }
}

/**
 * Checks the response of `group.member.recovery.submit`.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkGroupRecoveryAcceptance(value);
 * console.log(value.expires_at);
 */
export function checkGroupRecoveryAcceptance(
  value: unknown,
): asserts value is GroupRecoveryAcceptance {
  checkSchema(GroupRecoveryAcceptance, value);
  if (value.expires_at <= value.accepted_at) throw badRequest('expires_at', 'not after acceptance');
}

/**
 * Verifies a page of `group.member.recovery.list`.
 *
 * @throws ProtocolError `bad_request`, `request_too_large`, `invalid_signature`
 * @example
 * verifyGroupRecoveryList(network, value, { group_id });
 * for (const { request } of value.requests) console.log(request.account);
 */
export function verifyGroupRecoveryList(
  network: Network,
  value: unknown,
  request: GroupListRequest,
): asserts value is GroupRecoveryList {
  checkSchema(GroupRecoveryList, value);
  checkList(value, value.requests, request);
  for (const [index, item] of value.requests.entries()) {
    verifyGroupMemberRecoveryRequest(network, item.request, item.signer_certificate);
    checkGroupOf(item.request, request, `requests.${index}.request.group_id`);
    checkGroupRecoveryAcceptance(item);
  }
}

/**
 * Checks that a page with a cursor has at least one record, and no page more than requested (05
 * §12.7).
 */
function checkList(
  page: { readonly next?: string },
  records: readonly object[],
  { limit = Number.POSITIVE_INFINITY }: GroupListRequest,
): void {
  checkNoNull(page as { readonly next?: string });
  for (const [index, record] of records.entries()) checkPart(record, String(index));
  if (records.length > limit) throw badRequest('', `more than ${limit} records`);
  if (page.next !== undefined && records.length === 0) throw badRequest('next', 'on an empty page');
}

function checkGroupOf(
  object: { readonly group_id: string },
  request: { readonly group_id: string },
  path: string,
): void {
  if (object.group_id !== request.group_id) throw badRequest(path, 'is another group');
}
