import type { Relay } from '../relay.ts';

/** Formats the line by which programs learn a running relay's addresses, without its line end. */
export function readyLine({ https, wss, relayId, network }: Relay): string {
  return ['ready', https[0], wss[0], relayId, network.context].join(' ');
}
