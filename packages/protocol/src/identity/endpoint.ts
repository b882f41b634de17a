import { utf8Length } from '../encoding/bytes.ts';
import { badRequest } from '../errors.ts';
import { limits } from '../limits.ts';
import { parsePeerId } from './peer-id.ts';

/**
 * Addresses of relays (chapter 01, sections 12 and 13.2). The raw text is looked at before any URL
 * parser: those repair case, backslashes, empty queries and missing slashes without a word.
 */

/**
 * Checks an HTTPS base address: of a registry record, or of a descriptor.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkHttpsEndpoint('https://relay.example.com/svc/v1');
 */
export function checkHttpsEndpoint(text: string, path = ''): void {
  checkUrl('https://', text, path);
}

/**
 * Checks a complete WebSocket address.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkWssEndpoint('wss://relay.example.com/svc/v1/ws');
 */
export function checkWssEndpoint(text: string, path = ''): void {
  checkUrl('wss://', text, path);
}

/** White space of the protocol's list, and control characters, which URL parsers drop. */
const forbidden =
  /[\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\\?#]/;

function checkUrl(prefix: 'https://' | 'wss://', text: string, path: string): void {
  const fail = (reason: string) => badRequest(path, `address ${reason}`);
  if (!text.startsWith(prefix)) throw fail(`does not begin with ${prefix}`);
  if (utf8Length(text) > limits.endpointBytes) throw fail(`over ${limits.endpointBytes} bytes`);
  if (forbidden.test(text)) {
    throw fail('has white space, a query, a fragment or a backslash');
  }
  const [authority = ''] = text.slice(prefix.length).split('/', 1);
  if (authority.includes('@')) throw fail('has userinfo');
  if (authority === '' || authority.includes('%') || !URL.canParse(text)) {
    throw fail('has no valid host');
  }
  if (!isHostOf(text, authority.replace(/:[0-9]*$/, ''))) throw fail('has no valid host');
}

/** Names as DNS has them, in lowercase ASCII; the final dot may be written. */
const domainName = /^(?=.{1,253}\.?$)(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?$/;

/** Returns whether the host of a URL that parses is an address or a name that can exist. */
function isHostOf(url: string, written: string): boolean {
  const { hostname } = new URL(url);
  // Forms such as 0x7f.1 or 127.1 turn into an IPv4 address only by repair.
  if (isIpv4(hostname)) return hostname === written;
  return hostname.startsWith('[') || domainName.test(hostname);
}

/** A relay-to-relay address taken apart. */
export interface Libp2pAddress {
  /** Address family: `ip4`, `ip6`, `dns`, `dns4`, `dns6` or `dnsaddr`. */
  readonly family: string;
  readonly host: string;
  readonly port: number;
  /** Multihash bytes. */
  readonly peerId: Uint8Array;
}

/**
 * The transport of an item of `endpoints`; `other` is a transport this protocol does not use (EP6).
 */
export type Endpoint =
  | { readonly kind: 'https' | 'wss' | 'other' }
  | { readonly kind: 'libp2p'; readonly address: Libp2pAddress };

/**
 * Classifies an item of a descriptor's `endpoints` by transport, and checks it.
 *
 * @throws ProtocolError `bad_request` for a malformed HTTPS, WSS or libp2p TCP item (EP4)
 * @example
 * classifyEndpoint('https://relay.example.com/svc/v1'); // { kind: 'https' }
 */
export function classifyEndpoint(text: string, path = ''): Endpoint {
  const scheme = /^\s*(https|wss)\s*:/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === 'https') {
    checkHttpsEndpoint(text, path);
    return { kind: 'https' };
  }
  if (scheme === 'wss') {
    checkWssEndpoint(text, path);
    return { kind: 'wss' };
  }
  if (/^[a-z][a-z0-9+.-]*:/i.test(text)) return { kind: 'other' };
  if (!/\/tcp(?:\/|$)/.test(text)) return { kind: 'other' };
  const address = parseTcpMultiaddr(text);
  if (address === 'layered') return { kind: 'other' };
  if (address === undefined) throw badRequest(path, 'malformed libp2p TCP address');
  return { kind: 'libp2p', address };
}

/**
 * Parses `/<family>/<host>/tcp/<port>/p2p/<peer-id>`. An address that carries further layers on
 * TCP, or goes through another peer, is another transport: `layered`. Everything else that has
 * `/tcp/` in it is malformed.
 */
function parseTcpMultiaddr(text: string): Libp2pAddress | 'layered' | undefined {
  const [empty, family = '', host = '', tcp, port = '', ...rest] = text.split('/');
  const goodPort = /^[1-9][0-9]{0,4}$/.test(port) && Number(port) <= 0xffff;
  if (empty !== '' || tcp !== 'tcp' || !goodPort || !isHost(family, host)) return undefined;
  const [p2p, id = '', next] = rest;
  if (p2p !== 'p2p') return p2p === undefined || p2p === '' ? undefined : 'layered';
  const peerId = parsePeerId(id);
  if (peerId === undefined) return undefined;
  if (next !== undefined) return next === 'p2p-circuit' ? 'layered' : undefined;
  return { family, host, port: Number(port), peerId };
}

/** Returns whether a host can exist in an address family of multiaddrs. */
export function isHost(family: string, host: string): boolean {
  switch (family) {
    case 'ip4':
      return isIpv4(host);
    case 'ip6':
      return /^[0-9A-Fa-f:.]+$/.test(host) && URL.canParse(`https://[${host}]/`);
    case 'dns':
    case 'dns4':
    case 'dns6':
    case 'dnsaddr':
      return isDomainName(host);
    default:
      return false;
  }
}

function isIpv4(text: string): boolean {
  const parts = text.split('.');
  return (
    parts.length === 4 &&
    parts.every((part) => /^(?:0|[1-9][0-9]{0,2})$/.test(part) && Number(part) <= 255)
  );
}

function isDomainName(text: string): boolean {
  if (text === '' || utf8Length(text) > 254 || /[@:%/[\]]/.test(text) || forbidden.test(text)) {
    return false;
  }
  const url = `https://${text}/`;
  return URL.canParse(url) && isHostOf(url, text);
}
