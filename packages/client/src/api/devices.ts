import type { DeviceApproval, DeviceRequest } from '../accounts/device-pairing.ts';
import {
  approveRequest,
  type DeviceInfo,
  listDevices,
  removeDevice,
  renewThisDevice,
} from '../accounts/devices.ts';
import type { AccountCore } from '../core.ts';
import type { HandOverEvent } from '../events.ts';
import type { HandOverOptions } from '../own-devices/hand-over.ts';
import { type Abortable, signalOf, type WithAccountKey } from './options.ts';

/**
 * Lists, approves, renews and removes the account's devices.
 *
 * @example
 * for (const device of await account.devices.list()) {
 *   console.log(device.deviceId, device.isThisDevice, device.isValidNow);
 * }
 */
export class Devices {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  /**
   * Reads the account's devices from the home relay.
   *
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * const devices = await account.devices.list();
   */
  list(options: Abortable = {}): Promise<DeviceInfo[]> {
    return listDevices(this.#core, signalOf(options));
  }

  /**
   * Approves a device's request, see `Client.requestDevice`. Compare the device ID first: an
   * approved device reads every message from then on.
   *
   * @throws ClientError `verification_failed`, `invalid_input`, `account_key_required`
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * const request = await client.requestDevice(account.publicKey); // on the new device
   * const approval = await account.devices.approve(request); // on the device with the account key
   */
  async approve(request: DeviceRequest, options: WithAccountKey = {}): Promise<DeviceApproval> {
    const signer = await this.#core.accountKey(options.accountKey);
    return await approveRequest(this.#core, request, { signer, signal: signalOf(options) });
  }

  /**
   * Hands the messages that this device stores to another device of the account: those with people,
   * and those of groups, newest first, in sealed messages that only that device can open. It goes on
   * with `sync` and `follow` after a failure or a restart, with the event `hand-over`; calling it
   * again goes on, too, and with other options it begins anew. On one day it sends 8 MiB, or less if
   * the relay takes less; it goes on the next day. On the other device messages appear at their places, read, with the event
   * `history`. That device cannot verify their senders' signatures: it trusts this one
   * (`Message.handedOverBy`). Messages of groups that it does not know yet are left out.
   *
   * @param options.conversations only these, with people or groups
   * @param options.since only messages that a relay accepted at or after these Unix seconds
   * @param options.progress called after each message with history
   * @returns how much was handed over; `isComplete` is false if the rest follows on another day, and
   *   `error` says why it was given up
   * @throws ClientError `invalid_input`, `no_recipient_device`
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour; it goes on later
   * @example
   * for (const { deviceId, isThisDevice } of await account.devices.list()) {
   *   if (!isThisDevice) await account.devices.handOver(deviceId);
   * }
   */
  async handOver(
    deviceId: string,
    options: HandOverOptions & {
      readonly progress?: (progress: HandOverEvent) => void;
    } & Abortable = {},
  ): Promise<HandOverEvent> {
    const { handOver } = await this.#core.later();
    const { progress } = options;
    return await handOver(this.#core, deviceId, {
      ...options,
      progress,
      signal: signalOf(options),
    });
  }

  /**
   * Renews this device's certificate for another period, with the same keys.
   *
   * @throws ClientError `account_key_required`; RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * await account.devices.renew();
   */
  async renew(options: WithAccountKey = {}): Promise<void> {
    const signer = await this.#core.accountKey(options.accountKey);
    await renewThisDevice(this.#core, { signer, signal: signalOf(options) });
  }

  /**
   * Removes a device after every contact holds a grant signed by a remaining device.
   *
   * @param options.force removes it at once, even if contacts lose the way to this account
   * @throws ClientError `invalid_input`, `account_key_required`; `contacts_unreached` if contacts have
   *   no grant of a remaining device yet
   * @throws RelayRefused, RelayUnreachable, RelayMisbehaviour
   * @example
   * for (const { deviceId, isValidNow } of await account.devices.list()) {
   *   if (!isValidNow) await account.devices.remove(deviceId);
   * }
   */
  async remove(
    deviceId: string,
    options: WithAccountKey & { readonly force?: boolean } = {},
  ): Promise<void> {
    const { force = false } = options;
    const signer = await this.#core.accountKey(options.accountKey);
    await removeDevice(this.#core, deviceId, { signer, force, signal: signalOf(options) });
  }
}
