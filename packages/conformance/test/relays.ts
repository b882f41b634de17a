/** Relays that the kit is run against. */
import { join } from 'node:path';
import { type PartialConfig, Relay } from '@posthouse/relay';
import { RelayData } from '../../relay/test/support/engine.ts';
import { type Check, loadTarget, type Target } from '../src/index.ts';

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
    successes: (method) =>
      metrics.value('calls', { method, transport: 'http', code: 'ok' }) +
      metrics.value('calls', { method, transport: 'websocket', code: 'ok' }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A relay with default limits, and one with short periods that end during a check. */
export class TestRelays implements AsyncDisposable {
  readonly defaults: TestRelay;
  readonly #shortPeriods: TestRelay;

  private constructor(defaults: TestRelay, shortPeriods: TestRelay) {
    this.defaults = defaults;
    this.#shortPeriods = shortPeriods;
  }

  static async start(): Promise<TestRelays> {
    const host = { groups: true, channels: true };
    const defaults = await startRelay({ host, limits: unlimited });
    const short = { groupRecoveryWait: 4, groupStagingPeriod: 4 };
    return new TestRelays(defaults, await startRelay({ host, limits: { ...unlimited, ...short } }));
  }

  /** Returns the relay on which a check can be made. */
  targetFor({ waitsForPeriod }: Check): Target {
    return (waitsForPeriod === true ? this.#shortPeriods : this.defaults).target;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.defaults[Symbol.asyncDispose]();
    await this.#shortPeriods[Symbol.asyncDispose]();
  }
}
