/** Relays for the kit to be run against. */
import { join } from 'node:path';
import { type PartialConfig, Relay } from '@posthouse/relay';
import { RelayData } from '../../relay/test/support/engine.ts';
import { type Check, loadTarget, type Target } from '../src/index.ts';

/** Checks come faster than people do. */
export const unlimited = {
  accountRate: 1e6,
  accountBurst: 1e6,
  addressRate: 1e6,
  addressBurst: 1e6,
};

/** A relay, and the data that goes with it. */
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

/** One as relays are; and one whose periods are short enough to see them end. */
export class TestRelays implements AsyncDisposable {
  readonly usual: TestRelay;
  readonly #quick: TestRelay;

  private constructor(usual: TestRelay, quick: TestRelay) {
    this.usual = usual;
    this.#quick = quick;
  }

  static async start(): Promise<TestRelays> {
    const host = { groups: true, channels: true };
    const usual = await startRelay({ host, limits: unlimited });
    const short = { groupRecoveryWait: 4, groupStagingPeriod: 4 };
    return new TestRelays(usual, await startRelay({ host, limits: { ...unlimited, ...short } }));
  }

  /** The relay on which a check can be made. */
  targetFor({ waitsForPeriod }: Check): Target {
    return (waitsForPeriod === true ? this.#quick : this.usual).target;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.usual[Symbol.asyncDispose]();
    await this.#quick[Symbol.asyncDispose]();
  }
}
