/** Settings in the command's folder: network, service word, registry, certificate authority. */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  checkSchema,
  Network,
  ProtocolError,
  type Registry,
  type Static,
  staticRegistry,
  Type,
} from '@posthouse/protocol';
import { JsonError, parseJson } from '@posthouse/protocol/json';
import { nodePrimitives } from '@posthouse/protocol/node';
import { UsageError } from './exit.ts';

/** What `setup` writes, so that later commands need no flags. Paths are absolute. */
const Settings = Type.Object({
  network: Type.String(),
  service: Type.String(),
  registry: Type.String(),
  ca: Type.Optional(Type.String()),
});
export type Settings = Static<typeof Settings>;

/** Options every command takes. */
export interface GlobalOptions {
  readonly data?: string;
  readonly network?: string;
  readonly service?: string;
  readonly registry?: string;
  readonly ca?: string;
  readonly json?: boolean;
}

/** Returns the account's folder: `--data`, `COURIER_HOME`, or `.courier` in the home folder. */
export function dataFolder(options: GlobalOptions, env: NodeJS.ProcessEnv): string {
  return resolve(options.data ?? env.COURIER_HOME ?? join(homedir(), '.courier'));
}

/**
 * Creates the folder, readable by its owner only. An existing folder keeps its mode: it may serve
 * other purposes, and the files written into it have mode 600 anyway.
 *
 * @throws UsageError if it cannot be created
 */
export function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageError(`${folder}: ${(error as Error).message}: choose another with --data`);
  }
}

const settingsFile = 'courier.json';

/** Writes a file that only its owner may read. */
export function writePrivate(path: string, text: string): void {
  writeFileSync(path, text, { mode: 0o600 });
  chmodSync(path, 0o600);
}

/** Writes the settings file; a crash leaves the old file or the new one. */
export function writeSettings(folder: string, settings: Settings): void {
  const draft = join(folder, `${settingsFile}.new`);
  writePrivate(draft, `${JSON.stringify(settings, undefined, 2)}\n`);
  renameSync(draft, join(folder, settingsFile));
}

/** Reads the folder's settings. @returns `undefined` if there are none yet */
export function readSettings(folder: string): Settings | undefined {
  let text: string;
  try {
    text = readFileSync(join(folder, settingsFile), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new UsageError(`${settingsFile}: ${(error as Error).message}`);
  }
  return orUsageError(settingsFile, () => {
    const value = parseJson(text);
    checkSchema(Settings, value);
    return value;
  });
}

/** Merges the folder's settings with the options of this call; an option wins. */
export function mergedSettings(
  stored: Settings | undefined,
  options: GlobalOptions,
): Partial<Settings> {
  const given = {
    ...(options.network !== undefined && { network: options.network }),
    ...(options.service !== undefined && { service: options.service }),
    ...(options.registry !== undefined && { registry: resolve(options.registry) }),
    ...(options.ca !== undefined && { ca: resolve(options.ca) }),
  };
  return { ...stored, ...given };
}

/** Reads a file as text. @throws UsageError if it cannot be read */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${path}: ${(error as Error).message}`);
  }
}

/** Builds the network. @throws UsageError if context or service word is malformed */
export function networkOf({ network, service }: Pick<Settings, 'network' | 'service'>): Network {
  return orUsageError('--network', () => {
    return new Network({ context: network, word: service, primitives: nodePrimitives });
  });
}

/** Reads a registry file. @throws UsageError */
export function registryOf(network: Network, path: string): Registry {
  const text = readText(path);
  return orUsageError(path, () => staticRegistry(network, parseJson(text)));
}

/** Reads the network context of a registry file. @throws UsageError */
export function contextOfRegistry(path: string): string {
  const text = readText(path);
  return orUsageError(path, () => {
    const value = parseJson(text);
    checkSchema(Type.Object({ context: Type.String() }), value);
    return value.context;
  });
}

function orUsageError<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const known =
      error instanceof ProtocolError || error instanceof JsonError || error instanceof TypeError;
    if (!known) throw error;
    throw new UsageError(`${what}: ${error.message}`);
  }
}
