import type { IncomingMessage } from 'node:http';
import { BlockList, isIPv4, isIPv6 } from 'node:net';
import { relayOrigin } from '@posthouse/protocol';
import { ipv6Groups } from './ipv6.ts';

/**
 * The public addresses of a relay. The origin of a request comes from this configuration and the
 * path it was sent to, never from a header (02 §8).
 */
export class PublicAddresses {
  /** Base path of an HTTPS address, `''` for the root. */
  readonly #https: ReadonlyMap<string, string>;
  /** Path of a WebSocket address. */
  readonly #wss: ReadonlyMap<string, string>;
  #port = 0;

  /**
   * Port 0 in an address stands for the port that the relay listens on, once it is known.
   *
   * @throws TypeError for addresses of one kind that share a path and so could not be told apart,
   *   or whose path needs escaping
   */
  constructor(https: readonly string[], wss: readonly string[]) {
    this.#https = byPath(https, '');
    this.#wss = byPath(wss, '/');
  }

  /** Says which port port 0 became. */
  setPort(port: number): void {
    this.#port = port;
  }

  /** The port the relay listens on. */
  get port(): number {
    return this.#port;
  }

  get https(): string[] {
    return [...this.#https.values()].map((address) => this.#withPort(address));
  }

  get wss(): string[] {
    return [...this.#wss.values()].map((address) => this.#withPort(address));
  }

  get basePaths(): string[] {
    return [...this.#https.keys()];
  }

  /** The origin that callers of a base path see. */
  httpOrigin(basePath: string): string {
    return relayOrigin(this.#withPort(this.#https.get(basePath) ?? ''));
  }

  /** The origin behind a WebSocket path; `undefined` where no address has it. */
  webSocketOrigin(path: string): string | undefined {
    const address = this.#wss.get(path);
    return address === undefined ? undefined : relayOrigin(this.#withPort(address));
  }

  #withPort(address: string): string {
    return address.replace(/:0(?=\/|$)/, `:${this.#port}`);
  }
}

function byPath(addresses: readonly string[], root: string): Map<string, string> {
  const paths = new Map<string, string>();
  for (const address of addresses) {
    const path = address.replace(/^[a-z]+:\/\/[^/]*/, '');
    if (!/^(?:\/[A-Za-z0-9._~-]+)*$/.test(path)) {
      throw new TypeError(`${address}: a path of plain segments without a slash at its end`);
    }
    if (paths.has(path || root)) throw new TypeError(`${address}: another address has this path`);
    paths.set(path || root, address);
  }
  return paths;
}

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
