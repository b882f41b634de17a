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

  /** @param address of the other end of a connection */
  hasPeer(address: string): boolean {
    return this.#blocks.hasAddresses && this.has(addressKey(address));
  }

  /** Whether a request comes from a blocked address, by what trusted proxies say of it. */
  hasClient(request: Pick<IncomingMessage, 'socket' | 'headers'>): boolean {
    return this.#blocks.hasAddresses && this.has(this.#clients.of(request));
  }

  /** @param key the address as limits count it */
  has(key: string): boolean {
    return this.#blocks.hasAddress(key) && !this.#clients.isProxy(key);
  }
}
