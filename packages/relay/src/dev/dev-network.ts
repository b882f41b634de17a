import { join, resolve } from 'node:path';
import type { Logger } from 'pino';
import { systemClock } from '../clock.ts';
import type { PartialConfig } from '../config/index.ts';
import { makeFolder } from '../make-folder.ts';
import type { StorageFaults } from '../storage/types.ts';
import { devAuthority } from '../tls/dev-ca.ts';
import { DevRelay } from './dev-relay.ts';
import { type MovableClock, OffsetClock } from './offset-clock.ts';

/** Relays of one development network: a process has that many letters to tell them apart. */
export const maxDevRelays = 16;

export interface DevNetworkOptions {
  /** Folder of everything that is stored: `registry.json`, `tls/` and one folder for each relay. */
  readonly folder: string;
  /** Number of relays, 1 to 16; 3 by default. */
  readonly relays?: number | undefined;
  /** Service word of the network. */
  readonly service?: string | undefined;
  /** Network context; by default the one of development. */
  readonly network?: string | undefined;
  /** Settings of one relay, which replace those of the network: tests give a database and limits. */
  readonly config?: (name: string) => PartialConfig;
  /** Clock of one relay; by default the machine's with an offset. */
  readonly clock?: (name: string) => MovableClock;
  /** Storage faults of one relay, for tests. */
  readonly faults?: (name: string) => StorageFaults;
  /** Each relay logs there with its name in the member `name`. */
  readonly log?: Logger | undefined;
}

/**
 * Several whole relays in one process, for development and tests. They have a registry file and a
 * certificate authority in common; each has its own folder, keys, ports, database, log name, metrics
 * and clock. The relays are called `a`, `b`, `c` and so on.
 *
 * @example
 * await using network = await DevNetwork.start({ folder, relays: 3 });
 * network.relay('b').server.https[0]; // 'https://127.0.0.1:49152/svc/v1'
 * network.relay('b').moveClock(3_600);
 * await network.relay('b').restart();
 */
export class DevNetwork implements AsyncDisposable {
  /** In the order of their names. */
  readonly relays: readonly DevRelay[];
  /** Path of the registry file that lists all relays. */
  readonly registryFile: string;
  /** Path of the certificate, PEM, that clients of every relay trust. */
  readonly authorityFile: string;

  private constructor(options: DevNetworkOptions, authorityFile: string) {
    const { relays = 3 } = options;
    this.registryFile = join(options.folder, 'registry.json');
    this.authorityFile = authorityFile;
    const names = Array.from({ length: relays }, (_, index) => String.fromCharCode(97 + index));
    this.relays = names.map((name) => this.#createRelay(name, options));
  }

  /**
   * Starts the relays, all at once.
   *
   * @throws RangeError for a wrong number of relays; Error with the name of a relay that did not
   *   start; no relay is left running then
   */
  static async start(options: DevNetworkOptions): Promise<DevNetwork> {
    const { relays = 3 } = options;
    if (!Number.isInteger(relays) || relays < 1 || relays > maxDevRelays) {
      throw new RangeError(`relays: expected 1 to ${maxDevRelays}, found ${relays}`);
    }
    const folder = resolve(options.folder);
    makeFolder(folder);
    const authorityFile = await devAuthority(authorityFolder(folder), systemClock.now());
    await using parts = new AsyncDisposableStack();
    const network = parts.use(new DevNetwork({ ...options, folder }, authorityFile));
    const starts = await Promise.allSettled(network.relays.map((relay) => relay.start()));
    for (const start of starts) if (start.status === 'rejected') throw start.reason;
    // Those that started first have not read the entries of the others.
    for (const relay of network.relays) relay.server.wakeJobs();
    parts.move();
    return network;
  }

  /** @throws RangeError if there is no such relay */
  relay(name: string): DevRelay {
    const relay = this.relays.find((one) => one.name === name);
    if (relay !== undefined) return relay;
    const names = this.relays.map((one) => one.name).join(', ');
    throw new RangeError(`there is no relay ${name}: the relays are ${names}`);
  }

  /** Moves the clocks of all relays. */
  moveClocks(seconds: number): void {
    for (const relay of this.relays) relay.moveClock(seconds);
  }

  /** Stops all relays at once. */
  async [Symbol.asyncDispose](): Promise<void> {
    const stops = this.relays.map((relay) => relay[Symbol.asyncDispose]());
    for (const stop of await Promise.allSettled(stops)) {
      if (stop.status === 'rejected') throw stop.reason;
    }
  }

  #createRelay(name: string, options: DevNetworkOptions): DevRelay {
    const { folder, service, network, config, clock, faults, log } = options;
    const common = {
      dev: true,
      data: join(folder, name),
      name: `Relay ${name}`,
      listen: '127.0.0.1:0',
      registry: this.registryFile,
      tls: { authority: authorityFolder(folder) },
      federation: { ca: this.authorityFile },
      ...(service !== undefined && { service }),
      ...(network !== undefined && { network }),
    };
    return new DevRelay(name, merged(common, config?.(name) ?? {}), {
      clock: clock?.(name) ?? new OffsetClock(),
      ...(log !== undefined && { log: log.child({ name }) }),
      ...(faults !== undefined && { faults: faults(name) }),
    });
  }
}

function authorityFolder(folder: string): string {
  return join(folder, 'tls');
}

/** Merges two configurations setting by setting; `more` wins. */
function merged<T extends PartialConfig>(common: T, more: PartialConfig): T & PartialConfig {
  const isGroup = (value: unknown): value is object =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const settings: Record<string, unknown> = { ...common };
  for (const [name, value] of Object.entries(more)) {
    const known = settings[name];
    settings[name] = isGroup(value) && isGroup(known) ? { ...known, ...value } : value;
  }
  return settings as T & PartialConfig;
}
