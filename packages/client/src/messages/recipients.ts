/** The devices for which a message is sealed (04 §5, §12). */
import type { Authorization, ContactGrant, DeviceCertificate } from '@posthouse/protocol';
import { deviceStates, stateHints } from '../accounts/account-rows.ts';
import {
  knownState,
  requireCurrentDevices,
  resolveOwnState,
  resolveState,
} from '../accounts/device-states.ts';
import { contactRow } from '../contacts/contact-rows.ts';
import type { AccountCore } from '../core.ts';
import { ClientError } from '../errors.ts';
import type { StoreReader } from '../store/index.ts';

/** Milliseconds for which a device state is used without a new read, unless a hint arrives. */
const stateMaxAge = 3_600_000;

/** Returns the target's currently valid devices, by a state that is recent enough. */
export async function recipientsOf(
  core: AccountCore,
  message: {
    readonly to: string;
    readonly authorization?: Authorization | undefined;
    readonly includeThisDevice?: boolean | undefined;
  },
  { refresh, signal }: { readonly refresh: boolean; readonly signal: AbortSignal },
): Promise<DeviceCertificate[]> {
  const { to, authorization, includeThisDevice = true } = message;
  if (refresh || to === core.account) {
    await refreshOwnState(core, { refresh, signal });
  }
  if (to === core.account) {
    const devices = await ownDevices(core);
    if (includeThisDevice) return devices;
    const others = devices.filter(
      (item) => item.signing_public_key !== core.device.signingPublicKey,
    );
    if (others.length === 0) {
      throw new ClientError(
        'no_recipient_device',
        'the account has no other device: add one first',
      );
    }
    return others;
  }
  const known = refresh ? undefined : await recentState(core, to);
  const options = { ...(authorization !== undefined && { authorization }), signal };
  return requireCurrentDevices(core, known ?? (await resolveState(core, to, options)));
}

/** Returns the account's own valid devices, by the stored state. @throws ClientError `not_set_up` */
export async function ownDevices(core: AccountCore): Promise<DeviceCertificate[]> {
  const state = await core.store.read((tx) => knownState(tx, core.account));
  if (state === undefined)
    throw new ClientError('not_set_up', 'the own device state is not known: synchronize first');
  return requireCurrentDevices(core, state);
}

async function recentState(core: AccountCore, account: string) {
  return await core.store.read(async (tx) => {
    const record = await deviceStates.get(tx, account);
    if (record === undefined || (await stateHints.get(tx, account)) !== undefined) return undefined;
    const age = core.clock.milliseconds() - record.checkedAt;
    return age >= 0 && age < stateMaxAge ? record.state : undefined;
  });
}

async function refreshOwnState(
  core: AccountCore,
  { refresh, signal }: { readonly refresh: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const recent = refresh ? undefined : await recentState(core, core.account);
  if (recent !== undefined) return;
  await resolveOwnState(core, await core.home(), { account: core.account, signal });
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
