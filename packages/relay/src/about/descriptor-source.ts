import {
  type AccountSigner,
  type Network,
  type RelayDescriptor,
  signDescriptor,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import type { Clock } from '../context.ts';

export interface DescriptorOptions {
  readonly network: Network;
  readonly signer: AccountSigner;
  readonly clock: Pick<Clock, 'now'>;
  /** HTTPS, WSS and libp2p addresses, as they are signed. */
  readonly endpoints: () => readonly string[];
  readonly capabilities: readonly string[];
  /** Seconds from signing to expiry. */
  readonly lifetime: number;
}

/** Signs the relay's descriptor, and signs it again after half of its lifetime. */
export class DescriptorSource {
  readonly #options: DescriptorOptions;
  #signed: RelayDescriptor | undefined;
  #text = '';

  constructor(options: DescriptorOptions) {
    this.#options = options;
  }

  /** Returns a descriptor that is valid for at least half of its lifetime, as Canonical JSON. */
  async current(): Promise<string> {
    const { network, signer, clock, endpoints, capabilities, lifetime } = this.#options;
    const now = clock.now();
    const left = (this.#signed?.expires_at ?? now) - now;
    // More than a lifetime is left after the clock went back.
    if (left < lifetime / 2 || left > lifetime) {
      this.#signed = await signDescriptor(network, signer, {
        endpoints: [...endpoints()],
        ...(capabilities.length > 0 && { capabilities: [...capabilities] }),
        expires_at: now + lifetime,
      });
      this.#text = canonicalJson(this.#signed);
    }
    return this.#text;
  }
}
