import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { addressKey } from '@posthouse/peer';
import { withoutMapping } from '../config/ip-address.ts';

/**
 * Finds the client address of a request, for limits: the peer's, or the one that trusted proxies give
 * in `X-Forwarded-For`. IPv6 addresses count by /64, the usual network of one customer.
 */
export class ClientAddresses {
  #proxies = new BlockList();

  /** @param proxies addresses or subnets (`10.0.0.0/8`) of trusted proxies */
  constructor(proxies: readonly string[]) {
    this.trust(proxies);
  }

  /** Trusts other proxies from now on. */
  trust(proxies: readonly string[]): void {
    this.#proxies = new BlockList();
    for (const proxy of proxies) {
      const [address = '', prefix] = proxy.split('/');
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      if (prefix === undefined) this.#proxies.addAddress(address, family);
      else this.#proxies.addSubnet(address, Number(prefix), family);
    }
  }

  /** Returns whether an address is a trusted proxy. */
  isProxy(address: string): boolean {
    const plain = withoutMapping(address);
    if (isIPv4(plain)) return this.#proxies.check(plain, 'ipv4');
    return isIPv6(plain) && this.#proxies.check(plain, 'ipv6');
  }

  /** Returns the key for limits; equal for all requests of one client. */
  of(request: Pick<IncomingMessage, 'socket' | 'headers'>): string {
    return addressKey(this.addressOf(request));
  }

  /** Returns the client's address. */
  addressOf(request: Pick<IncomingMessage, 'socket' | 'headers'>): string {
    let address = request.socket.remoteAddress ?? '';
    // Anyone may send the header, as long as it likes.
    if (!this.isProxy(address)) return withoutMapping(address);
    const header = request.headers['x-forwarded-for'];
    const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',');
    while (this.isProxy(address)) {
      const hop = hops.pop()?.trim() ?? '';
      if (!isIPv4(hop) && !isIPv6(hop)) break;
      address = hop;
    }
    return withoutMapping(address);
  }
}
