import { join } from 'node:path';
import type { RelayEntry } from '@posthouse/protocol';
import type { RelayConfig } from '../../config/index.ts';
import type { RelayContext } from '../../context.ts';
import { notRegistered } from '../../observability/events.ts';
import { otherEndpointRegistered } from '../../observability/peer-events.ts';
import { enterRelay, readRegistry } from './file.ts';
import type { KeptRegistry } from './kept-registry.ts';

/**
 * Enters a development relay into its registry file; checks that any other relay is listed. A registry
 * on the chain is read meanwhile: a relay starts while all nodes are away.
 */
export async function useRegistry(
  config: Pick<RelayConfig, 'data' | 'dev' | 'registry'>,
  context: RelayContext,
  { endpoint, registry }: { readonly endpoint: string; readonly registry: KeptRegistry },
): Promise<void> {
  if (typeof config.registry === 'string') {
    await useFile({ ...config, registry: config.registry }, context, endpoint);
  } else void warnOfOwnRecord(context, { endpoint, registry });
}

async function useFile(
  config: FileConfig & Pick<RelayConfig, 'dev'>,
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
  warn(context, { registry: path, endpoint, entry: await registry?.getRelay(identity.relayId) });
}

/** Warns if the chain does not have this relay as it is configured. Never rejects. */
async function warnOfOwnRecord(
  context: RelayContext,
  { endpoint, registry }: { readonly endpoint: string; readonly registry: KeptRegistry },
): Promise<void> {
  const { network, identity } = context;
  try {
    const entry = await registry.current(identity.relayId);
    warn(context, { registry: network.registry, endpoint, entry });
  } catch {
    // The job that refreshes the registry reports that it cannot be read.
  }
}

function warn(
  context: RelayContext,
  {
    registry,
    endpoint,
    entry,
  }: {
    /** Path of the file, or hash of the contract. */
    readonly registry: string;
    readonly endpoint: string;
    readonly entry: RelayEntry | undefined;
  },
): void {
  if (entry?.status !== 'active') notRegistered(context, registry);
  else if (entry.endpoint !== endpoint) {
    otherEndpointRegistered(context, { registry, registered: entry.endpoint, own: endpoint });
  }
}

/** What a registry has of this relay, in words for its operator. */
export interface OwnRecordFinding {
  readonly isGood: boolean;
  readonly seen: string;
  /** What to do; absent if all is good. */
  readonly cure?: string;
}

/**
 * Says what is wrong with this relay's own record, and what to do (07 §A3, §A7).
 *
 * @param entry the record of any status; `undefined` if the relay was never registered
 * @param own the first HTTPS address, and where the registry is
 */
export function ownRecordFinding(
  entry: RelayEntry | undefined,
  own: { readonly endpoint: string; readonly kind: 'file' | 'chain' },
): OwnRecordFinding {
  const change = (task: string, inFile: string) =>
    own.kind === 'file'
      ? `${inFile} in the registry file`
      : `posthouse registry invocation ${task}`;
  if (entry === undefined) {
    return {
      isGood: false,
      seen: 'the registry has no record of this relay',
      cure: change('register', 'enter it'),
    };
  }
  if (entry.status === 'suspended') {
    const restored = change('enable', 'set its status to active');
    return {
      isGood: false,
      seen: 'the governance of the registry suspended this relay',
      cure: `ask the governance to restore it, then: ${restored}`,
    };
  }
  if (entry.status === 'disabled') {
    return {
      isGood: false,
      seen: 'this relay is registered and disabled',
      cure: change('enable', 'set its status to active'),
    };
  }
  if (entry.endpoint !== own.endpoint) {
    return {
      isGood: false,
      seen: `the registered address is ${entry.endpoint}, the configured one is ${own.endpoint}`,
      cure: `${change('update-endpoint', 'change the address')}, or change public.https`,
    };
  }
  return { isGood: true, seen: `this relay is active at ${entry.endpoint}` };
}

type FileConfig = Pick<RelayConfig, 'data'> & { readonly registry: string };

/** Returns the path of the registry file. */
export function registryPath(config: FileConfig): string {
  return config.registry || join(config.data, 'registry.json');
}
