import type { IncomingMessage } from 'node:http';
import { addressKey } from '@posthouse/peer';
import type { Blocks } from '../context.ts';
import type { ClientAddresses } from './client-addresses.ts';

/**
 * Which connections and requests come from addresses that the operator blocks. A trusted proxy is never
 * one: its connections carry the requests of other clients.
 */
export class BlockedAddresses {
  readonly #blocks: Pick<Blocks, 'hasAddress' | 'hasAddresses'>;
  readonly #clients: ClientAddresses;

  constructor(blocks: Pick<Blocks, 'hasAddress' | 'hasAddresses'>, clients: ClientAddresses) {
    this.#blocks = blocks;
    this.#clients = clients;
  }

  /** @param address of a client or of the other end of a connection, not as limits count it */
  has(address: string): boolean {
    if (!this.#blocks.hasAddresses) return false;
    // The address itself: limits count a proxy's IPv6 network, which is no proxy.
    return !this.#clients.isProxy(address) && this.#blocks.hasAddress(addressKey(address));
  }

  /** Whether a request comes from a blocked address, by what trusted proxies say of it. */
  hasClient(request: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
    return this.#blocks.hasAddresses && this.has(this.#clients.addressOf(request));
  }
}
