import { readFileSync } from 'node:fs';
import { checkConfig, type Purpose } from './check.ts';
import { redact } from './redact.ts';
import type { RelayConfig } from './schema.ts';
import { expected, fits, fromText, type Setting, settings } from './settings.ts';
import { suggestion } from './suggest.ts';

/** Any part of a configuration; what is left out has its default. */
export type PartialConfig = {
  readonly [K in keyof RelayConfig]?: RelayConfig[K] extends readonly unknown[] | string
    ? RelayConfig[K]
    : Partial<RelayConfig[K]>;
};

export interface ConfigLayers {
  /** Path of a JSON file. */
  readonly file?: string | undefined;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** By dotted path, as the command line has them. */
  readonly flags?: Readonly<Record<string, string | boolean | undefined>>;
  /** Values of a program that starts the relay itself. */
  readonly values?: PartialConfig;
  /** What must be there; a relay needs everything. */
  readonly purpose?: Purpose;
}

/** A configuration that passed every check, and where each value came from. */
export interface LoadedConfig {
  readonly config: RelayConfig;
  readonly sources: ReadonlyMap<string, string>;
}

/** What is wrong with a configuration: a sentence for each problem, with path and found value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/**
 * Defaults, then the file, the environment, the command line: the later one wins.
 *
 * @throws ConfigError with every problem found
 * @example
 * const { config } = loadConfig({ values: { dev: true, data: folder, listen: '127.0.0.1:0' } });
 */
export function loadConfig(layers: ConfigLayers): LoadedConfig {
  const problems: string[] = [];
  const found = new Map<string, unknown>();
  const sources = new Map<string, string>();
  const take = (setting: Setting, value: unknown, source: string) => {
    if (value === undefined) return;
    if (fits(setting, value)) {
      found.set(setting.path, value);
      sources.set(setting.path, source);
    } else {
      const found = redact(value);
      problems.push(`${setting.path}: expected ${expected(setting)}, found ${found} (${source})`);
    }
  };
  const file = layers.file === undefined ? {} : readFile(layers.file);
  problems.push(...unknownKeys(file, layers.file ?? 'file'));
  problems.push(...unknownKeys(layers.values ?? {}, 'values'));
  problems.push(...unknownVariables(layers.environment ?? {}));
  const isDev = isDevelopment(layers, file);
  for (const setting of settings) {
    const { path, variable } = setting;
    take(setting, setting.default, 'default');
    if (isDev) take(setting, developmentDefaults[path], 'default of --dev');
    take(setting, valueAt(file, path), `file ${layers.file}`);
    take(setting, valueAt(layers.values ?? {}, path), 'program');
    const text = layers.environment?.[variable];
    if (text !== undefined) take(setting, fromText(setting, text), `environment ${variable}`);
    const flag = layers.flags?.[path];
    if (flag !== undefined) {
      take(setting, typeof flag === 'string' ? fromText(setting, flag) : flag, 'command line');
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const config = nested(found);
  const unfit = checkConfig(config, layers.purpose ?? 'relay');
  if (unfit.length > 0) throw new ConfigError(unfit);
  return { config, sources };
}

/**
 * A network of no chain: magic and registry are zero. Allowances that only an attack would meet:
 * whoever develops against a relay runs whole test suites from one address.
 */
const developmentDefaults: Readonly<Record<string, unknown>> = {
  network: `neo:0:0x${'0'.repeat(40)}`,
  'tls.mode': 'dev',
  'limits.accountRate': 10_000,
  'limits.accountBurst': 100_000,
  'limits.addressRate': 10_000,
  'limits.addressBurst': 100_000,
  'limits.addressBytes': 1_073_741_824,
  'limits.addressBytesBurst': 1_073_741_824,
  'limits.stagedStates': 1_000_000,
  'limits.connectionsPerAddress': 20_000,
};

/** `--dev` has defaults of its own, so it must be known before the others. */
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
    throw new ConfigError([`${path}: cannot be read: ${(error as Error).message}`]);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConfigError([`${path}: is not JSON: ${withoutContent(error as Error)}`]);
  }
}

/** The engine quotes what stands around the fault, which may be a password. */
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

/** Keys no setting has: most often a typing error, so never ignored. `$schema` is for editors. */
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

/** Variables of this name that are no settings: the file's path, and what tests of the house use. */
const otherVariables = [
  'POSTHOUSE_CONFIG',
  'POSTHOUSE_INTEROP_VECTORS',
  'POSTHOUSE_TEST_LOG',
] as const;

/** What Kubernetes gives every container beside a service that is called `posthouse`. */
const serviceVariables =
  /^POSTHOUSE_(?:SERVICE_(?:HOST|PORT(?:_\w+)?)|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)$/;

/** Variables no setting has, as {@link unknownKeys}. */
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
