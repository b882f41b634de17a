/** The encrypted declaration that starts a contact relationship (03 §15.1). */
import { verifySignatures } from '../crypto/signatures.ts';
import { badRequest, ProtocolError } from '../errors.ts';
import {
  AccountDeviceState,
  checkDeviceState,
  currentDevices,
  deviceStateSignatures,
  type Network,
} from '../identity/index.ts';
import { canonicalJson } from '../json/canonical.ts';
import { limits } from '../limits.ts';
import {
  checkNoNull,
  checkObject,
  checkText,
  memberPath,
  type Static,
  Type,
  TypeName,
} from '../schema.ts';
import { ContactGrant, checkGrant, checkGrantUse, grantSignatures } from './grant.ts';

/** The sender's devices, and its grant to the account it writes to. */
export const ContactConsent = Type.Object({
  $type: TypeName,
  device_state: AccountDeviceState,
  grant: ContactGrant,
  note: Type.Optional(Type.String()),
});
export type ContactConsent = Static<typeof ContactConsent>;

/**
 * Checks everything about a consent that needs neither its envelope nor signatures.
 *
 * @throws ProtocolError `bad_request`; `request_too_large` for the device state
 * @example
 * checkConsent(network, value);
 * console.log(value.note);
 */
export function checkConsent(
  network: Network,
  value: unknown,
  path = '',
): asserts value is ContactConsent {
  checkObject(network, { type: 'contact.consent', schema: ContactConsent }, value, path);
  checkNoNull(value, path);
  if (value.note !== undefined) {
    const rule = { maxBytes: limits.consentNoteBytes, allowEmpty: false };
    checkText(value.note, rule, memberPath(path, 'note'));
  }
  checkDeviceState(network, value.device_state, memberPath(path, 'device_state'));
  checkGrant(network, value.grant, memberPath(path, 'grant'));
}

/** The context that a consent is verified in. */
export interface ConsentContext {
  /** The verified envelope that carried it. */
  readonly envelope: {
    readonly from: string;
    readonly from_device_id: string;
    readonly to: string;
  };
  /** The newest verified device state of the sender that is stored, if any. */
  readonly known?: AccountDeviceState | undefined;
  /** Unix seconds. */
  readonly now: number;
}

/**
 * Verifies a consent: it is the envelope sender's own, its state is authentic and not older than
 * the known one, the sending device is currently valid in it and has signed the grant to the
 * envelope's target.
 *
 * @throws ProtocolError `bad_request`, `request_too_large` for the format and for accounts that are
 *   not the envelope's; `invalid_signature`; `device_unknown` for a sending device that is not
 *   currently valid; `forbidden` for an expired grant; `stale_state`, `state_conflict` against the
 *   known state
 * @example
 * verifyConsent(network, value, { envelope, now });
 * console.log(value.grant.grantee);
 */
export function verifyConsent(
  network: Network,
  value: unknown,
  context: ConsentContext,
): asserts value is ContactConsent {
  checkConsent(network, value);
  const { envelope, known, now } = context;
  const { device_state: state, grant } = value;
  if (state.account !== envelope.from) throw badRequest('device_state', 'of another account');
  if (grant.grantor !== envelope.from || grant.grantee !== envelope.to) {
    throw badRequest('grant', 'not from the sender to the target');
  }
  verifySignatures(network.primitives, deviceStateSignatures(network, state), 'device_state');
  if (known !== undefined) checkStateSuccession(known, state);
  if (!currentDevices(network, state, now).has(envelope.from_device_id)) {
    throw new ProtocolError('device_unknown', 'consent: its device is not currently valid');
  }
  checkGrantUse(grant, { now });
  const own = grantSignatures(network, grant, { state, now }).get(envelope.from_device_id);
  if (own === undefined) {
    throw new ProtocolError('invalid_signature', 'grant: not signed by the sending device');
  }
  verifySignatures(network.primitives, [own], 'grant');
}

/**
 * Checks that a received device state may follow the known one of the same account: a higher
 * revision, or the very same object (01 §10.2, 03 §5.7).
 *
 * @throws ProtocolError `stale_state` for a lower revision; `state_conflict` for the same revision
 *   with other content
 */
export function checkStateSuccession(
  known: AccountDeviceState,
  received: AccountDeviceState,
): void {
  if (received.revision < known.revision) {
    throw new ProtocolError('stale_state', 'device state: older than the known one');
  }
  if (received.revision === known.revision && canonicalJson(received) !== canonicalJson(known)) {
    throw new ProtocolError('state_conflict', 'device state: same revision, other content');
  }
}
