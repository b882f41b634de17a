/** Settings in the command's folder: network, service word, registry, certificate authority. */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  ChainRegistry,
  checkRegistryNodes,
  checkSchema,
  Network,
  ProtocolError,
  type Registry,
  RegistryNodes,
  type Static,
  staticRegistry,
  Type,
} from '@posthouse/protocol';
import { JsonError, parseJson } from '@posthouse/protocol/json';
import { nodePrimitives } from '@posthouse/protocol/node';
import { nodePost } from '../connect/registry.ts';
import type { Transport } from '../connect/transport.ts';
import { UsageError } from './exit.ts';

/** What `setup` writes, so that later commands need no flags. Paths are absolute. */
const Settings = Type.Object({
  network: Type.String(),
  service: Type.String(),
  /** Path of a file, or nodes of the chain. */
  registry: Type.Union([Type.String(), RegistryNodes]),
  ca: Type.Optional(Type.String()),
});
export type Settings = Static<typeof Settings>;

/** Options every command takes. */
export interface GlobalOptions {
  readonly data?: string;
  readonly network?: string;
  readonly service?: string;
  readonly registry?: string;
  readonly registryNode?: readonly string[];
  readonly registryAgree?: '1' | '2';
  readonly ca?: string;
  readonly json?: boolean;
  readonly ids?: boolean;
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
    ...registryGiven(options),
    ...(options.ca !== undefined && { ca: resolve(options.ca) }),
  };
  return { ...stored, ...given };
}

/** Returns the registry that options name: a file, or nodes. @throws UsageError for both */
function registryGiven({
  registry,
  registryNode: nodes = [],
  registryAgree,
}: GlobalOptions): Pick<Settings, 'registry'> | undefined {
  if (nodes.length === 0) {
    if (registryAgree !== undefined) throw new UsageError('--registry-agree needs --registry-node');
    return registry === undefined ? undefined : { registry: resolve(registry) };
  }
  if (registry !== undefined) throw new UsageError('give either --registry or --registry-node');
  const value = { nodes: [...nodes], agree: registryAgree === '2' ? 2 : 1 };
  return orUsageError('--registry-node', () => {
    checkRegistryNodes(value);
    return { registry: value };
  });
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

/**
 * Opens the registry of the settings: reads a file, or uses nodes over the transport.
 * @throws UsageError
 */
export function registryOf(
  network: Network,
  registry: Settings['registry'],
  transport: Transport,
): Registry {
  if (typeof registry !== 'string') {
    return new ChainRegistry({ ...registry, network, post: nodePost(transport) });
  }
  const text = readText(registry);
  return orUsageError(registry, () => staticRegistry(network, parseJson(text)));
}

/** Returns the network context of a registry file. @throws UsageError for nodes, which tell none */
export function contextOfRegistry(registry: Settings['registry']): string {
  if (typeof registry !== 'string') {
    throw new UsageError(
      '--registry-node needs --network neo:<magic>:<registry> from the operator',
    );
  }
  const text = readText(registry);
  return orUsageError(registry, () => {
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
