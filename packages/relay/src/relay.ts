/** The composition root: creates and connects all parts of a relay. */
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Network } from '@posthouse/protocol';
import { configuredDescriptor, hostedCapabilities } from './about/configured-descriptor.ts';
import { aboutModule, type DescriptorSource } from './about/index.ts';
import { remindOfRights } from './accounts/index.ts';
import { type Blobs, blobRetentionJob, openBlobs } from './blobs/index.ts';
import { listenAddress, publicAddresses } from './config/addresses.ts';
import { ConfigError, loadConfig, type PartialConfig, type RelayConfig } from './config/index.ts';
import type { PublicAddresses } from './config/public-addresses.ts';
import { withName } from './config/with-name.ts';
import type { RelayContext } from './context.ts';
import { type CreatedContext, createContext, type RelayOptions } from './create-context.ts';
import { Dispatcher } from './dispatch/dispatcher.ts';
import type { LongWork } from './dispatch/long-work.ts';
import { combineModules, type ModuleSet } from './dispatch/module-set.ts';
import { useRegistry } from './federation/index.ts';
import { ClockGuard } from './jobs/clock-guard.ts';
import type { JobRunner } from './jobs/runner.ts';
import { checkMemory, processMemory } from './memory.ts';
import { releaseDeliveries } from './messages/index.ts';
import { relayMigrations, storedModules } from './modules.ts';
import { ChannelListeners } from './notifications/channel-listeners.ts';
import { ConnectionResync } from './notifications/connection-resync.ts';
import { FairScheduler } from './notifications/fair-scheduler.ts';
import { GroupListeners } from './notifications/group-listeners.ts';
import { Hub } from './notifications/hub.ts';
import { SessionEndsReader } from './notifications/session-ends.ts';
import { noTrustedProxy, relayStarted, relayStopped } from './observability/events.ts';
import { noPeerListener } from './observability/peer-events.ts';
import { Operations } from './operations/index.ts';
import type { SessionCache } from './sessions/session-cache.ts';
import { bindDatabase } from './storage/identity.ts';
import { checkInService } from './storage/move/mark.ts';
import { readRestoredAt } from './storage/restored.ts';
import { spaceJob } from './storage/space-job.ts';
import { upgradeDatabase } from './storage/upgrade.ts';
import { type TlsFiles, tlsFiles } from './tls/configured-files.ts';
import { CertificateRenewal } from './tls/renewal.ts';
import { ByteAccounts } from './transport/byte-accounts.ts';
import { ClientAddresses } from './transport/client-addresses.ts';
import { ConnectionTable } from './transport/connection-table.ts';
import { createHttp, type Http } from './transport/http.ts';
import { Transfers } from './transport/transfers.ts';
import { WebSocketTransport } from './transport/websocket.ts';

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
  /** Port for other relays; `undefined` if the relay is alone. */
  readonly peerPort: number | undefined;
  /** Address of /health and /metrics, if configured. */
  readonly operations: string | undefined;
  readonly context: RelayContext;
  /** Resolves when the relay has stopped; rejects if stopping failed. */
  readonly closed: Promise<void>;
  readonly #parts: AsyncDisposableStack;
  readonly #jobs: JobRunner;
  readonly #closing = Promise.withResolvers<void>();

  private constructor(parts: AsyncDisposableStack, running: RunningParts) {
    this.#parts = parts;
    this.https = running.https;
    this.wss = running.wss;
    this.peerPort = running.peerPort;
    this.operations = running.operations;
    this.context = running.context;
    this.#jobs = running.jobs;
    this.closed = this.#closing.promise;
    // Awaiting it is optional.
    this.closed.catch(() => {});
  }

  /**
   * Opens storage, listens, and resolves when calls are answered.
   *
   * @throws ConfigError if the configuration is invalid; Error if the data folder is in use, others
   *   can read the keys, or the port is taken
   */
  static async start(values: PartialConfig, options: RelayOptions = {}): Promise<Relay> {
    const memory = processMemory();
    const { config } = loadConfig({ values, memory });
    const problems = checkMemory(config.limits, memory);
    if (problems.length > 0) throw new ConfigError(problems);
    options.signal?.throwIfAborted();
    await using parts = new AsyncDisposableStack();
    const running = await startParts(config, options, parts);
    const relay = new Relay(parts.move(), running);
    relayStarted(relay.context, relay);
    // A failure rejects `closed`.
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

  /** Runs every job soon. Call it after the relay's clock was moved: deadlines may have passed. */
  wakeJobs(): void {
    this.#jobs.wakeAll();
  }

  /** Stops accepting, answers requests in progress, closes connections with 1001, flushes. */
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
  readonly peerPort: number | undefined;
  readonly operations: string | undefined;
  readonly context: RelayContext;
  readonly jobs: JobRunner;
}

/** Starts every part in order; `parts` stops them in reverse order. */
async function startParts(
  config: RelayConfig,
  options: RelayOptions,
  parts: AsyncDisposableStack,
): Promise<RunningParts> {
  const created = await createContext(config, options, parts);
  const { context, sessions, identity, jobs, federation, longWork } = created;
  const { network, clock } = context;
  const addresses = publicAddresses(network, config);
  const descriptor = configuredDescriptor(config, { network, identity, clock, addresses });
  await prepareDatabase(config, context);
  const restoredAt = await context.storage.read(readRestoredAt);
  const modules = hostedModules(config, descriptor, restoredAt);
  const tls = config.tls.mode === 'off' ? undefined : await tlsFiles(config);
  const peerPort = await joinFederation(config, created, { descriptor, modules, addresses, parts });
  const blobs = await openBlobs(config, context);
  await created.disk.start();
  await serve(config, { context, sessions, modules, addresses, tls, longWork, blobs, parts });
  const endpoint = addresses.https[0] as string;
  await useRegistry(config, context, { endpoint, registry: created.registry });
  await remindOfRights(context);
  if (!context.bus.isShared) await releaseDeliveries(context);
  federation.start();
  const guard = new ClockGuard(context);
  await guard.start();
  const ownJobs = blobs === undefined ? [] : [blobRetentionJob(blobs.folder)];
  jobs.start(
    context,
    [guard.job, spaceJob, ...modules.jobs, ...federation.jobs, ...ownJobs],
    guard,
  );
  const { listen } = config.operations;
  const operations =
    listen === ''
      ? undefined
      : parts.use(await withName('operations.listen', () => Operations.listen(context, listen)));
  return {
    https: addresses.https,
    wss: addresses.wss,
    peerPort,
    operations: operations?.address,
    context,
    jobs,
  };
}

/** Combines the modules that the configuration enables. */
function hostedModules(
  config: RelayConfig,
  descriptor: DescriptorSource,
  restoredAt: number | undefined,
): ModuleSet {
  const modules = hostedCapabilities(config);
  const hosted = storedModules.filter(
    ({ capability }) => capability === undefined || modules.includes(capability),
  );
  return combineModules([
    ...hosted,
    aboutModule({ name: config.name, descriptor, modules, restoredAt }),
  ]);
}

/** Migrates the database and binds it to this relay; refuses one that was moved. */
async function prepareDatabase(config: RelayConfig, context: RelayContext): Promise<void> {
  const { network, service } = config;
  const { storage, identity } = context;
  await checkInService(storage);
  await upgradeDatabase(context, config, relayMigrations);
  await bindDatabase(storage, { network, service, relay: identity.relayId });
}

/** Listens for other relays, unless the operator wants the relay to be alone; returns the port. */
async function joinFederation(
  config: RelayConfig,
  { context, identity, federation, registry, longWork }: CreatedContext,
  {
    descriptor,
    modules,
    addresses,
    parts,
  }: {
    readonly descriptor: DescriptorSource;
    readonly modules: ModuleSet;
    readonly addresses: PublicAddresses;
    readonly parts: AsyncDisposableStack;
  },
): Promise<number | undefined> {
  if (config.federation.listen === '') {
    noPeerListener(context);
    return undefined;
  }
  parts.use(federation);
  const port = await federation.listen(context, {
    config,
    registry,
    peer: identity.peer,
    descriptor: () => descriptor.current(),
    handlers: modules.relayHandlers,
    longWork,
  });
  addresses.setPeerPort(port);
  return port;
}

/** Serves the client API over HTTP and WebSocket. */
async function serve(
  config: RelayConfig,
  {
    context,
    sessions,
    modules,
    addresses,
    tls,
    longWork,
    blobs,
    parts,
  }: {
    readonly context: RelayContext;
    readonly sessions: SessionCache;
    readonly modules: ModuleSet;
    readonly addresses: PublicAddresses;
    readonly tls: TlsFiles | undefined;
    readonly longWork: LongWork;
    readonly blobs: Blobs | undefined;
    readonly parts: AsyncDisposableStack;
  },
): Promise<void> {
  const clients = new ClientAddresses(config.trustedProxies);
  const scheduler = new FairScheduler(context.clock);
  const listeners = {
    group: parts.use(new GroupListeners(context, scheduler)),
    channel: parts.use(new ChannelListeners(context, scheduler)),
  };
  const hub = parts.use(new Hub(context.bus, listeners));
  parts.use(new ConnectionResync(context, { hub, ...modules }));
  await parts.use(new SessionEndsReader(context, { hub, sessions })).start();
  const transport = {
    context,
    hub,
    addresses,
    dispatcher: new Dispatcher(context, modules.handlers, longWork),
    clients,
    bytes: new ByteAccounts(context),
    open: new ConnectionTable({ context, clients }),
  };
  const sockets = new WebSocketTransport(transport);
  const http = createHttp({
    ...transport,
    ...{ tls, blobs, transfers: new Transfers(context) },
    upgrade: (request, socket, head) => sockets.upgrade(request, socket, head),
  });
  const { app } = http;
  parts.defer(() => stopServing(http, sockets, context));
  if (config.tls.mode !== 'off') {
    const renew = async () => (app.server as TlsServer).setSecureContext(await tlsFiles(config));
    parts.use(new CertificateRenewal(context, renew));
  }
  await withName('listen', () => app.listen(listenAddress(config)));
  addresses.setPort((app.server.address() as AddressInfo).port);
  if (config.tls.mode === 'off' && config.trustedProxies.length === 0) noTrustedProxy(context);
}

/** Stops both transports at once: an HTTP server closes only after its upgraded connections. */
async function stopServing(
  { app, terminate }: Http,
  sockets: WebSocketTransport,
  { clock, limits }: RelayContext,
): Promise<void> {
  using _grace = clock.after(limits.stopGrace, terminate);
  await Promise.all([app.close(), sockets[Symbol.asyncDispose]()]);
}
