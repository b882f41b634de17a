/** The page for people and the documents for programs, each made once. */
import type { Network } from '@posthouse/protocol';
import manifest from '#package.json' with { type: 'json' };
import type { RelayConfig } from '../config/index.ts';
import type { PublicAddresses } from '../config/public-addresses.ts';
import { openApi, openRpc } from './api-documents.ts';
import { frontPage, pagePolicy } from './front-page.ts';

export interface FrontPages {
  /** Headers of each of them. */
  readonly headers: Readonly<Record<string, string>>;
  page(): string;
  openRpc(): string;
  openApi(): string;
}

/** Makes each text at its first request: only then are all addresses known. */
export function frontPages(
  config: RelayConfig,
  {
    network,
    relayId,
    addresses,
  }: {
    readonly network: Network;
    readonly relayId: string;
    readonly addresses: PublicAddresses;
  },
): FrontPages {
  const { version } = manifest;
  const api = () => ({
    ...{ name: config.name, version, sessionHeader: network.sessionHeader },
    ...{ https: addresses.https, wss: addresses.wss },
  });
  return {
    headers: { 'content-security-policy': pagePolicy, 'referrer-policy': 'no-referrer' },
    page: once(() => frontPage({ config, relayId, version, https: addresses.https })),
    openRpc: once(() => JSON.stringify(openRpc(api()))),
    openApi: once(() => JSON.stringify(openApi(api()))),
  };
}

function once(make: () => string): () => string {
  let text: string | undefined;
  return () => (text ??= make());
}
