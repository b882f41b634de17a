/** `posthouse init`: the relay's keys, its configuration file, and the registry of a private network. */
import { existsSync } from 'node:fs';
import { open, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { nodeRandom } from '@posthouse/protocol/node';
import type { Command } from 'commander';
import { systemClock } from '../clock.ts';
import {
  ConfigError,
  commentedConfig,
  defaultOf,
  type LoadedConfig,
  loadConfig,
  type RelayConfig,
} from '../config/index.ts';
import { enterRelay, registryPath } from '../federation/index.ts';
import { createToken } from '../keys/admin-token.ts';
import { relayIdentity } from '../keys/identity.ts';
import { createKeys, keyFolder, loadKeys } from '../keys/keys.ts';
import { makeFolder } from '../make-folder.ts';
import { type Flags, flagValues, networkOf, withConfig } from './config-flags.ts';
import { endpointOf } from './registry-file.ts';
import { note, print } from './terminal-output.ts';

const help = `
Without --config, the configuration is written to relay.json in the data folder. Files that exist
are never changed. With --dev no configuration is written: such a relay needs none.

--private begins a network of its own: it chooses a network context and writes registry.json, which
all relays and clients of the network need, into the data folder.

Exit status: 0 done, 1 failed, 2 the configuration is invalid.

Examples:
  posthouse init --data /var/lib/posthouse --network neo:860833102:0x0123... --url https://relay.example.com/svc/v1
  posthouse init --data /var/lib/posthouse --private --url https://relay.example.com/svc/v1`;

interface InitFlags extends Flags {
  readonly url?: string;
  readonly private?: boolean;
}

/** Completes `posthouse init`. */
export function configure(command: Command): void {
  withConfig(command)
    .option(
      '--url <https-address>',
      'address of the relay for clients and the registry',
      endpointOf,
    )
    .option('--private', 'begin a network of its own: a new context and a registry file')
    .addHelpText('after', help)
    .action(init);
}

async function init(flags: InitFlags): Promise<void> {
  const file = configFile(flags);
  const isNew = !existsSync(file);
  const { config, sources } = loadConfig({
    file: isNew || flags.dev === true ? undefined : file,
    environment: process.env,
    flags: chosenFlags(flags, isNew),
    purpose: 'keys',
  });
  const endpoint = config.public.https[0];
  if (flags.private && endpoint === undefined) {
    throw new Error('--private needs --url: the registry names the address of each relay');
  }
  const areNew = await createKeys(config.data, nodeRandom);
  const network = networkOf(config);
  const identity = relayIdentity(network, await loadKeys(config.data));
  print([
    `keys ${areNew ? 'made' : 'there already'}: ${keyFolder(config.data)}`,
    `relay id ${identity.relayId}`,
    `public key ${identity.publicKey}`,
    `peer id ${identity.peerId}`,
  ]);
  if (config.dev) return;
  const values = chosenValues({ config, sources });
  if (isNew) await writeConfig(file, { ...values, [tokenSetting]: tokenFile(config) });
  else note(`configuration there already, not changed: ${file}`);
  await makeToken(config, isNew);
  if (flags.private && typeof config.registry === 'string') {
    const path = registryPath({ ...config, registry: config.registry });
    await enterRelay(network, path, {
      relay_id: identity.relayId,
      endpoint: endpoint as string,
      status: 'active',
      updated_at: systemClock.now() * 1_000,
    });
    note(`network ${network.context}`);
    note(`registry ${resolve(path)}: all relays and clients of the network need a copy`);
  }
  note('Back up these two files and keep them secret; without them the relay ID is lost:');
  for (const name of await readdir(keyFolder(config.data))) {
    note(`  ${resolve(keyFolder(config.data), name)}`);
  }
}

/** The path of the configuration file: the named one, or one in the data folder. */
function configFile({ config, data }: InitFlags): string {
  const named = config ?? process.env.POSTHOUSE_CONFIG;
  if (typeof named === 'string') return named;
  const folder = data ?? process.env.POSTHOUSE_DATA ?? defaultOf('data');
  return join(String(folder), 'relay.json');
}

/** The values of the flags, by the settings' paths, with what follows from them. */
function chosenFlags(
  flags: InitFlags,
  isNew: boolean,
): Record<string, string | boolean | undefined> {
  const { url } = flags;
  const values = { ...flagValues(flags) };
  if (flags.private && isNew) values.network ??= newContext();
  if (url === undefined) return values;
  const { hostname } = new URL(url);
  const hasName = !/^[\d.]+$|^\[/.test(hostname);
  if (hasName) values['public.peer'] ??= `/dns4/${hostname}/tcp/${peerPort}`;
  return { ...values, 'public.https': url };
}

/** What the configuration file gets: the values of the command line, and the data folder. */
function chosenValues({ config, sources }: LoadedConfig): Record<string, unknown> {
  const chosen = [...sources].filter(([, source]) => source === 'command line');
  const values = chosen.map(([path]) => [
    path,
    path.split('.').reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], config),
  ]);
  return { ...Object.fromEntries(values), data: resolve(config.data) };
}

/** The setting that names the token of the admin interface. */
const tokenSetting = 'operations.adminTokenFile';

/** The token's file: the one of the configuration, or one in the data folder. */
function tokenFile({ data, operations }: RelayConfig): string {
  return resolve(operations.adminTokenFile || join(data, 'admin.token'));
}

/** Makes the token of the admin interface, and says what makes use of it. */
async function makeToken(config: RelayConfig, isNew: boolean): Promise<void> {
  const path = tokenFile(config);
  if (await createToken(path, nodeRandom)) note(`admin token ${path}`);
  const { adminTokenFile, listen } = config.operations;
  const missing = [
    ...(adminTokenFile === '' && !isNew ? [`${tokenSetting} to this file`] : []),
    ...(listen === '' ? ['operations.listen to a loopback address, as in 127.0.0.1:9464'] : []),
  ];
  if (missing.length > 0) note(`for the admin interface, set ${missing.join(', and ')}`);
}

/** The port for other relays, as in the default of `federation.listen`. */
const peerPort = 4201;

/** Chooses the context of a private network, which no chain has (01 §1). */
function newContext(): string {
  const magic = Buffer.from(nodeRandom(4)).readUInt32BE();
  return `neo:${magic}:0x${Buffer.from(nodeRandom(20)).toString('hex')}`;
}

/** Writes the configuration file, and says what the relay still needs before it can start. */
async function writeConfig(path: string, values: Readonly<Record<string, unknown>>): Promise<void> {
  makeFolder(dirname(resolve(path)));
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(commentedConfig(values));
  await file.sync();
  note(`configuration ${resolve(path)}`);
  try {
    loadConfig({ file: path, environment: process.env });
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    note('Set these in it before the first start:');
    for (const problem of error.problems) note(`  ${problem}`);
  }
  note(`Then: posthouse serve --config ${path}, and while it runs posthouse invite create`);
}
