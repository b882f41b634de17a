/** The composition root: creates and connects all parts of a relay. */
import type { Network } from '@posthouse/protocol';
import manifest from '#package.json' with { type: 'json' };
import { configuredDescriptor, hostedCapabilities } from './about/configured-descriptor.ts';
import { aboutModule, type DescriptorSource } from './about/index.ts';
import { remindOfRights } from './accounts/index.ts';
import { openAdminInterface } from './admin/index.ts';
import { blobRetentionJob, openBlobs } from './blobs/index.ts';
import { publicAddresses } from './config/addresses.ts';
import { ConfigError, loadConfig, type PartialConfig, type RelayConfig } from './config/index.ts';
import type { PublicAddresses } from './config/public-addresses.ts';
import { withName } from './config/with-name.ts';
import type { RelayContext } from './context.ts';
import { type CreatedContext, createContext, type RelayOptions } from './create-context.ts';
import { combineModules, type ModuleSet } from './dispatch/module-set.ts';
import { registryFileJob, useRegistry } from './federation/index.ts';
import { ClockGuard } from './jobs/clock-guard.ts';
import type { JobRunner } from './jobs/runner.ts';
import { checkMemory, processMemory } from './memory.ts';
import { releaseDeliveries } from './messages/index.ts';
import { relayMigrations, storedModules } from './modules.ts';
import { configurationNotReloaded, relayStarted, relayStopped } from './observability/events.ts';
import { noPeerListener } from './observability/peer-events.ts';
import { processFiles } from './open-files.ts';
import { countsJob } from './operations/counts-job.ts';
import { Operations } from './operations/index.ts';
import type { Reload, Reloaded } from './operations/reload.ts';
import { serveClients } from './serve-clients.ts';
import { bindDatabase } from './storage/identity.ts';
import { checkInService } from './storage/move/mark.ts';
import { readRestoredAt } from './storage/restored.ts';
import { spaceJob } from './storage/space-job.ts';
import { upgradeDatabase } from './storage/upgrade.ts';
import { type TlsFiles, tlsFiles } from './tls/configured-files.ts';
import { dailyBytesJob } from './usage/index.ts';

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
  #isStopping = false;
  readonly #jobs: JobRunner;
  readonly #operations: Operations | undefined;
  readonly #reload: Reload;
  readonly #closing = Promise.withResolvers<void>();

  private constructor(parts: AsyncDisposableStack, running: RunningParts) {
    this.#parts = parts;
    this.https = running.https;
    this.wss = running.wss;
    this.peerPort = running.peerPort;
    this.#operations = running.operations;
    this.operations = running.operations?.address;
    this.context = running.context;
    this.#jobs = running.jobs;
    this.#reload = running.reload;
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
    const config = checkedConfig(values);
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

  /**
   * Takes over a changed configuration: certificate files, trusted proxies, most limits and the log
   * level; registry and blocks are read again. Nothing is changed if it throws.
   *
   * @returns the settings that changed, and those of them that need a restart
   * @throws ConfigError if the configuration is invalid; Error if the certificate files are unusable
   * @example
   * const { needRestart } = await relay.reload({ ...values, trustedProxies: ['10.0.0.2'] });
   */
  async reload(values: PartialConfig): Promise<Reloaded> {
    return await this.#reload.apply(checkedConfig(values));
  }

  /** As {@link reload}, with what `load` returns; a failure of either is logged, and changes nothing. */
  async reloadOr(load: () => PartialConfig): Promise<void> {
    try {
      await this.reload(load());
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems : [String(error)];
      configurationNotReloaded(this.context, problems);
    }
  }

  /** Runs every job soon. Call it after the relay's clock was moved: deadlines may have passed. */
  wakeJobs(): void {
    this.#jobs.wakeAll();
  }

  /** Stops accepting, answers requests in progress, closes connections with 1001, flushes. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isStopping) return this.closed;
    this.#isStopping = true;
    try {
      await this.#drain();
      await this.#parts.disposeAsync();
      relayStopped(this.context);
      this.#closing.resolve();
    } catch (error) {
      this.#closing.reject(error);
    }
    return this.closed;
  }

  /** Says that it is not ready, and serves on until balancers have noticed. */
  async #drain(): Promise<void> {
    this.#operations?.setReady(false);
    const { clock, limits } = this.context;
    if (this.#operations === undefined || limits.drainTime === 0) return;
    await new Promise<void>((resolve) => void clock.after(limits.drainTime, resolve));
  }
}

/** @throws ConfigError */
function checkedConfig(values: PartialConfig): RelayConfig {
  const memory = processMemory();
  const { config } = loadConfig({ values, memory, openFiles: processFiles() });
  const problems = checkMemory(config.limits, memory);
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

interface RunningParts {
  readonly https: readonly string[];
  readonly wss: readonly string[];
  readonly peerPort: number | undefined;
  readonly operations: Operations | undefined;
  readonly context: RelayContext;
  readonly jobs: JobRunner;
  readonly reload: Reload;
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
  await context.blocks.refresh();
  const modules = hostedModules(config, descriptor, restoredAt);
  const tls = config.tls.mode === 'off' ? undefined : await tlsFiles(config);
  const peerPort = await joinFederation(config, created, { descriptor, modules, addresses, parts });
  const { adminPage } = options;
  const operations = await listenForOperators(config, { context, tls, parts, adminPage });
  const blobs = await openBlobs(config, context);
  await created.disk.start();
  const reload = await serveClients(config, {
    context,
    sessions,
    modules,
    addresses,
    tls,
    longWork,
    blobs,
    operations,
    checkSecret: identity.checkSecret,
    parts,
  });
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
    [
      ...[guard.job, spaceJob, countsJob, dailyBytesJob],
      ...[...modules.jobs, ...federation.jobs, ...ownJobs],
      ...(peerPort === undefined ? [registryFileJob(created.registry)] : []),
    ],
    guard,
  );
  operations?.setReady(true);
  return {
    https: addresses.https,
    wss: addresses.wss,
    peerPort,
    context,
    jobs,
    reload,
    operations,
  };
}

/** Serves operators, also while the relay starts and stops; `undefined` if not configured. */
async function listenForOperators(
  config: RelayConfig,
  {
    context,
    tls: files,
    parts,
    adminPage,
  }: {
    readonly context: RelayContext;
    readonly tls: TlsFiles | undefined;
    readonly parts: AsyncDisposableStack;
    readonly adminPage: string | undefined;
  },
): Promise<Operations | undefined> {
  const { listen } = config.operations;
  if (listen === '') return undefined;
  const admin = await openAdminInterface(config, context, adminPage);
  const tls = config.operations.tls ? files : undefined;
  const schema = Math.max(...relayMigrations.map(({ id }) => id));
  const build = { version: manifest.version, schema };
  return parts.use(
    await withName('operations.listen', () =>
      Operations.listen(context, listen, { build, tls, admin }),
    ),
  );
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
    aboutModule({ name: config.name, about: config.about, descriptor, modules, restoredAt }),
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
