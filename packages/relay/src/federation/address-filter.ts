/**
 * Decides which network addresses of other relays this relay connects to. A descriptor and a DHT
 * answer are written by strangers: without this filter they could direct this relay's requests at
 * services of its own network. DNS answers are filtered, not names, and the connected socket is
 * checked again.
 */
import { type LookupAddress, promises } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import type { Libp2pAddress } from '@posthouse/protocol';
import { ipv6Groups } from '../config/ip-address.ts';

/** Never a relay: unspecified, multicast, reserved, link-local and metadata services of clouds. */
const refused = blockList([
  '0.0.0.0/8',
  '100.100.100.200/32',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/128',
  'fd00:ec2::254/128',
  'fe80::/10',
  'ff00::/8',
]);

/** Not on the public internet: loopback, private networks, documentation, benchmarks, tunnels. */
const notPublic = blockList([
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
]);

/** All public IPv6 addresses are in here. */
const globalUnicast = blockList(['2000::/3']);

function blockList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [address = '', prefix] = subnet.split('/');
    list.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** Returns the IPv4 address that an IPv6 address carries: IPv4-mapped (RFC 4291) or NAT64 (6052). */
function embeddedIpv4(address: string): string | undefined {
  const groups = ipv6Groups(address);
  const head = groups
    .slice(0, 6)
    .map((group) => group.toString(16))
    .join(':');
  if (head !== '0:0:0:0:0:ffff' && head !== '64:ff9b:0:0:0:0') return undefined;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');
}

/** Bounds what one name or descriptor makes this relay dial. */
const maxAddresses = 8;

/** Milliseconds that the answer about one family of addresses waits for the one about the other. */
const otherFamily = 500;

/** Milliseconds and times that each server of names is asked. */
const questions = { timeout: 2_000, maxTimeout: 2_000, tries: 2 };

/** An address that the filter refuses, or a name without a permitted address. */
export class AddressRefused extends Error {
  override readonly name = 'AddressRefused';
}

export class AddressFilter {
  readonly #allowPrivate: boolean;
  readonly #servers: readonly string[] | undefined;

  /** @param options.servers IP addresses and ports of the servers of names; by default, the system's */
  constructor(options: { readonly allowPrivate: boolean; readonly servers?: readonly string[] }) {
    this.#allowPrivate = options.allowPrivate;
    this.#servers = options.servers;
  }

  /** Returns whether this relay may connect to an IP address; false for a text that is none. */
  isAllowed(address: string): boolean {
    const family = isIP(address);
    if (family === 0 || address.includes('%')) return false;
    if (family === 4) return this.#isAllowedBy(address, 'ipv4');
    const embedded = embeddedIpv4(address);
    if (embedded !== undefined) return this.#isAllowedBy(embedded, 'ipv4');
    if (!this.#isAllowedBy(address, 'ipv6')) return false;
    return this.#allowPrivate || globalUnicast.check(address, 'ipv6');
  }

  #isAllowedBy(address: string, family: 'ipv4' | 'ipv6'): boolean {
    if (refused.check(address, family)) return false;
    return this.#allowPrivate || !notPublic.check(address, family);
  }

  /** Resolves a name for a socket, as `dns.lookup` does, without the addresses that are refused. */
  readonly lookup: LookupFunction = (hostname, { all, family }, done) => {
    this.#find(hostname, family === 4 || family === 6 ? family : 0).then(
      (allowed) => {
        if (all === true) done(null, [...allowed]);
        else done(null, allowed[0].address, allowed[0].family);
      },
      (error) => done(error, []),
    );
  };

  /**
   * Resolves a relay's libp2p address to IP addresses, at most eight. The socket must be checked
   * with {@link isAllowed} once it is connected.
   *
   * @throws AddressRefused if none is permitted; the error of DNS
   */
  async resolve({ family, host }: Pick<Libp2pAddress, 'family' | 'host'>): Promise<string[]> {
    if (family === 'ip4' || family === 'ip6') {
      if (this.isAllowed(host)) return [host];
      throw new AddressRefused(`${host}: this relay does not connect to it`);
    }
    // Records of `dnsaddr` are further multiaddrs, which no descriptor signs.
    if (family === 'dnsaddr') throw new AddressRefused(`${host}: dnsaddr is not resolved`);
    const only = family === 'dns4' ? 4 : family === 'dns6' ? 6 : 0;
    return (await this.#find(host, only)).map(({ address }) => address);
  }

  async #find(
    hostname: string,
    family: 0 | 4 | 6,
  ): Promise<readonly [LookupAddress, ...LookupAddress[]]> {
    const found = await this.#lookUp(hostname, family);
    const [first, ...others] = found.filter(({ address }) => this.isAllowed(address));
    if (first !== undefined) return [first, ...others.slice(0, maxAddresses - 1)];
    const advice = 'private networks set federation.allowPrivate';
    throw new AddressRefused(`${hostname}: no public address; ${advice}`);
  }

  async #lookUp(hostname: string, family: 0 | 4 | 6): Promise<LookupAddress[]> {
    // A private network may have its names in the system's files alone.
    if (this.#allowPrivate) return await promises.lookup(hostname, { all: true, family });
    // Without a dot it is a name of this machine, or of its network.
    return hostname.includes('.') ? await this.#ask(hostname, family) : [];
  }

  /**
   * Asks the servers of names. `lookup` has two threads for all names of the process, and one whose
   * server does not answer holds a thread for ten seconds.
   *
   * @throws the error of DNS if there is no address of either family
   */
  async #ask(hostname: string, family: 0 | 4 | 6): Promise<LookupAddress[]> {
    const resolver = new promises.Resolver(questions);
    if (this.#servers !== undefined) resolver.setServers(this.#servers);
    const ask = async (of: 4 | 6) => {
      const found = await (of === 4 ? resolver.resolve4(hostname) : resolver.resolve6(hostname));
      return found.map((address) => ({ address, family: of }));
    };
    const asked = (family === 0 ? ([4, 6] as const) : [family]).map(ask);
    let timer: NodeJS.Timeout | undefined;
    const cancelSoon = () => {
      timer ??= setTimeout(() => resolver.cancel(), otherFamily);
    };
    for (const answer of asked) answer.then(cancelSoon, () => {});
    const answers = await Promise.allSettled(asked);
    clearTimeout(timer);
    const [one = [], other = []] = answers.map((each) =>
      each.status === 'fulfilled' ? each.value : [],
    );
    const [failed] = answers.filter((each) => each.status === 'rejected');
    if (one.length + other.length === 0 && failed !== undefined) throw failed.reason;
    return inTurn(one, other);
  }
}

/** The addresses of two lists in turn: only the first few are used, and one family may not be reachable. */
function inTurn(one: readonly LookupAddress[], other: readonly LookupAddress[]): LookupAddress[] {
  const most = Math.max(one.length, other.length);
  return Array.from({ length: most }, (_, at) => [one[at], other[at]])
    .flat()
    .filter((address) => address !== undefined);
}
