/** Device states of contacts, by the grants that were received (03 §5.7, §16.4). */
import type { AccountDeviceState, Authorization } from '@posthouse/protocol';
import { resolveState } from '../accounts/device-states.ts';
import type { AccountCore } from '../core.ts';
import { isRefusal } from '../errors.ts';
import { retryUnverifiedGrant } from './apply-contact.ts';
import { contactRow } from './contact-rows.ts';

/**
 * Reads a contact's device state as `resolveState` does. If all devices that signed the grant are
 * removed by now, the relay refuses it: then one that a newer device signed is sent, and used from then on.
 *
 * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
 */
export async function resolveContactState(
  core: AccountCore,
  account: string,
  options: { readonly authorization?: Authorization; readonly signal: AbortSignal },
): Promise<AccountDeviceState> {
  try {
    return await resolveState(core, account, options);
  } catch (error) {
    const { unverified } = await core.store.read((tx) => contactRow(tx, account));
    if (unverified === undefined || !isRefusal(error, 'forbidden')) throw error;
    const { signal } = options;
    const state = await resolveState(core, account, { authorization: unverified, signal });
    await core.store.write((tx) => retryUnverifiedGrant(core, tx, account));
    return state;
  }
}
