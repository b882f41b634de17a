/** Relays that the kit is run against. */
import { join } from 'node:path';
import { type PartialConfig, Relay } from '@posthouse/relay';
import { devCertificate } from '../../relay/src/tls/dev-ca.ts';
import { RelayData } from '../../relay/test/support/engine.ts';
import { freePort } from '../../relay/test/support/ports.ts';
import { unlimitedHandshakes } from '../../relay/test/support/served-network.ts';
import { type Check, loadTarget, RelaySeats, type Target } from '../src/index.ts';

/** Rate limits that the checks never reach. */
export const unlimited = {
  accountRate: 1e6,
  accountBurst: 1e6,
  addressRate: 1e6,
  addressBurst: 1e6,
};

/** A running relay with its data. */
interface TestRelay extends AsyncDisposable {
  readonly target: Target;
  /** Its data folder. */
  readonly folder: string;
  readonly relay: Relay;
  /** Returns how many calls of a method succeeded. */
  successes(method: string): number;
}

export async function startRelay(config: Omit<PartialConfig, 'storage'>): Promise<TestRelay> {
  await using stack = new AsyncDisposableStack();
  const data = stack.use(await RelayData.empty());
  // It can start again at the same addresses.
  const [port, peerPort] = [await freePort(), await freePort()];
  const start = () =>
    Relay.start({
      dev: true,
      ...data.config,
      listen: `127.0.0.1:${port}`,
      federation: { listen: `127.0.0.1:${peerPort}` },
      log: 'silent',
      ...config,
    });
  let relay = await start();
  stack.defer(() => relay[Symbol.asyncDispose]());
  const restart = async () => {
    await relay[Symbol.asyncDispose]();
    relay = await start();
  };
  const target = await loadTarget({
    relay: relay.https[0] as string,
    registry: join(data.path, 'registry.json'),
    ca: join(data.path, 'tls', 'ca.pem'),
  });
  const owned = stack.move();
  return {
    target: { ...target, restart },
    folder: data.path,
    get relay() {
      return relay;
    },
    successes: (method) => {
      const { metrics } = relay.context;
      return (
        metrics.value('calls', { method, transport: 'http', code: 'ok' }) +
        metrics.value('calls', { method, transport: 'websocket', code: 'ok' })
      );
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Limits of a relay that other relays on this machine call. */
const unlimitedPeers = {
  ...unlimitedHandshakes,
  federationLookupRate: 1e6,
  federationAddressLookupRate: 1e6,
  routeLookupRate: 1e6,
  routeLookupBurst: 1e6,
};

/** Seconds that checks with other relays would wait for otherwise. */
const shortTimes = {
  federationRegistryRefresh: 1,
  federationRegistryCheck: 1,
  federationRegistryRetry: 1,
  federationDescriptorForced: 1,
  federationDescriptorPause: 1,
  deliveryRetryFirst: 1,
  deliveryRetryMost: 2,
  peerRetryFirst: 1,
  peerRetryMost: 1,
  routeNotFound: 1,
  dhtPause: 1,
};

/** A relay with short times for other relays, and the seat of one. */
export async function startRelayWithSeats(
  periods: PartialConfig['limits'] = {},
): Promise<TestRelay> {
  await using stack = new AsyncDisposableStack();
  const limits = { ...unlimited, ...unlimitedPeers, ...shortTimes, ...periods };
  const started = stack.use(await startRelay({ host: { groups: true, channels: true }, limits }));
  const { target, folder } = started;
  const authorityFolder = join(folder, 'tls');
  const now = Math.floor(Date.now() / 1_000);
  const { cert, key } = await devCertificate(join(folder, 'kit'), ['127.0.0.1'], now, {
    authorityFolder,
  });
  const seats = stack.use(
    await RelaySeats.open({
      network: target.network,
      registry: join(folder, 'registry.json'),
      ...{ host: '127.0.0.1', certificate: cert, key },
      registryRefresh: shortTimes.federationRegistryRefresh,
      ...(periods.ownRouteCheck && { republication: periods.ownRouteCheck }),
    }),
  );
  const owned = stack.move();
  return {
    ...{ target: { ...target, seats }, folder, successes: started.successes },
    get relay() {
      return started.relay;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A relay with default limits, one with short periods that end during a check, and so on. */
export class TestRelays implements AsyncDisposable {
  readonly defaults: TestRelay;
  readonly withSeats: TestRelay;
  readonly #shortPeriods: TestRelay;
  /** For one check at a time: a check may restart it, or change its network. */
  readonly #alone: TestRelay;

  private constructor(relays: readonly [TestRelay, TestRelay, TestRelay, TestRelay]) {
    [this.defaults, this.withSeats, this.#shortPeriods, this.#alone] = relays;
  }

  static async start(): Promise<TestRelays> {
    const host = { groups: true, channels: true };
    return new TestRelays([
      await startRelay({ host, limits: unlimited }),
      await startRelayWithSeats(),
      await startRelayWithSeats({
        ...{ groupRecoveryWait: 4, groupStagingPeriod: 4, messageRetention: 4, ownRouteCheck: 2 },
      }),
      await startRelayWithSeats(),
    ]);
  }

  /** Returns the relay on which a check can be made. */
  targetFor({ transports, isAlone, waitsForPeriod }: Check): Target {
    if (waitsForPeriod === true) return this.#shortPeriods.target;
    if (isAlone === true) return this.#alone.target;
    return (transports.includes('relay') ? this.withSeats : this.defaults).target;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const started = [this.defaults, this.withSeats, this.#shortPeriods, this.#alone];
    await Promise.all(started.map((relay) => relay[Symbol.asyncDispose]()));
  }
}
