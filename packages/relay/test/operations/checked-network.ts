/** Two whole relays, and the checks of the first one with changed settings. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RelayEntry } from '@posthouse/protocol';
import { pino } from 'pino';
import { expect, vi } from 'vitest';
import { loadConfig, type PartialConfig } from '../../src/config/index.ts';
import { DevNetwork } from '../../src/dev/dev-network.ts';
import type { DevRelay } from '../../src/dev/dev-relay.ts';
import { relayMigrations } from '../../src/modules.ts';
import { type CheckResult, runChecks, type Scope } from '../../src/operations/checks/index.ts';
import { RelayData } from '../support/engine.ts';
import { temporaryFolder } from '../support/folder.ts';

/** Milliseconds in which relays connect, on a busy machine. */
const patience = { timeout: 30_000 };

export type Results = Readonly<Record<string, CheckResult>>;

/** Runs checks, and returns their results by name. */
export async function checksOf(values: PartialConfig, scope: Scope = 'relays'): Promise<Results> {
  const found: Record<string, CheckResult> = {};
  const load = () => loadConfig({ values });
  for await (const result of runChecks({ load, migrations: relayMigrations, scope })) {
    found[result.check] = result;
  }
  return found;
}

/** The names of the checks with an outcome. */
export const withOutcome = (results: Results, outcome: string) =>
  Object.values(results).flatMap((one) => (one.outcome === outcome ? [one.check] : []));

export class CheckedNetwork implements AsyncDisposable {
  readonly folder: string;
  readonly network: DevNetwork;
  /** The database of relay a. */
  readonly data: RelayData;
  readonly #config: PartialConfig;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    network: DevNetwork,
    parts: AsyncDisposableStack,
    more: { readonly folder: string; readonly data: RelayData; readonly config: PartialConfig },
  ) {
    this.network = network;
    this.#parts = parts;
    this.folder = more.folder;
    this.data = more.data;
    this.#config = more.config;
  }

  /**
   * Starts both relays, and waits until they are connected.
   *
   * @param config of relay a, in addition; checks have it too
   */
  static async start(
    config: PartialConfig = {},
    configOfB: PartialConfig = {},
  ): Promise<CheckedNetwork> {
    await using parts = new AsyncDisposableStack();
    const folder = parts.use(temporaryFolder()).path;
    const databases = new Map<string, RelayData>();
    for (const name of ['a', 'b']) {
      databases.set(name, parts.use(await RelayData.withSchema()));
    }
    const network = parts.use(
      await DevNetwork.start({
        ...{ folder, relays: 2, log: pino({ level: 'silent' }) },
        config: (name) => ({
          ...databases.get(name)?.config,
          limits: { dialBackTimeout: 2_000 },
          ...(name === 'a' ? config : configOfB),
        }),
      }),
    );
    const data = databases.get('a') as RelayData;
    const { metrics } = network.relay('a').server.context;
    await vi.waitFor(() => {
      expect(metrics.value('peers', { state: 'connected' })).toBe(1);
    }, patience);
    return new CheckedNetwork(network, parts.move(), { folder, data, config });
  }

  get a(): DevRelay {
    return this.network.relay('a');
  }

  get b(): DevRelay {
    return this.network.relay('b');
  }

  /** The settings with which relay a runs. */
  get settings(): PartialConfig {
    const { server } = this.a;
    const { federation, ...config } = this.#config;
    return {
      ...this.data.config,
      ...{ dev: true, registry: this.network.registryFile },
      listen: new URL(server.https[0] as string).host,
      tls: { authority: join(this.folder, 'tls') },
      federation: {
        listen: `127.0.0.1:${server.peerPort}`,
        ca: this.network.authorityFile,
        ...federation,
      },
      ...config,
    };
  }

  /** The settings as variables, for a command. */
  get environment(): Record<string, string> {
    const { data, registry, listen, tls, federation } = this.settings;
    return {
      ...this.data.environment,
      ...{ POSTHOUSE_DEV: 'true', POSTHOUSE_DATA: data as string },
      ...{ POSTHOUSE_REGISTRY: registry as string, POSTHOUSE_LISTEN: listen as string },
      POSTHOUSE_TLS_AUTHORITY: tls?.authority as string,
      POSTHOUSE_FEDERATION_LISTEN: federation?.listen as string,
      POSTHOUSE_FEDERATION_CA: federation?.ca as string,
    };
  }

  entry(relay: DevRelay, more: Partial<RelayEntry> = {}): RelayEntry {
    const { relayId, https } = relay.server;
    const endpoint = https[0] as string;
    return { relay_id: relayId, endpoint, status: 'active', updated_at: 1, ...more };
  }

  /** Writes a registry file of these records, which only checks read. */
  registryOf(...relays: RelayEntry[]): string {
    const file = join(this.folder, 'other-registry.json');
    const { context } = this.a.server.network;
    writeFileSync(file, JSON.stringify({ context, relays }));
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}
