/** Creates what all parts of a relay share: storage, keys, bus, verifier, federation, jobs. */
import { Network } from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import type { Logger } from 'pino';
import { AccountFactsCache, LimitedRouteLookups } from './accounts/index.ts';
import { WaitingChallenges } from './auth/index.ts';
import { BlockList } from './blocks/index.ts';
import { systemClock } from './clock.ts';
import type { RelayConfig } from './config/index.ts';
import type { Bus, Clock, RelayContext } from './context.ts';
import { CryptoWorker } from './crypto/crypto-worker.ts';
import { WorkerKeySealer } from './crypto/key-sealer.ts';
import { LibsodiumEngine } from './crypto/libsodium.ts';
import { useLibsodium } from './crypto/use-libsodium.ts';
import { defaultVerifierLimits, SignatureVerifier } from './crypto/verifier.ts';
import { LongWork } from './dispatch/long-work.ts';
import { RelayQueryLimiter } from './dispatch/relay-query-limiter.ts';
import {
  Federation,
  type KeptRegistry,
  openRegistry,
  registryStatusOf,
} from './federation/index.ts';
import { JobBackoff } from './jobs/retry-backoff.ts';
import { JobRunner } from './jobs/runner.ts';
import { checkDataFolder } from './keys/data-folder.ts';
import { relayIdentity, type SigningIdentity } from './keys/identity.ts';
import { createKeys, loadKeys } from './keys/keys.ts';
import { openBus } from './notifications/open-bus.ts';
import { publishGap } from './notifications/publish-gap.ts';
import { StorageReach } from './notifications/storage-reach.ts';
import { createLog } from './observability/log.ts';
import { Metrics } from './observability/metrics.ts';
import { RestoreLosses } from './observability/restore-losses.ts';
import { openPolicy } from './policy/index.ts';
import { SessionCache } from './sessions/session-cache.ts';
import { DiskWatch, foldersOf } from './storage/disk-room.ts';
import { openObservedStorage } from './storage/observed.ts';
import type { StorageFaults } from './storage/types.ts';
import { DailyByteCounts } from './usage/index.ts';

export interface RelayOptions {
  /** Aborting it stops the relay, as disposing of it does. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Logger;
  /** Folder of the admin page; without it the one that was built. */
  readonly adminPage?: string;
  /** Storage faults for tests. */
  readonly faults?: StorageFaults;
}

export interface CreatedContext {
  readonly context: RelayContext;
  readonly sessions: SessionCache;
  readonly identity: SigningIdentity;
  readonly jobs: JobRunner;
  /** Not listening yet. */
  readonly federation: Federation;
  readonly registry: KeptRegistry;
  readonly longWork: LongWork;
  /** Not started yet. */
  readonly disk: DiskWatch;
}

/** Opens each part in order; `parts` closes them in reverse order. */
export async function createContext(
  config: RelayConfig,
  options: RelayOptions,
  parts: AsyncDisposableStack,
): Promise<CreatedContext> {
  const { clock = systemClock, random = nodeRandom } = options;
  const { log = createLog(config.log, undefined, config.logAddresses) } = options;
  const { network: context, service: word, limits, data } = config;
  const network = new Network({ context, word, primitives: nodePrimitives });
  const metrics = new Metrics();
  const observed = { log, metrics };
  let bus: Bus | undefined;
  let availability: StorageReach | undefined;
  let verifier: SignatureVerifier | undefined;
  // Opens storage first: its lock ensures that no other relay uses the data folder.
  const storage = parts.use(
    await openObservedStorage(config, {
      ...{ faults: options.faults, observed },
      // Most writes follow the verification of a signature.
      upcoming: () => verifier?.settled,
      unannounced: (aggregates) => publishGap(bus, aggregates),
      reachable: (isReachable) => availability?.update(isReachable),
    }),
  );
  const worker = parts.use(new CryptoWorker());
  const libsodium = new LibsodiumEngine(worker);
  void useLibsodium(observed, worker, libsodium);
  verifier = new SignatureVerifier(
    { ...defaultVerifierLimits, keys: limits.cachedKeys, texts: limits.verifiedTexts },
    libsodium,
  );
  if (config.dev) await createKeys(data, random);
  await checkDataFolder(data, observed);
  const identity = relayIdentity(network, await loadKeys(data));
  bus = await openBus(config, { network, relayId: identity.relayId, observed, parts });
  const probe = () => storage.read((tx) => tx.get('SELECT 1 AS one'));
  availability = parts.use(new StorageReach({ bus, probe }, observed));
  const disk = parts.use(new DiskWatch(foldersOf(config), { ...observed, clock, limits }));
  const blocks = new BlockList({ storage, clock });
  const sessions = parts.use(new SessionCache({ storage, clock, bus, limits, blocks }));
  const federation = new Federation();
  const jobs = parts.use(new JobRunner(config.bus.nats === '' ? 'alone' : 'shared'));
  const longWork = new LongWork();
  const registry = parts.use(
    await openRegistry(config, { ...observed, network, clock, limits, longWork, parts }),
  );
  const relayContext: RelayContext = {
    network,
    storage,
    clock,
    random,
    verifier,
    keySealer: new WorkerKeySealer(worker),
    limits,
    identity,
    routeDirectory: federation.routeDirectory,
    routeLookups: new LimitedRouteLookups({ clock, limits }),
    relayClient: federation.relayClient,
    registryStatus: registryStatusOf(registry, identity.relayId),
    relayQueries: new RelayQueryLimiter({ limits, clock }),
    bus,
    sessions,
    challenges: new WaitingChallenges({ clock, limits }),
    registration: { mode: config.registration },
    blocks,
    dailyBytes: new DailyByteCounts({ clock, limits, storage, log }),
    restoreLosses: new RestoreLosses({ clock, log, metrics }),
    policy: await openPolicy(config, { clock, limits, log, metrics, parts }),
    knownAccounts: new AccountFactsCache({ storage, limits }),
    availability,
    disk,
    jobs,
    backoff: new JobBackoff(),
    metrics,
    log,
  };
  return {
    ...{ context: relayContext, sessions, identity, jobs, federation, registry, longWork, disk },
  };
}
