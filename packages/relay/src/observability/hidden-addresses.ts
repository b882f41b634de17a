/** Texts of errors without the addresses of others. */
import { BlockList, isIP } from 'node:net';
import { pino } from 'pino';

/** What may be an address of IPv4 or IPv6. */
const addressLike = /\b\d{1,3}(?:\.\d{1,3}){3}\b|(?<![\w:])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}/gi;

/** Networks that the operator's own servers are in: a database or NATS that is away has to be found. */
const ownNetworks = new BlockList();
for (const [network, length, family] of [
  ['10.0.0.0', 8, 'ipv4'],
  ['127.0.0.0', 8, 'ipv4'],
  ['172.16.0.0', 12, 'ipv4'],
  ['192.168.0.0', 16, 'ipv4'],
  ['::', 127, 'ipv6'],
  ['fc00::', 7, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
] as const) {
  ownNetworks.addSubnet(network, length, family);
}

/**
 * Replaces the public addresses in a text.
 *
 * @example
 * hideAddresses('connect ECONNREFUSED 203.0.113.5:4201'); // 'connect ECONNREFUSED [address]:4201'
 */
export function hideAddresses(text: string): string {
  return text.replaceAll(addressLike, (found) => {
    const family = isIP(found);
    if (family !== 0) return isOwn(found, family) ? found : '[address]';
    // `2001:db8::7:4201` is one address of IPv6; `2001:db8::7:` has the colon of the sentence.
    const plain = found.replace(/:$/, '');
    const isAddress = isIP(plain) === 6 && !isOwn(plain, 6);
    return isAddress ? `[address]${found.slice(plain.length)}` : found;
  });
}

const isOwn = (address: string, family: number) =>
  ownNetworks.check(address, family === 4 ? 'ipv4' : 'ipv6');

/** Formats an error for the log without the public addresses that the system put into it. */
export function errorWithoutAddresses(error: unknown): unknown {
  if (!(error instanceof Error)) return typeof error === 'string' ? hideAddresses(error) : error;
  const facts: Record<string, unknown> = { ...pino.stdSerializers.err(error) };
  for (const [name, value] of Object.entries(facts)) {
    if (typeof value === 'string') facts[name] = hideAddresses(value);
  }
  return facts;
}
