import { isIPv4, isIPv6 } from 'node:net';

/** Converts an IPv4-mapped IPv6 address to IPv4. */
export function withoutMapping(address: string): string {
  return address.replace(/^::ffff:(?=[0-9.]+$)/i, '');
}

/** The eight 16-bit groups of an IPv6 address, which the caller knows to be one. */
export function ipv6Groups(address: string): number[] {
  // The URL parser writes the one canonical form, with at most one run of zeros left out.
  const { hostname } = new URL(`https://[${address.replace(/%.*$/, '')}]`);
  const [head = '', tail = ''] = hostname.slice(1, -1).split('::');
  const front = groups(head);
  const back = groups(tail);
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => 0);
  return [...front, ...zeros, ...back];
}

/**
 * Returns the network that one customer may have: of IPv4 the first 24 bits, of IPv6 the first 48.
 *
 * @param address as `addressKey` writes it
 * @example
 * customerNetwork('2001:db8:1:2::/64'); // '2001:db8:1::/48'
 */
export function customerNetwork(address: string): string {
  const [plain = ''] = address.split('/', 1);
  if (isIPv4(plain)) return `${plain.split('.').slice(0, 3).join('.')}.0/24`;
  if (!isIPv6(plain)) return address;
  const network = ipv6Groups(plain).slice(0, 3);
  return `${network.map((group) => group.toString(16)).join(':')}::/48`;
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}
