/** The devices for which a message is sealed (04 §5, §12). */
import {
  type Authorization,
  type ContactGrant,
  type DeviceCertificate,
  deriveDeviceId,
} from '@posthouse/protocol';
import { knownState, requireCurrentDevices, resolveOwnState } from '../accounts/device-states.ts';
import { freshState, usableFor } from '../accounts/fresh-states.ts';
import { contactRow } from '../contacts/contact-rows.ts';
import { resolveContactState } from '../contacts/contact-state.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import type { StoreReader } from '../store/index.ts';

/**
 * Returns the target's currently valid devices, by a state read within the last minute, and reads
 * the own state for the copy to the own devices likewise.
 */
export async function recipientsOf(
  core: AccountCore,
  message: {
    readonly to: string;
    readonly authorization?: Authorization | undefined;
    readonly includeThisDevice?: boolean | undefined;
    /** For the own account: IDs of the only devices that get it. */
    readonly devices?: readonly string[] | undefined;
  },
  { refresh, signal }: { readonly refresh: boolean; readonly signal: AbortSignal },
): Promise<DeviceCertificate[]> {
  const { to, authorization, includeThisDevice = true, devices: only } = message;
  // A copy goes to the own devices; their state was read at the latest when this one was set up.
  const usable = to === core.account ? usableFor : Number.POSITIVE_INFINITY;
  const own = readOwnState(core, { refresh, usableFor: usable, signal });
  if (to === core.account) {
    await own;
    const devices = await ownDevices(core);
    if (includeThisDevice) return devices;
    const others = devices.filter(
      (item) =>
        item.signing_public_key !== core.device.signingPublicKey &&
        (only === undefined || only.includes(deriveDeviceId(core.network, item))),
    );
    if (others.length === 0) {
      throw new ClientError(
        'no_recipient_device',
        'the account has no other device: add one first',
      );
    }
    return others;
  }
  const resolve = (within: AbortSignal) =>
    resolveContactState(core, to, {
      ...(authorization !== undefined && { authorization }),
      signal: within,
    });
  const [state] = await Promise.all([
    refresh ? resolve(signal) : freshState(core, to, { resolve, usableFor, signal }),
    own,
  ]);
  return requireCurrentDevices(core, state);
}

/** Returns the account's own valid devices, by the stored state. @throws ClientError `not_set_up` */
export async function ownDevices(core: AccountCore): Promise<DeviceCertificate[]> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined)
    throw new ClientError('not_set_up', 'the own device state is not known: synchronize first');
  return requireCurrentDevices(core, state);
}

async function readOwnState(
  core: AccountCore,
  {
    refresh,
    usableFor,
    signal,
  }: { readonly refresh: boolean; readonly usableFor: number; readonly signal: AbortSignal },
): Promise<void> {
  const { account } = core;
  const resolve = async (within: AbortSignal) =>
    await resolveOwnState(core, await core.home(), { account, signal: within });
  if (refresh) await resolve(signal);
  else await freshState(core, account, { resolve, usableFor, signal });
}

/** Returns the grant of a contact. @throws ClientError `not_a_contact` */
export async function requireGrant(tx: StoreReader, account: string): Promise<ContactGrant> {
  const { record, relationship } = await contactRow(tx, account);
  if (record?.status === 'active' && record.grant_from_contact !== undefined) {
    return record.grant_from_contact;
  }
  const state = relationship.awaiting
    ? 'has not answered yet: try again after it accepts the contact request'
    : 'is not a contact: add or accept the contact first';
  throw new ClientError('not_a_contact', `${account} ${state}`);
}
