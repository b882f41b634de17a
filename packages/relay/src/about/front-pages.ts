/** The page for people and the documents for programs. */
import type { Network } from '@posthouse/protocol';
import type { RelayConfig } from '../config/index.ts';
import type { PublicAddresses } from '../config/public-addresses.ts';
import type { RelayLimits } from '../limits.ts';
import { openApi, openRpc } from './api-documents.ts';
import { frontPage, pagePolicy } from './front-page.ts';
import { softwareOf } from './software.ts';

export interface FrontPages {
  /** Headers of each of them. */
  readonly headers: Readonly<Record<string, string>>;
  page(): string;
  openRpc(): string;
  openApi(): string;
}

/**
 * Makes the documents at their first request: only then are all addresses known. The page is made for each
 * request, because a reload of the configuration changes limits that it names.
 */
export function frontPages(
  config: RelayConfig,
  {
    network,
    limits,
    relayId,
    addresses,
    hasMessenger = false,
  }: {
    readonly network: Network;
    /** Those in force. */
    readonly limits: RelayLimits;
    readonly relayId: string;
    readonly addresses: PublicAddresses;
    /** Whether the relay serves the messenger. */
    readonly hasMessenger?: boolean;
  },
): FrontPages {
  const software = softwareOf(config.about);
  // Both forms of document need a version.
  const version = software?.split(' ')[1] ?? 'not stated';
  const api = () => ({
    ...{ name: config.name, version, sessionHeader: network.sessionHeader },
    ...{ https: addresses.https, wss: addresses.wss },
  });
  return {
    headers: { 'content-security-policy': pagePolicy, 'referrer-policy': 'no-referrer' },
    page: () =>
      frontPage({
        config: { ...config, limits },
        ...{ relayId, software, https: addresses.https, hasMessenger },
      }),
    openRpc: once(() => JSON.stringify(openRpc(api()))),
    openApi: once(() => JSON.stringify(openApi(api()))),
  };
}

function once(make: () => string): () => string {
  let text: string | undefined;
  return () => (text ??= make());
}
