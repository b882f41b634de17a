/** Relays that the kit is run against. */
import { join } from 'node:path';
import { type PartialConfig, Relay } from '@posthouse/relay';
import { devCertificate } from '../../relay/src/tls/dev-ca.ts';
import { RelayData } from '../../relay/test/support/engine.ts';
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
  const relay = stack.use(
    await Relay.start({
      dev: true,
      ...data.config,
      listen: '127.0.0.1:0',
      log: 'silent',
      ...config,
    }),
  );
  const target = await loadTarget({
    relay: relay.https[0] as string,
    registry: join(data.path, 'registry.json'),
    ca: join(data.path, 'tls', 'ca.pem'),
  });
  const owned = stack.move();
  const { metrics } = relay.context;
  return {
    target,
    folder: data.path,
    relay,
    successes: (method) =>
      metrics.value('calls', { method, transport: 'http', code: 'ok' }) +
      metrics.value('calls', { method, transport: 'websocket', code: 'ok' }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Limits of a relay that other relays on this machine call. */
const unlimitedPeers = {
  peerHandshakesPerAddress: 1_000,
  peerHandshakeRate: 1e6,
  peerHandshakeBurst: 1e6,
  federationLookupRate: 1e6,
  federationAddressLookupRate: 1e6,
};

/** Seconds that checks with other relays would wait for otherwise. */
const shortTimes = {
  federationRegistryRefresh: 2,
  federationRegistryCheck: 1,
  federationRegistryRetry: 1,
  federationDescriptorForced: 1,
  federationDescriptorPause: 1,
  deliveryRetryFirst: 1,
  deliveryRetryMost: 2,
  peerRetryFirst: 1,
  peerRetryMost: 1,
};

/** A relay with short times for other relays, and the seat of one. */
export async function startRelayWithSeats(): Promise<TestRelay> {
  await using stack = new AsyncDisposableStack();
  const limits = { ...unlimited, ...unlimitedPeers, ...shortTimes };
  const { target, folder, relay, successes } = stack.use(
    await startRelay({ host: { groups: true, channels: true }, limits }),
  );
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
    }),
  );
  const owned = stack.move();
  return {
    ...{ target: { ...target, seats }, folder, relay, successes },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A relay with default limits, and one with short periods that end during a check. */
export class TestRelays implements AsyncDisposable {
  readonly defaults: TestRelay;
  readonly #shortPeriods: TestRelay;
  readonly withSeats: TestRelay;

  private constructor(defaults: TestRelay, shortPeriods: TestRelay, withSeats: TestRelay) {
    this.defaults = defaults;
    this.#shortPeriods = shortPeriods;
    this.withSeats = withSeats;
  }

  static async start(): Promise<TestRelays> {
    const host = { groups: true, channels: true };
    const defaults = await startRelay({ host, limits: unlimited });
    const short = { groupRecoveryWait: 4, groupStagingPeriod: 4 };
    const shortPeriods = await startRelay({ host, limits: { ...unlimited, ...short } });
    return new TestRelays(defaults, shortPeriods, await startRelayWithSeats());
  }

  /** Returns the relay on which a check can be made. */
  targetFor({ transports, waitsForPeriod }: Check): Target {
    if (transports.includes('relay')) return this.withSeats.target;
    return (waitsForPeriod === true ? this.#shortPeriods : this.defaults).target;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.defaults[Symbol.asyncDispose]();
    await this.#shortPeriods[Symbol.asyncDispose]();
    await this.withSeats[Symbol.asyncDispose]();
  }
}
