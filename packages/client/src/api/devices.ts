import type { DeviceApproval, DeviceRequest } from '../accounts/device-pairing.ts';
import {
  approveRequest,
  type DeviceInfo,
  listDevices,
  removeDevice,
  renewThisDevice,
} from '../accounts/devices.ts';
import type { AccountCore } from '../core.ts';
import { type Abortable, signalOf, type WithAccountKey } from './options.ts';

/** The account's devices. */
export class Devices {
  readonly #core: AccountCore;

  constructor(core: AccountCore) {
    this.#core = core;
  }

  list(options: Abortable = {}): Promise<DeviceInfo[]> {
    return listDevices(this.#core, signalOf(options));
  }

  /**
   * Approves a device's request, see `Client.requestDevice`. Compare the fingerprint first: whoever
   * is approved reads every message from then on.
   */
  async approve(request: DeviceRequest, options: WithAccountKey = {}): Promise<DeviceApproval> {
    const signer = await this.#core.accountKey(options.accountKey);
    return await approveRequest(this.#core, request, { signer, signal: signalOf(options) });
  }

  /** Gives this device a new period. */
  async renew(options: WithAccountKey = {}): Promise<void> {
    const signer = await this.#core.accountKey(options.accountKey);
    await renewThisDevice(this.#core, { signer, signal: signalOf(options) });
  }

  /**
   * Removes a device, after every contact got the signature of one that stays.
   * @param options.force removes it at once, whatever becomes of contacts
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
