/**
 * Grant or invite of a device query or delivery (03 §5.2, 04 §11). The checks are separate, so that
 * a relay checks the format with the parameters, accounts and period once the target is known, and
 * signatures with the target's device state.
 */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { badRequest, type ErrorCode, ProtocolError } from '../errors.ts';
import type { Network } from '../identity/index.ts';
import { isJsonObject } from '../json/types.ts';
import { Type, TypeName } from '../schema.ts';
import {
  type ContactGrant,
  checkGrant,
  checkGrantUse,
  type DeviceStateAt,
  grantSignatures,
} from './grant.ts';
import { type ContactInvite, checkInvite, checkInviteUse, inviteSignatures } from './invite.ts';

export type Authorization = ContactGrant | ContactInvite;
/** The shape that grant and invite share; `checkAuthorization` checks the rest by `$type`. */
export const Authorization = Type.Unsafe<Authorization>(Type.Object({ $type: TypeName }));

/**
 * Returns whether an authorization is a grant; otherwise it is an invite.
 *
 * @example
 * if (isGrant(network, authorization)) console.log(authorization.grantee);
 */
export function isGrant(network: Network, value: Authorization): value is ContactGrant {
  return value.$type === network.type('contact.grant');
}

/**
 * Checks the format of a grant or invite, by its `$type`.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkAuthorization(network, value);
 * console.log(value.$type);
 */
export function checkAuthorization(
  network: Network,
  value: unknown,
  path = 'authorization',
): asserts value is Authorization {
  if (isJsonObject(value) && value.$type === network.type('contact.grant')) {
    checkGrant(network, value, path);
  } else if (isJsonObject(value) && value.$type === network.type('contact.invite')) {
    checkInvite(network, value, path);
  } else {
    throw badRequest(path, 'expected a contact grant or a contact invite');
  }
}

/** Target, requester and time that an authorization is checked for. */
export interface AuthorizationUse {
  /** Account whose devices are asked for, or that a message goes to. */
  readonly target: string;
  /** Account that asks or sends. */
  readonly requester: string;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Checks that a well-formed authorization is the target's, for this requester, and unexpired.
 *
 * @throws ProtocolError `forbidden`
 * @example
 * checkAuthorizationUse(network, authorization, { target: account, requester: peer, now });
 */
export function checkAuthorizationUse(
  network: Network,
  authorization: Authorization,
  { target, requester, now }: AuthorizationUse,
): void {
  if (isGrant(network, authorization)) {
    checkGrantUse(authorization, { grantor: target, grantee: requester, now });
  } else {
    checkInviteUse(authorization, { inviter: target, now });
  }
}

/** Signatures of which one that verifies is enough, and the error if none does. */
export interface AuthorizationSignatures {
  readonly anyOf: readonly SignatureCheck[];
  readonly failure: ErrorCode;
}

/**
 * Returns the signatures that can carry an authorization, by currently valid devices of its issuer.
 *
 * @param devices the issuer's verified state
 * @throws ProtocolError `forbidden` if no currently valid device of its issuer signed it
 * @example
 * const { anyOf, failure } = authorizationSignatures(network, authorization, { state, now });
 */
export function authorizationSignatures(
  network: Network,
  authorization: Authorization,
  devices: DeviceStateAt,
): AuthorizationSignatures {
  if (!isGrant(network, authorization)) {
    const anyOf = inviteSignatures(network, authorization, devices);
    return { anyOf, failure: 'invalid_signature' };
  }
  const anyOf = [...grantSignatures(network, authorization, devices).values()];
  if (anyOf.length === 0) {
    throw new ProtocolError('forbidden', 'grant: no currently valid device signed it');
  }
  // A grant's entry that fails counts as no signature, so no device authorised (03 §16.3).
  return { anyOf, failure: 'forbidden' };
}

/**
 * Checks an authorization completely.
 *
 * @throws ProtocolError `bad_request`, `forbidden`; `invalid_signature` for an invite
 * @example
 * verifyAuthorization(network, value, { target: account, requester: peer, state, now });
 */
export function verifyAuthorization(
  network: Network,
  value: unknown,
  use: AuthorizationUse & DeviceStateAt,
): asserts value is Authorization {
  checkAuthorization(network, value);
  checkAuthorizationUse(network, value, use);
  const { anyOf, failure } = authorizationSignatures(network, value, use);
  const { verify } = network.primitives.ed25519;
  if (!anyOf.some((check) => verify(check.publicKey, check.message, check.signature))) {
    throw new ProtocolError(failure, 'authorization: signature does not verify');
  }
}
