/** The composition root: the one place that knows all parts. */
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Network } from '@posthouse/protocol';
import type { Random } from '@posthouse/protocol/crypto';
import { nodePrimitives, nodeRandom } from '@posthouse/protocol/node';
import type { Logger } from 'pino';
import { configuredDescriptor, hostedCapabilities } from './about/configured-descriptor.ts';
import { aboutModule } from './about/index.ts';
import { systemClock } from './clock.ts';
import { certificateHosts, listenAddress, publicAddresses } from './config/addresses.ts';
import { loadConfig, type PartialConfig, type RelayConfig } from './config/index.ts';
import type { Bus, Clock, RelayContext } from './context.ts';
import { ThreadPoolVerifier } from './crypto/verifier.ts';
import { Dispatcher } from './dispatch/dispatcher.ts';
import { combineModules } from './dispatch/module-set.ts';
import { RateLimiter } from './dispatch/rate-limiter.ts';
import {
  enterRelay,
  noRelayClient,
  noRoutes,
  readRegistry,
  registryStatusIn,
} from './federation/index.ts';
import { JobBackoff } from './jobs/retry-backoff.ts';
import { JobRunner } from './jobs/runner.ts';
import { relayIdentity } from './keys/identity.ts';
import { createKeys, loadKeys } from './keys/keys.ts';
import { relayMigrations, storedModules } from './modules.ts';
import { MemoryBus } from './notifications/bus.ts';
import { CatchUp } from './notifications/catch-up.ts';
import { ChannelListeners } from './notifications/channel-listeners.ts';
import { GroupListeners } from './notifications/group-listeners.ts';
import { Hub } from './notifications/hub.ts';
import { NatsBus } from './notifications/nats-bus.ts';
import { Turns } from './notifications/turns.ts';
import {
  busLost,
  busRestored,
  invalidNoticesReceived,
  noTrustedProxy,
  noticeFailed,
  noticesDropped,
  notRegistered,
  relayStarted,
  relayStopped,
  storageCommitUnknown,
  storageConflicted,
  storageLockLost,
  storageLost,
  storageRestored,
} from './observability/events.ts';
import { createLog } from './observability/log.ts';
import { Metrics } from './observability/metrics.ts';
import { Operations } from './operations/index.ts';
import { SessionCache } from './sessions/session-cache.ts';
import { bindDatabase } from './storage/identity.ts';
import { migrate } from './storage/migrations.ts';
import { checkInService } from './storage/move/mark.ts';
import { openStorage } from './storage/open.ts';
import type { StorageFaults } from './storage/types.ts';
import { devCertificate } from './tls/dev-ca.ts';
import { readCertificate } from './tls/files.ts';
import { CertificateRenewal } from './tls/renewal.ts';
import { ClientAddresses } from './transport/addresses.ts';
import { createHttp, type Http } from './transport/http.ts';
import { WebSocketTransport } from './transport/websocket.ts';

export interface RelayOptions {
  /** Aborting it stops the relay, as disposing of it does. */
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Logger;
  /** Where tests make storage fail. */
  readonly faults?: StorageFaults;
}

/**
 * A running relay.
 *
 * @example
 * await using relay = await Relay.start({ dev: true, data: folder, listen: '127.0.0.1:0' });
 * relay.https[0]; // 'https://127.0.0.1:49152/svc/v1'
 */
export class Relay implements AsyncDisposable {
  /** HTTPS base addresses, the registered one first. */
  readonly https: readonly string[];
  readonly wss: readonly string[];
  /** Address of /health and /metrics, where the configuration has one. */
  readonly operations: string | undefined;
  readonly context: RelayContext;
  /** Resolves once the relay has stopped, and rejects where stopping failed. */
  readonly closed: Promise<void>;
  readonly #parts: AsyncDisposableStack;
  readonly #closing = Promise.withResolvers<void>();

  private constructor(parts: AsyncDisposableStack, running: RunningParts) {
    this.#parts = parts;
    this.https = running.https;
    this.wss = running.wss;
    this.operations = running.operations;
    this.context = running.context;
    this.closed = this.#closing.promise;
    // Nobody has to wait for it.
    this.closed.catch(() => {});
  }

  /**
   * Opens storage, listens, and resolves when calls are answered.
   *
   * @throws ConfigError for a wrong configuration; Error for a folder in use, keys others can read,
   *   a port that is taken
   */
  static async start(values: PartialConfig, options: RelayOptions = {}): Promise<Relay> {
    const { config } = loadConfig({ values });
    options.signal?.throwIfAborted();
    await using parts = new AsyncDisposableStack();
    const running = await startParts(config, options, parts);
    const relay = new Relay(parts.move(), running);
    relayStarted(relay.context, relay);
    // Whoever waits for `closed` hears of a failure.
    const stop = () => void relay[Symbol.asyncDispose]().catch(() => {});
    options.signal?.addEventListener('abort', stop, { once: true });
    if (options.signal?.aborted) stop();
    return relay;
  }

  get relayId(): string {
    return this.context.identity.relayId;
  }

  get network(): Network {
    return this.context.network;
  }

  /** Stops accepting, answers what is under way, closes connections with 1001, flushes. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#parts.disposed) return this.closed;
    try {
      await this.#parts.disposeAsync();
      relayStopped(this.context);
      this.#closing.resolve();
    } catch (error) {
      this.#closing.reject(error);
    }
    return this.closed;
  }
}

interface RunningParts {
  readonly https: readonly string[];
  readonly wss: readonly string[];
  readonly operations: string | undefined;
  readonly context: RelayContext;
}

async function startParts(
  config: RelayConfig,
  options: RelayOptions,
  parts: AsyncDisposableStack,
): Promise<RunningParts> {
  const { clock = systemClock, random = nodeRandom, log = createLog(config.log) } = options;
  const { network: context, service: word, limits, data } = config;
  const network = new Network({ context, word, primitives: nodePrimitives });
  const metrics = new Metrics();
  const observed = { log, metrics };
  // The lock of the folder comes first: nothing in it is touched while another relay runs on it.
  const storage = parts.use(
    await openStorage(config, {
      faults: options.faults,
      observer: {
        lost: (error) => storageLost(observed, error),
        restored: () => storageRestored(observed),
        conflicted: () => storageConflicted(observed),
        commitUnknown: (error) => storageCommitUnknown(observed, error),
        lockLost: (error) => storageLockLost(observed, error),
      },
    }),
  );
  if (config.dev) await createKeys(data, random);
  const identity = relayIdentity(network, await loadKeys(data));
  const bus = await openBus(config, { network, relayId: identity.relayId, observed, parts });
  const jobs = parts.use(new JobRunner(config.bus.nats === '' ? 'alone' : 'together'));
  const relayContext: RelayContext = {
    network,
    storage,
    clock,
    random,
    verifier: new ThreadPoolVerifier(),
    limits,
    identity,
    routeDirectory: noRoutes,
    relayClient: noRelayClient,
    registryStatus: registryStatusIn(network, registryPath(config), identity.relayId),
    bus,
    sessions: parts.use(new SessionCache({ storage, clock, bus })),
    jobs,
    backoff: new JobBackoff(),
    metrics,
    log,
  };

  const addresses = publicAddresses(network, config);
  const descriptor = configuredDescriptor(config, { network, identity, clock, addresses });
  const modules = hostedCapabilities(config);
  const hosted = storedModules.filter(
    ({ capability }) => capability === undefined || modules.includes(capability),
  );
  const offer = combineModules([
    ...hosted,
    aboutModule({ name: config.name, descriptor, modules }),
  ]);
  await checkInService(storage);
  await migrate(storage, relayMigrations, clock.now());
  await bindDatabase(storage, { network: context, service: word, relay: identity.relayId });

  const dispatcher = new Dispatcher(relayContext, offer.handlers);
  const clients = new ClientAddresses(config.trustedProxies);
  const turns = new Turns();
  const subscribed = {
    group: parts.use(new GroupListeners(relayContext, turns)),
    channel: parts.use(new ChannelListeners(relayContext, turns)),
  };
  const hub = parts.use(new Hub(bus, subscribed));
  parts.use(new CatchUp(relayContext, { hub, ...offer }));
  const intake = new RateLimiter({
    rate: limits.addressBytes,
    burst: limits.addressBytesBurst,
    clock,
  });
  const transport = { context: relayContext, dispatcher, hub, addresses, clients, intake };
  const sockets = new WebSocketTransport(transport);
  const http = createHttp({
    ...transport,
    tls: config.tls.mode === 'off' ? undefined : await tlsFiles(config),
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head),
  });
  const { app } = http;
  parts.defer(() => stopServing(http, sockets, relayContext));
  if (config.tls.mode !== 'off') {
    const renew = async () => (app.server as TlsServer).setSecureContext(await tlsFiles(config));
    parts.use(new CertificateRenewal(relayContext, renew));
  }
  await app.listen(listenAddress(config));
  addresses.listensOn((app.server.address() as AddressInfo).port);
  if (config.tls.mode === 'off' && config.trustedProxies.length === 0) {
    noTrustedProxy(relayContext);
  }
  await useRegistry(config, relayContext, addresses.https[0] as string);
  jobs.start(relayContext, offer.jobs);
  const { listen } = config.operations;
  const operations =
    listen === '' ? undefined : parts.use(await Operations.listen(relayContext, listen));
  return {
    https: addresses.https,
    wss: addresses.wss,
    operations: operations?.address,
    context: relayContext,
  };
}

async function openBus(
  { bus: { nats }, network: context }: RelayConfig,
  {
    network,
    relayId,
    observed,
    parts,
  }: {
    readonly network: Network;
    readonly relayId: string;
    readonly observed: Pick<RelayContext, 'log' | 'metrics'>;
    readonly parts: AsyncDisposableStack;
  },
): Promise<Bus> {
  const failed = (error: unknown) => noticeFailed(observed, error);
  if (nats === '') return new MemoryBus(failed);
  return parts.use(
    await NatsBus.start({
      url: nats,
      subject: `posthouse.${context}.${network.word}.${relayId}.notices`,
      observer: {
        failed,
        lost: (error) => busLost(observed, error),
        back: () => busRestored(observed),
        dropped: (count) => noticesDropped(observed, count),
        refused: (count) => invalidNoticesReceived(observed, count),
      },
    }),
  );
}

/** Both sides at once: an HTTP server closes only when its upgraded connections are gone too. */
async function stopServing(
  { app, terminate }: Http,
  sockets: WebSocketTransport,
  { clock, limits }: RelayContext,
): Promise<void> {
  using _grace = clock.after(limits.stopGrace, terminate);
  await Promise.all([app.close(), sockets[Symbol.asyncDispose]()]);
}

/** Certificates are for TLS peers, which live in real time whatever clock the relay runs on. */
async function tlsFiles(config: RelayConfig): Promise<{ cert: string; key: string }> {
  const { mode, certificate, key } = config.tls;
  if (mode === 'dev')
    return devCertificate(config.data, certificateHosts(config), systemClock.now());
  return readCertificate(certificate, key);
}

/** A development relay enters itself into its registry; any other looks whether it is there. */
async function useRegistry(
  config: RelayConfig,
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
  if (registry === undefined && config.registry !== '') throw new Error(`${path}: is not there`);
  if (!(await context.registryStatus.isActive())) notRegistered(context, path);
}

function registryPath(config: RelayConfig): string {
  return config.registry || join(config.data, 'registry.json');
}
