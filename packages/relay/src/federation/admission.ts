/** Opens the part of the federation that decides which relays are admitted. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RelayConfig } from '../config/index.ts';
import { withName } from '../config/with-name.ts';
import type { Job, RelayContext } from '../context.ts';
import { AddressFilter } from './address-filter.ts';
import { DescriptorFetcher } from './descriptor-fetch.ts';
import { Descriptors } from './descriptors.ts';
import { Eligibility } from './eligibility.ts';
import { federationJobs } from './jobs.ts';
import { PeerFaults } from './peer-faults.ts';
import { PeerSet } from './peer-set.ts';
import type { KeptRegistry } from './registry/kept-registry.ts';
import { readRecords } from './store.ts';

export interface Admission extends AsyncDisposable {
  readonly eligibility: Eligibility;
  /** Counts what admitted relays do against the protocol. */
  readonly faults: PeerFaults;
  /** For addresses to dial. */
  readonly filter: AddressFilter;
  readonly jobs: readonly Job[];
}

type Config = Pick<RelayConfig, 'federation' | 'dev' | 'data' | 'tls'>;

/**
 * Opens admission on the migrated database of a relay. It ends the descriptor fetches under way when
 * it is disposed of, which must be before the jobs are.
 *
 * @throws Error if the file of `federation.ca` cannot be read or is no PEM certificate
 */
export async function openAdmission(
  context: RelayContext,
  { config, registry }: { readonly config: Config; readonly registry: KeptRegistry },
): Promise<Admission> {
  const { clock, limits, storage } = context;
  const { allowPrivate, registryGrace } = config.federation;
  const since = clock.now() - limits.federationRegistryRefresh;
  registry.restore(await storage.read((tx) => readRecords(tx, since)));
  const filter = new AddressFilter({ allowPrivate });
  const fetcher = await withName('federation.ca', async () => {
    const authority = await readAuthority(config);
    return new DescriptorFetcher({ clock, limits, filter, authority });
  });
  const descriptors = new Descriptors(context, fetcher);
  const peers = new PeerSet(context);
  const faults = new PeerFaults(context, (relayId) => peers.drop(relayId, 'misbehaviour'));
  const parts = { registry, descriptors, peers, faults };
  const eligibility = new Eligibility(context, parts);
  return {
    eligibility,
    faults,
    filter,
    jobs: federationJobs({ ...parts, eligibility, registryGrace }),
    [Symbol.asyncDispose]: () => descriptors[Symbol.asyncDispose](),
  };
}

/** Reads the authority of a private network; by default, in development, the relay's own. */
export async function readAuthority({
  federation,
  dev,
  data,
  tls,
}: Pick<RelayConfig, 'federation' | 'dev' | 'data' | 'tls'>): Promise<string | undefined> {
  if (federation.ca !== '') return await readFile(federation.ca, 'utf8');
  if (!dev || tls.mode !== 'dev') return undefined;
  return await readFile(join(tls.authority || join(data, 'tls'), 'ca.pem'), 'utf8');
}
