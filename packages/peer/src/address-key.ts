import { isIPv6 } from 'node:net';

/**
 * Returns the key by which limits count an address: an IPv4 address itself, also one that is mapped
 * into IPv6; of an IPv6 address the network of its first 64 bits.
 *
 * @example
 * addressKey('2001:db8:1:2::9'); // '2001:db8:1:2::/64'
 */
export function addressKey(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (mapped !== null) return mapped[1] as string;
  if (!isIPv6(address)) return address;
  const [plain = ''] = address.split('%', 1);
  const [head = '', tail] = plain.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  // A dotted quad at the end stands for two groups.
  const groups = before.length + after.length + (plain.includes('.') ? 1 : 0);
  const zeros = tail === undefined ? [] : Array<string>(8 - groups).fill('0');
  const network = [...before, ...zeros, ...after].slice(0, 4);
  return `${network.map((group) => Number.parseInt(group, 16).toString(16)).join(':')}::/64`;
}
