/** Derives addresses from the configuration: public defaults, certificate hosts, the peer address. */
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

/** Returns the public addresses; by default those the relay listens on. */
export function publicAddresses(network: Network, config: RelayConfig): PublicAddresses {
  const { https, wss } = config.public;
  const bases = https.length > 0 ? https : [`https://${config.listen}${network.pathPrefix}`];
  const sockets = wss.length > 0 ? wss : bases.map((base) => base.replace('https://', 'wss://'));
  return new PublicAddresses(bases, sockets);
}

/** Returns the host names of a development certificate. */
export function certificateHosts(config: RelayConfig): string[] {
  const named = config.public.https.map((address) => new URL(address).hostname);
  const hosts = [listenAddress(config).host, ...named, '127.0.0.1', '::1', 'localhost'];
  return [...new Set(hosts.map((host) => host.replace(/^\[|\]$/g, '')))];
}

/**
 * Returns the libp2p address that a descriptor must contain (01 EP1). Nothing listens there in this
 * release; by default it has the port after the relay's own.
 */
export function peerAddress(config: RelayConfig, peerId: string, port: number): string {
  const neighbour = port < 65_535 ? port + 1 : port - 1;
  return `${config.public.peer || `/ip4/127.0.0.1/tcp/${neighbour}`}/p2p/${peerId}`;
}
