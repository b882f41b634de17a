/** Opens the registry that a relay is configured with: a file, or the contract on the chain. */
import { readFile } from 'node:fs/promises';
import { ChainRegistry, type Network, type RegistryNodes } from '@posthouse/protocol';
import type { RelayConfig } from '../../config/index.ts';
import { withName } from '../../config/with-name.ts';
import type { RelayContext } from '../../context.ts';
import type { LongWork } from '../../dispatch/long-work.ts';
import {
  registryNodeFailed,
  registryNodesDiffer,
  registryRecordsMalformed,
} from '../../observability/peer-events.ts';
import { FileRegistry } from './file.ts';
import { KeptRegistry } from './kept-registry.ts';
import { NodeHttp } from './node-http.ts';
import { registryPath } from './own-record.ts';

/** Whose turns of long work the reading of the registry takes. */
const owner = 'registry';

export interface RegistryParts extends Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'> {
  readonly network: Network;
  readonly longWork: LongWork;
  /** Closes the connections to nodes. */
  readonly parts: { defer(close: () => void): void };
}

type Config = Pick<RelayConfig, 'data' | 'registry' | 'federation'>;

/**
 * Opens the registry. Reads nothing yet.
 *
 * @throws Error if `federation.ca` cannot be read or is no PEM certificate
 */
export async function openRegistry(config: Config, parts: RegistryParts): Promise<KeptRegistry> {
  const { registry } = config;
  if (typeof registry === 'string') {
    const path = registryPath({ ...config, registry });
    const file = new FileRegistry(parts.network, path, (begin) =>
      parts.longWork.read(owner, begin),
    );
    return new KeptRegistry(file, parts, { version: () => file.version() });
  }
  const chain = await openChain(registry, config, parts);
  return new KeptRegistry(chain, parts, { isConfirming: registry.agree === 2 });
}

/** Opens the reader of the contract. @throws Error as {@link openRegistry} */
export async function openChain(
  nodes: RegistryNodes,
  { federation }: Pick<RelayConfig, 'federation'>,
  { network, clock, limits, longWork, parts, ...observed }: RegistryParts,
): Promise<ChainRegistry> {
  const { ca } = federation;
  const authority =
    ca === '' ? undefined : await withName('federation.ca', () => readFile(ca, 'utf8'));
  const http = await withName(
    'federation.ca',
    async () => new NodeHttp({ clock, limits, authority }),
  );
  parts.defer(() => http[Symbol.dispose]());
  const warnedAt = new Map<string, number>();
  return new ChainRegistry({
    ...nodes,
    network,
    post: http.post,
    limits: {
      listBytes: limits.federationRegistryBytes,
      // Malformed and repeated records count too, and one more relay tells that the limit is met.
      listItems: 2 * limits.federationRegistryRelays,
    },
    run: (steps) => longWork.read(owner, () => steps),
    observer: {
      failed: (node, error) => {
        const isNew = clock.now() - (warnedAt.get(node) ?? 0) >= limits.federationRegistryRefresh;
        if (isNew) warnedAt.set(node, clock.now());
        registryNodeFailed(observed, { node, error, isNew });
      },
      malformed: (node, count) => registryRecordsMalformed(observed, { node, count }),
      differed: (relay, both) => registryNodesDiffer(observed, { relay, nodes: both }),
    },
  });
}
