import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { ipv6Groups } from '../config/ipv6.ts';

/**
 * Where a request comes from, for limits: the peer, or what trusted proxies in front say about
 * theirs in `X-Forwarded-For`. IPv6 counts by its /64, which is what one customer has.
 */
export class ClientAddresses {
  readonly #proxies = new BlockList();

  /** @param proxies addresses or subnets (`10.0.0.0/8`) whose word counts */
  constructor(proxies: readonly string[]) {
    for (const proxy of proxies) {
      const [address = '', prefix] = proxy.split('/');
      const family = isIPv4(address) ? 'ipv4' : 'ipv6';
      if (prefix === undefined) this.#proxies.addAddress(address, family);
      else this.#proxies.addSubnet(address, Number(prefix), family);
    }
  }

  isProxy(address: string): boolean {
    const plain = withoutMapping(address);
    if (isIPv4(plain)) return this.#proxies.check(plain, 'ipv4');
    return isIPv6(plain) && this.#proxies.check(plain, 'ipv6');
  }

  /** A key for limits; equal for requests of one client. */
  of(request: Pick<IncomingMessage, 'socket' | 'headers'>): string {
    let address = request.socket.remoteAddress ?? '';
    const header = request.headers['x-forwarded-for'];
    const hops = (Array.isArray(header) ? header.join(',') : (header ?? '')).split(',');
    while (this.isProxy(address)) {
      const hop = hops.pop()?.trim() ?? '';
      if (!isIPv4(hop) && !isIPv6(hop)) break;
      address = hop;
    }
    return addressKey(address);
  }
}

/** IPv4 in IPv6 clothes is IPv4. */
function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=[0-9.]+$)/i, '');
}

/** An IPv4 address, or the first 64 bits of an IPv6 address. */
export function addressKey(address: string): string {
  const plain = withoutMapping(address);
  if (!isIPv6(plain)) return plain;
  const network = ipv6Groups(plain).slice(0, 4);
  return `${network.map((group) => group.toString(16)).join(':')}::/64`;
}
