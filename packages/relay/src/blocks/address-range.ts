/** Addresses and networks (CIDR) as the operator writes them. */
import { isIPv4, isIPv6 } from 'node:net';
import { ipv6Groups, withoutMapping } from '../config/ip-address.ts';

/** A network: all addresses of a family whose first `length` bits are those of `network`. */
export interface AddressRange {
  readonly family: 4 | 6;
  /** All 32 or 128 bits; those after `length` are 0. */
  readonly network: bigint;
  readonly length: number;
}

/** Bits of an IPv6 address that stand for one customer. */
const customerBits = 64;

const bitsOf = { 4: 32, 6: 128 } as const;

/**
 * Reads an address, or a network in CIDR notation; bits after the prefix are ignored. An IPv4 address
 * that is mapped into IPv6 is the IPv4 address.
 *
 * @returns `undefined` if the text is neither
 * @example
 * readRange('192.0.2.7/24'); // the network 192.0.2.0/24
 */
export function readRange(text: string): AddressRange | undefined {
  const [, address = '', prefix] = /^([^/]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const plain = prefix === undefined ? withoutMapping(address) : address;
  const family = isIPv4(plain) ? 4 : isIPv6(plain) && !plain.includes('%') ? 6 : undefined;
  if (family === undefined) return undefined;
  const bits = bitsOf[family];
  const length = prefix === undefined ? bits : Number(prefix);
  if (length > bits) return undefined;
  return masked({ family, network: toBits(plain, family), length });
}

/** Widens a network of IPv6 so that it holds whole customers; others stay. */
export function ofCustomers(range: AddressRange): AddressRange {
  if (range.family === 4 || range.length <= customerBits) return range;
  return masked({ ...range, length: customerBits });
}

/**
 * Writes a network: a single address without its prefix.
 *
 * @example
 * writeRange({ family: 4, network: 0xc0000200n, length: 24 }); // '192.0.2.0/24'
 */
export function writeRange({ family, network, length }: AddressRange): string {
  const size = family === 4 ? 8 : 16;
  const count = bitsOf[family] / size;
  const parts = Array.from({ length: count }, (_, at) =>
    Number((network >> BigInt((count - 1 - at) * size)) & ((1n << BigInt(size)) - 1n)),
  );
  const address = family === 4 ? parts.join('.') : shortIpv6(parts);
  return length === bitsOf[family] ? address : `${address}/${length}`;
}

/** Whether two networks have an address in common. */
export function overlaps(one: AddressRange, other: AddressRange): boolean {
  if (one.family !== other.family) return false;
  const length = Math.min(one.length, other.length);
  return masked({ ...one, length }).network === masked({ ...other, length }).network;
}

function masked({ family, network, length }: AddressRange): AddressRange {
  const rest = BigInt(bitsOf[family] - length);
  return { family, network: (network >> rest) << rest, length };
}

function toBits(address: string, family: 4 | 6): bigint {
  const parts = family === 4 ? address.split('.').map(Number) : ipv6Groups(address);
  const size = family === 4 ? 8n : 16n;
  return parts.reduce((value, part) => (value << size) | BigInt(part), 0n);
}

/** The one canonical form (RFC 5952), which the URL parser writes. */
function shortIpv6(groups: readonly number[]): string {
  const text = groups.map((group) => group.toString(16)).join(':');
  return new URL(`https://[${text}]`).hostname.slice(1, -1);
}
