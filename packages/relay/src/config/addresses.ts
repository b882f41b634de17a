/** Derives addresses from the configuration: public defaults, certificate hosts, the peer address. */
import { isIP } from 'node:net';
import type { Network } from '@posthouse/protocol';
import type { RelayConfig } from './index.ts';
import { PublicAddresses } from './public-addresses.ts';

export interface ListenAddress {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Parses an address to listen on. */
export function listenAddress({ listen }: { readonly listen: string }): ListenAddress {
  const split = listen.lastIndexOf(':');
  const host = listen.slice(0, split).replace(/^\[|\]$/g, '');
  return { host, port: Number(listen.slice(split + 1)) };
}

/** Returns the public addresses; by default those the relay listens on, where port 0 is replaced. */
export function publicAddresses(network: Network, config: RelayConfig): PublicAddresses {
  const { https, wss } = config.public;
  const bases = https.length > 0 ? https : [`https://${config.listen}${network.pathPrefix}`];
  const sockets = wss.length > 0 ? wss : bases.map((base) => base.replace('https://', 'wss://'));
  const addresses = new PublicAddresses(bases, sockets);
  const { listen } = config.federation;
  const peerPort = listen === '' ? 0 : listenAddress({ listen }).port;
  if (peerPort > 0) addresses.setPeerPort(peerPort);
  return addresses;
}

/** Returns the host names of a development certificate. */
export function certificateHosts(config: RelayConfig): string[] {
  const named = config.public.https.map((address) => new URL(address).hostname);
  const hosts = [listenAddress(config).host, ...named, '127.0.0.1', '::1', 'localhost'];
  return [...new Set(hosts.map((host) => host.replace(/^\[|\]$/g, '')))];
}

/**
 * Returns the libp2p address that a descriptor must contain (01 EP1): the configured one, or the host
 * of the first HTTPS address.
 *
 * @param https the relay's first HTTPS address
 */
export function peerAddress(
  { public: { peer } }: Pick<RelayConfig, 'public'>,
  peerId: string,
  { https, port }: { readonly https: string; readonly port: number },
): string {
  const host = new URL(https).hostname.replace(/^\[|\]$/g, '');
  const version = isIP(host);
  const family = version === 0 ? 'dns' : `ip${version}`;
  return `${peer || `/${family}/${host}/tcp/${port}`}/p2p/${peerId}`;
}
