/** Accounts and devices with keys of their own, and the objects they sign. */

import { nodeRandom } from '@posthouse/primitives-node';
import {
  type AccountDeviceState,
  type AccountRoute,
  type AccountSigner,
  accountSigner,
  type DeviceCertificate,
  type DeviceSigner,
  deriveDeviceId,
  deviceSigner,
  type Network,
  signDeviceCertificate,
  signDeviceState,
  signRouteDraft,
} from '@posthouse/protocol';

/** A device of an account, with its private keys. */
export interface Device {
  readonly account: Account;
  readonly id: string;
  readonly certificate: DeviceCertificate;
  readonly signer: DeviceSigner;
  readonly encryptionKey: Uint8Array;
}

/** An account with its private key, and what it published last. */
export class Account {
  readonly network: Network;
  readonly signer: AccountSigner;
  #revision = 0;

  constructor(network: Network) {
    this.network = network;
    this.signer = accountSigner(network, nodeRandom(32));
  }

  get id(): string {
    return this.signer.account;
  }

  /** A device with new keys; valid from an hour ago for a year unless said otherwise. */
  async device(period: { notBefore?: number; expiresAt?: number } = {}): Promise<Device> {
    const keys = { signingSeed: nodeRandom(32), encryptionKey: nodeRandom(32) };
    const signer = deviceSigner(this.network, keys);
    const certificate = await this.certify(signer, period);
    const id = deriveDeviceId(this.network, certificate);
    return { account: this, id, certificate, signer, encryptionKey: keys.encryptionKey };
  }

  /** A certificate for a device's keys, new or known. */
  certify(
    device: DeviceSigner,
    period: { notBefore?: number; expiresAt?: number } = {},
  ): Promise<DeviceCertificate> {
    const now = unixSeconds();
    return signDeviceCertificate(this.network, {
      account: this.signer,
      device,
      notBefore: period.notBefore ?? now - 3_600,
      expiresAt: period.expiresAt ?? now + 31_536_000,
    });
  }

  /** A complete state with the devices given, one revision further unless said otherwise. */
  state(devices: readonly Device[], revision?: number): Promise<AccountDeviceState> {
    this.#revision = revision ?? Math.max(this.#revision + 1, Date.now());
    return signDeviceState(this.network, this.signer, {
      revision: this.#revision,
      certificates: devices.map(({ certificate }) => certificate),
    });
  }

  /** A route draft that names a relay. */
  route(facts: {
    readonly relayId: string;
    readonly revision?: number;
    readonly updatedAt?: number;
    readonly expiresAt?: number;
  }): Promise<AccountRoute> {
    const now = unixSeconds();
    return signRouteDraft(this.network, this.signer, {
      relay_id: facts.relayId,
      revision: facts.revision ?? Date.now(),
      updated_at: facts.updatedAt ?? now,
      expires_at: facts.expiresAt ?? now + 86_400,
    });
  }
}

/** This machine's clock; a relay under test is expected to agree within its tolerance. */
export function unixSeconds(): number {
  return Math.floor(Date.now() / 1_000);
}
