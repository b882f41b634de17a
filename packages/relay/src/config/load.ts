import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fitMemory } from '../memory.ts';
import { fitOpenFiles } from '../open-files.ts';
import { checkConfig, type Purpose } from './check.ts';
import { plainJson } from './plain-json.ts';
import { redact } from './redact.ts';
import type { RelayConfig } from './schema.ts';
import { expected, fits, fromText, type Setting, settings } from './settings.ts';
import { suggestion } from './suggest.ts';
import { systemFault } from './system-fault.ts';

/** A partial configuration; missing settings have their defaults. */
export type PartialConfig = {
  readonly [K in keyof RelayConfig]?: RelayConfig[K] extends readonly unknown[] | string
    ? RelayConfig[K]
    : Partial<RelayConfig[K]>;
};

export interface ConfigLayers {
  /** Path of a JSON file. */
  readonly file?: string | undefined;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Flags of the command line, by dotted path. */
  readonly flags?: Readonly<Record<string, string | boolean | undefined>>;
  /** Values from a program that uses the relay as a library. */
  readonly values?: PartialConfig;
  /** Decides which settings are required; a relay requires all. */
  readonly purpose?: Purpose;
  /** Bytes that the process may have: limits that are not set are lowered to fit (`limits.memory`). */
  readonly memory?: number;
  /** Files and connections that it may have open; limits that are not set are lowered to fit. */
  readonly openFiles?: number | undefined;
}

/** A checked configuration, with the source of each value. */
export interface LoadedConfig {
  readonly config: RelayConfig;
  readonly sources: ReadonlyMap<string, string>;
}

/** An invalid configuration: one sentence per problem, with the setting's path and value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/**
 * Loads a configuration from defaults, file, program, environment and command line; later ones win.
 *
 * @throws ConfigError with every problem found
 * @example
 * const { config } = loadConfig({ values: { dev: true, data: folder, listen: '127.0.0.1:0' } });
 */
export function loadConfig(layers: ConfigLayers): LoadedConfig {
  const problems: string[] = [];
  const found = new Map<string, unknown>();
  const sources = new Map<string, string>();
  const apply = (setting: Setting, value: unknown, source: string) => {
    if (value === undefined) return;
    if (fits(setting, value)) {
      found.set(setting.path, value);
      sources.set(setting.path, source);
    } else {
      const found = redact(value);
      problems.push(`${setting.path}: expected ${expected(setting)}, found ${found} (${source})`);
    }
  };
  const isSet = (name: string) => !sources.get(`limits.${name}`)?.startsWith('default');
  const lower = (fitted: typeof fitMemory, available: number, what: string) => {
    const { limits } = nested(found);
    for (const [name, value] of Object.entries(fitted(limits, { available, isSet }))) {
      found.set(`limits.${name}`, value);
      sources.set(`limits.${name}`, `default, lowered to fit ${what}`);
    }
  };
  const file = layers.file === undefined ? {} : readFile(layers.file);
  problems.push(...unknownKeys(file, layers.file ?? 'file'));
  problems.push(...unknownKeys(layers.values ?? {}, 'values'));
  problems.push(...unknownVariables(layers.environment ?? {}));
  const isDev = isDevelopment(layers, file);
  for (const setting of settings) {
    const { path, variable } = setting;
    apply(setting, setting.default, 'default');
    if (isDev) apply(setting, developmentDefaults[path], 'default of --dev');
    apply(setting, valueAt(file, path), `file ${layers.file}`);
    apply(setting, valueAt(layers.values ?? {}, path), 'program');
    const text = layers.environment?.[variable];
    if (text !== undefined) apply(setting, fromText(setting, text), `environment ${variable}`);
    const flag = layers.flags?.[path];
    if (flag !== undefined) {
      apply(setting, typeof flag === 'string' ? fromText(setting, flag) : flag, 'command line');
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  if (isDev && layers.values === undefined && sources.get('blobs.folder') === 'default') {
    const folder = attachmentsOf(nested(found));
    if (folder !== undefined) {
      found.set('blobs.folder', folder);
      sources.set('blobs.folder', 'default of --dev');
    }
  }
  if (layers.memory !== undefined) lower(fitMemory, layers.memory, 'limits.memory');
  if (layers.openFiles !== undefined && !isDev) {
    lower(fitOpenFiles, layers.openFiles, 'the open files of the process');
  }
  const config = nested(found);
  const unmet = checkConfig(config, layers.purpose ?? 'relay');
  if (unmet.length > 0) throw new ConfigError(unmet);
  return { config, sources };
}

/**
 * Defaults of `--dev`: a network without a chain (magic and registry are zero), other relays on this
 * machine, and high rate limits, because a developer runs whole test suites from one address.
 */
const developmentDefaults: Readonly<Record<string, unknown>> = {
  network: `neo:0:0x${'0'.repeat(40)}`,
  'tls.mode': 'dev',
  'federation.listen': '127.0.0.1:0',
  'federation.allowPrivate': true,
  registration: 'open',
  web: true,
  'limits.memory': 1_125_899_906_842_624,
  'limits.clockJump': 100_000_000_000,
  'limits.diskFree': 1,
  'limits.accountRate': 100_000,
  'limits.accountBurst': 1_000_000,
  'limits.addressRate': 100_000,
  'limits.addressBurst': 1_000_000,
  'limits.addressBytes': 1_073_741_824,
  'limits.addressBytesBurst': 1_073_741_824,
  'limits.accountBytes': 1_073_741_824,
  'limits.accountBytesBurst': 1_073_741_824,
  'limits.receivedBytesPerAddress': 67_108_864,
  'limits.receivedBytesPerAccount': 134_217_728,
  'limits.waitingBytesPerAddress': 67_108_864,
  'limits.waitingBytesPerAccount': 134_217_728,
  'limits.subscriptionsPerAccount': 250_000,
  'limits.unboundTimeout': 3_600_000,
  'limits.challenges': 1_000_000,
  'limits.challengesPerAddress': 1_000_000,
  'limits.challengesOfAccount': 10_000,
  'limits.stagedStates': 1_000_000,
  'limits.stagedStatesPerAddress': 1_000_000,
  'limits.accountsPerAddress': 1_000_000,
  'limits.accountDailyBytes': 1_125_899_906_842_624,
  'limits.groupDailyBytes': 1_125_899_906_842_624,
  'limits.channelDailyBytes': 1_125_899_906_842_624,
  'limits.accountStoredBytes': 1_125_899_906_842_624,
  'limits.groupStoredBytes': 1_125_899_906_842_624,
  'limits.channelStoredBytes': 1_125_899_906_842_624,
  'limits.accountReceivedDailyBytes': 1_125_899_906_842_624,
  'limits.foreignRelayDailyBytes': 1_125_899_906_842_624,
  'limits.foreignDailyBytes': 1_125_899_906_842_624,
  'limits.sessionsPerMinute': 10_000,
  'limits.sessionsOfDevice': 10_000,
  'limits.sessionsOfAccount': 100_000,
  'limits.connectionsPerAddress': 20_000,
  'limits.handshakeRate': 100_000,
  'limits.handshakeBurst': 1_000_000,
  'limits.addressHandshakeRate': 100_000,
  'limits.addressHandshakeBurst': 1_000_000,
  'limits.handshakesUnfinished': 20_000,
  'limits.addressHandshakesUnfinished': 20_000,
  'limits.routeLookupRate': 10_000,
  'limits.routeLookupBurst': 100_000,
  'limits.relayQueryRate': 10_000,
  'limits.relayQueryBurst': 100_000,
  'limits.relayQueryNewAccounts': 1_000_000,
  'limits.federationLookupRate': 1_000,
  'limits.federationAddressLookupRate': 1_000,
  'limits.federationAddressLookupBurst': 1_000,
  'limits.peerHandshakesPerAddress': 64,
  'limits.peerHandshakeRate': 1_000,
  'limits.peerHandshakeBurst': 10_000,
};

/**
 * Returns the folder for attachments of a relay for development that a command starts, so that clients
 * can send files without a setting. Relays that share a database would need to share it.
 */
function attachmentsOf({ data, storage }: RelayConfig): string | undefined {
  return data === '' || storage.engine !== 'sqlite' ? undefined : join(data, 'attachments');
}

/** Reads `dev` before all other settings, because it changes their defaults. */
function isDevelopment(layers: ConfigLayers, file: unknown): boolean {
  const flag = layers.flags?.dev ?? layers.environment?.POSTHOUSE_DEV;
  if (flag !== undefined) return flag === true || flag === 'true';
  return (layers.values?.dev ?? valueAt(file, 'dev')) === true;
}

function readFile(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError([systemFault(error) ?? `${path}: ${(error as Error).message}`]);
  }
  try {
    return JSON.parse(plainJson(text));
  } catch (error) {
    throw new ConfigError([
      `${path}: is not JSON: ${withoutContent(error as Error)}; correct the file there`,
    ]);
  }
}

/** Removes the quoted part of the file from the message, which may contain a password. */
function withoutContent({ message }: Error): string {
  return message.replace(/, (?:\.{3})?".*$/s, '');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function valueAt(root: unknown, path: string): unknown {
  let value = root;
  for (const name of path.split('.')) {
    value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

/** Reports unknown keys, which are usually typing errors. `$schema` is for editors. */
function unknownKeys(root: unknown, source: string): string[] {
  if (!isObject(root)) return [`${source}: expected an object`];
  const paths = settings.map(({ path }) => path);
  const known = new Set(paths);
  const unknown = (path: string) =>
    `${path}: there is no such key${suggestion(path, paths)} (${source})`;
  const groups = new Set(settings.flatMap(({ path }) => path.split('.').slice(0, -1)));
  const problems: string[] = [];
  for (const [name, value] of Object.entries(root)) {
    if (known.has(name) || name === '$schema') continue;
    if (!groups.has(name)) problems.push(unknown(name));
    else if (!isObject(value)) problems.push(`${name}: expected an object (${source})`);
    else {
      for (const key of Object.keys(value)) {
        const path = `${name}.${key}`;
        if (!known.has(path)) problems.push(unknown(path));
      }
    }
  }
  return problems;
}

/** Variables with the prefix that are not settings: the file's path, and variables of our tests. */
const otherVariables = [
  'POSTHOUSE_CONFIG',
  'POSTHOUSE_INTEROP_VECTORS',
  'POSTHOUSE_TEST_LOG',
] as const;

/** Variables that Kubernetes sets for a service named `posthouse`. */
const serviceVariables =
  /^POSTHOUSE_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/;

/** Reports unknown variables, as {@link unknownKeys} does. */
function unknownVariables(environment: Readonly<Record<string, string | undefined>>): string[] {
  const known: string[] = [...settings.map(({ variable }) => variable), ...otherVariables];
  return Object.keys(environment)
    .filter((name) => /^POSTHOUSE_/.test(name) && environment[name] !== undefined)
    .filter((name) => !known.includes(name) && !serviceVariables.test(name))
    .map((name) => `${name}: there is no such variable${suggestion(name, known)} (environment)`);
}

function nested(values: ReadonlyMap<string, unknown>): RelayConfig {
  const config: Record<string, unknown> = {};
  for (const [path, value] of values) {
    const [group = '', key] = path.split('.');
    if (key === undefined) {
      config[group] = value;
    } else {
      const members = (config[group] ?? {}) as Record<string, unknown>;
      members[key] = value;
      config[group] = members;
    }
  }
  return config as RelayConfig;
}
