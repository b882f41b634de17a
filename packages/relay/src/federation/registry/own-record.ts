import { join } from 'node:path';
import type { RelayConfig } from '../../config/index.ts';
import type { RelayContext } from '../../context.ts';
import { notRegistered } from '../../observability/events.ts';
import { otherEndpointRegistered } from '../../observability/peer-events.ts';
import { enterRelay, readRegistry } from './file.ts';

/** Enters a development relay into its registry; checks that any other relay is listed. */
export async function useRegistry(
  config: Pick<RelayConfig, 'data' | 'dev' | 'registry'>,
  context: RelayContext,
  endpoint: string,
): Promise<void> {
  const { network, identity, clock } = context;
  const path = registryPath(config);
  if (config.dev) {
    await enterRelay(network, path, {
      relay_id: identity.relayId,
      endpoint,
      status: 'active',
      updated_at: clock.now() * 1_000,
    });
    return;
  }
  const registry = await readRegistry(network, path);
  if (registry === undefined && config.registry !== '')
    throw new Error(`${path}: does not exist; check the setting \`registry\``);
  // What this relay remembers of its record may be older than the file.
  const entry = await registry?.getRelay(identity.relayId);
  if (entry?.status !== 'active') notRegistered(context, path);
  else if (entry.endpoint !== endpoint) {
    otherEndpointRegistered(context, { registry: path, registered: entry.endpoint, own: endpoint });
  }
}

/** Returns the path of the registry file. */
export function registryPath(config: Pick<RelayConfig, 'data' | 'registry'>): string {
  return config.registry || join(config.data, 'registry.json');
}
