/** Binary and text form of TCP multiaddrs, which DHT messages hold in binary form (07 §B6). */
import { concatBytes, equalBytes, utf8 } from '../encoding/bytes.ts';
import { decodeVarint, encodeVarint } from '../encoding/varint.ts';
import { badRequest } from '../errors.ts';
import { isHost } from '../identity/endpoint.ts';
import { formatPeerId, parsePeerId } from '../identity/peer-id.ts';
import { isMultihash } from '../identity/peer-key.ts';
import { decodeUtf8 } from '../json/parse.ts';

/** A TCP address of a relay. `Libp2pAddress` is one with a Peer ID. */
export interface TcpAddress {
  /** Address family: `ip4`, `ip6`, `dns`, `dns4`, `dns6` or `dnsaddr`. */
  readonly family: string;
  readonly host: string;
  readonly port: number;
  /** Multihash bytes of the peer, if the address names it. */
  readonly peerId?: Uint8Array | undefined;
}

/** Multicodecs of the families; a host is 4 or 16 bytes, or a name with its length. */
const families = { ip4: 4, ip6: 41, dns: 53, dns4: 54, dns6: 55, dnsaddr: 56 } as const;
const codes = { tcp: 6, p2p: 421 } as const;

/**
 * Encodes a TCP address in binary form.
 *
 * @throws ProtocolError `bad_request` for a family, host, port or Peer ID that cannot exist
 * @example
 * encodeMultiaddr({ family: 'ip4', host: '192.0.2.1', port: 4201 }); // 04 c0000201 06 1069
 */
export function encodeMultiaddr(address: TcpAddress): Uint8Array {
  const { family, host, port, peerId } = address;
  if (!isFamily(family) || !isHost(family, host)) throw badRequest('address', 'expected a host');
  if (!isPort(port)) throw badRequest('address', 'expected a port');
  if (peerId !== undefined && !isMultihash(peerId))
    throw badRequest('address', 'expected a Peer ID');
  return concatBytes(
    varint(families[family]),
    hostBytes(family, host),
    Uint8Array.of(codes.tcp, port >> 8, port & 0xff),
    peerId === undefined ? new Uint8Array() : concatBytes(varint(codes.p2p), withLength(peerId)),
  );
}

/**
 * Decodes the binary form of `/<family>/<host>/tcp/<port>`, with or without `/p2p/<peer-id>` at the
 * end; `undefined` for every other address, malformed or of a transport this protocol does not use.
 *
 * @example
 * const address = decodeMultiaddr(bytes); // { family: 'ip4', host: '192.0.2.1', port: 4201 }
 */
export function decodeMultiaddr(bytes: Uint8Array): TcpAddress | undefined {
  const first = takeVarint(bytes);
  const family = familyOf(first?.value);
  if (first === undefined || family === undefined) return undefined;
  const host = takeHost(family, first.rest);
  if (host === undefined || !isHost(family, host.text)) return undefined;
  const [tcp, high = 0, low] = host.rest;
  const port = high * 256 + (low ?? 0);
  if (tcp !== codes.tcp || low === undefined || port === 0) return undefined;
  const rest = host.rest.subarray(3);
  const address = { family, host: host.text, port };
  if (rest.length === 0) return address;
  const p2p = takeVarint(rest);
  if (p2p?.value !== codes.p2p) return undefined;
  const peer = takeWithLength(p2p.rest);
  if (peer === undefined || peer.rest.length > 0 || !isMultihash(peer.bytes)) return undefined;
  return { ...address, peerId: peer.bytes.slice() };
}

/**
 * Formats a TCP address as text.
 *
 * @example
 * formatMultiaddr({ family: 'ip4', host: '192.0.2.1', port: 4201 }); // '/ip4/192.0.2.1/tcp/4201'
 */
export function formatMultiaddr({ family, host, port, peerId }: TcpAddress): string {
  const peer = peerId === undefined ? '' : `/p2p/${formatPeerId(peerId)}`;
  return `/${family}/${host}/tcp/${port}${peer}`;
}

/**
 * Parses the text form of `/<family>/<host>/tcp/<port>`, with or without `/p2p/<peer-id>` at the
 * end; `undefined` for every other text.
 *
 * @example
 * const address = parseMultiaddr('/dns4/relay.example.com/tcp/4201');
 */
export function parseMultiaddr(text: string): TcpAddress | undefined {
  const [empty, family = '', host = '', tcp, digits = '', p2p, id, ...more] = text.split('/');
  const port = /^[1-9][0-9]{0,4}$/.test(digits) ? Number(digits) : 0;
  if (empty !== '' || tcp !== 'tcp' || !isPort(port)) return undefined;
  if (!isFamily(family) || !isHost(family, host)) return undefined;
  if (p2p === undefined) return { family, host, port };
  const peerId = p2p === 'p2p' && more.length === 0 ? parsePeerId(id ?? '') : undefined;
  return peerId === undefined ? undefined : { family, host, port, peerId };
}

type Family = keyof typeof families;

function isFamily(name: string): name is Family {
  return Object.hasOwn(families, name);
}

function familyOf(code: number | undefined): Family | undefined {
  const names = Object.keys(families) as Family[];
  return names.find((name) => families[name] === code);
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 0xffff;
}

function hostBytes(family: Family, host: string): Uint8Array {
  if (family === 'ip4') return Uint8Array.from(host.split('.').map(Number));
  return family === 'ip6' ? ip6Bytes(host) : withLength(utf8(host));
}

/** Parses an IPv6 text. The URL parser writes every form as hexadecimal groups with one `::`. */
function ip6Bytes(host: string): Uint8Array {
  const { hostname } = new URL(`https://[${host}]/`);
  const [head = '', tail] = hostname.slice(1, -1).split('::');
  const groupsOf = (text = '') => (text === '' ? [] : text.split(':'));
  const first = groupsOf(head);
  const last = groupsOf(tail);
  const zeros = Array.from({ length: 8 - first.length - last.length }, () => '0');
  const groups = [...first, ...zeros, ...last].map((group) => Number.parseInt(group, 16));
  return Uint8Array.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}

/** Formats 16 bytes in the shortest form of an IPv6 address. */
function ip6Text(bytes: Uint8Array): string {
  const groups = Array.from({ length: 8 }, (_, index) => {
    const [high = 0, low = 0] = bytes.subarray(index * 2);
    return (high * 256 + low).toString(16);
  });
  return new URL(`https://[${groups.join(':')}]/`).hostname.slice(1, -1);
}

interface Taken {
  readonly bytes: Uint8Array;
  readonly rest: Uint8Array;
}

function takeHost(family: Family, bytes: Uint8Array) {
  if (family === 'ip4') {
    const taken = take(bytes, 4);
    return taken && { text: taken.bytes.join('.'), rest: taken.rest };
  }
  if (family === 'ip6') {
    const taken = take(bytes, 16);
    return taken && { text: ip6Text(taken.bytes), rest: taken.rest };
  }
  const taken = takeWithLength(bytes);
  if (taken === undefined) return undefined;
  try {
    return { text: decodeUtf8(taken.bytes), rest: taken.rest };
  } catch {
    // Names come from other relays; one that is no text is an address to skip, not an error.
    return undefined;
  }
}

function take(bytes: Uint8Array, length: number): Taken | undefined {
  if (length > bytes.length) return undefined;
  return { bytes: bytes.subarray(0, length), rest: bytes.subarray(length) };
}

function takeVarint(bytes: Uint8Array): { value: number; rest: Uint8Array } | undefined {
  const read = decodeVarint(bytes);
  if (typeof read === 'string') return undefined;
  return { value: Number(read.value), rest: bytes.subarray(read.length) };
}

function takeWithLength(bytes: Uint8Array): Taken | undefined {
  const length = takeVarint(bytes);
  return length && take(length.rest, length.value);
}

function withLength(bytes: Uint8Array): Uint8Array {
  return concatBytes(varint(bytes.length), bytes);
}

function varint(value: number): Uint8Array {
  return encodeVarint(BigInt(value));
}

/** Returns whether an address names no peer, or this one. */
export function isAddressOf(address: TcpAddress, peerId: Uint8Array): boolean {
  return address.peerId === undefined || equalBytes(address.peerId, peerId);
}
