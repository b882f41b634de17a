/** What the configuration says of the network's relays. */
import type { AppConfig } from '../app-config.ts';

interface ListedRelay {
  readonly relay_id: string;
  readonly endpoint: string;
}

/** The relays of a registry's file; none if the registry is on a chain. */
export function listedRelays({ registry }: AppConfig): readonly ListedRelay[] {
  const { relays = [] } = registry as { readonly relays?: readonly Partial<ListedRelay>[] };
  return relays.flatMap(({ relay_id, endpoint }) =>
    typeof relay_id === 'string' && typeof endpoint === 'string' && URL.canParse(endpoint)
      ? [{ relay_id, endpoint }]
      : [],
  );
}

/**
 * Where a relay has its page for people; `undefined` if this page does not know the relay's address. The
 * relay that serves this page is at its origin.
 */
export function relayPage(config: AppConfig, relayId: string): string | undefined {
  const listed = listedRelays(config).find(({ relay_id }) => relay_id === relayId);
  if (listed !== undefined) return new URL('/', listed.endpoint).href;
  return relayId === config.relayId ? new URL('/', location.href).href : undefined;
}
