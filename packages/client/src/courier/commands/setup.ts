import { join } from 'node:path';
import { decodeBase64url, type Network } from '@posthouse/protocol';
import { decodeUtf8, isJsonObject, parseJson } from '@posthouse/protocol/json';
import type { Command } from 'commander';
import { withDeadline } from '../../connect/deadline.ts';
import { NodeTransport } from '../../connect/node-transport.ts';
import { type WalletOptions, walletKey } from '../account-key.ts';
import { type CliEnvironment, withClient } from '../client-session.ts';
import { UsageError } from '../exit.ts';
import {
  contextOfRegistry,
  type GlobalOptions,
  mergedSettings,
  networkOf,
  prepareFolder,
  readSettings,
  readText,
  registryOf,
  type Settings,
  writePrivate,
  writeSettings,
} from '../settings.ts';
import { baseCommand, onAction } from './context.ts';

interface SetupOptions extends GlobalOptions, WalletOptions {
  readonly relay?: string;
  readonly keyFile?: string;
  readonly keepKey?: boolean;
  readonly recover?: boolean;
}

export function setupCommand(environment: CliEnvironment): Command {
  const command = baseCommand('setup', 'make an account on a relay, or this a device of an account')
    .option('--relay <id or url>', 'the home relay (default: any of the registry)')
    .option('--wallet <file>', 'NEP-6 wallet with the account key (default: a new key)')
    .option('--address <address>', 'which account of the wallet')
    .option('--key-file <file>', 'an account key that `courier key export` printed')
    .option('--keep-key', "keep the wallet's key in the folder too")
    .option('--recover', 'give up all devices the account has');
  return onAction<SetupOptions>(command, environment, async ({ options, out, folder }) => {
    prepareFolder(folder);
    const settings = await settingsFor(folder, options, environment);
    const context = { folder, out, environment };
    await withClient(settings, context, async ({ client, signal }) => {
      const network = networkOf(settings);
      const { keyFile, keepKey = keyFile !== undefined, recover = false } = options;
      const accountKey = await givenKey(network, options, environment);
      // The folder may hold a new account key from here on, whatever becomes of the set-up.
      if (readSettings(folder) === undefined) writeSettings(folder, settings);
      const account = await client.setUp({
        ...(accountKey !== undefined && { accountKey }),
        keepKey,
        recover,
        relayId: await relayIdOf(settings, options.relay),
        signal,
      });
      writeSettings(folder, settings);
      const { homeRelay } = await account.status();
      out.result(
        {
          account: account.id,
          device: account.deviceId,
          public_key: account.publicKey,
          relay: homeRelay,
        },
        () => [
          `account  ${account.id}`,
          `device   ${account.deviceId}`,
          `relay    ${homeRelay}`,
          `folder   ${folder}`,
        ],
      );
      if (accountKey === undefined) {
        out.note('The account key is in the folder; keep a copy: courier key export');
      }
    });
  });
}

/** The account key a person brings along; `undefined` where a new one is wanted. */
async function givenKey(
  network: Network,
  { wallet, address, keyFile }: SetupOptions,
  environment: CliEnvironment,
): Promise<Uint8Array | undefined> {
  if (wallet !== undefined && keyFile !== undefined) {
    throw new UsageError('either --wallet or --key-file');
  }
  if (wallet !== undefined) return await walletKey(network, { wallet, address }, environment);
  if (keyFile === undefined) return undefined;
  const key = decodeBase64url(readText(keyFile).trim());
  if (key?.length !== 32) throw new UsageError(`${keyFile}: not an account key`);
  return key;
}

async function settingsFor(
  folder: string,
  options: SetupOptions,
  environment: CliEnvironment,
): Promise<Settings> {
  const merged = mergedSettings(readSettings(folder), options);
  const { service = 'svc', ca } = merged;
  const common = { service, ...(ca !== undefined && { ca }) };
  if (merged.registry !== undefined) {
    const network = merged.network ?? contextOfRegistry(merged.registry);
    return { ...common, network, registry: merged.registry };
  }
  const { network } = merged;
  if (options.relay?.startsWith('https://') !== true || network === undefined) {
    throw new UsageError('setup needs --registry FILE, or --network CONTEXT with --relay URL');
  }
  const settings = { ...common, network, registry: join(folder, 'registry.json') };
  await trustRelay(settings, options.relay, environment.signal);
  return settings;
}

/**
 * Without a registry the relay behind an address is taken at its word once, and written down: from
 * then on only this relay is talked to.
 */
async function trustRelay(settings: Settings, url: string, signal: AbortSignal): Promise<void> {
  using transport = new NodeTransport(
    settings.ca === undefined ? {} : { ca: readText(settings.ca) },
  );
  const endpoint = url.replace(/\/$/, '');
  const { body } = await withDeadline(signal, 30_000, (bounded) =>
    transport.request({
      verb: 'GET',
      url: `${endpoint}/relay/descriptor`,
      headers: { accept: 'application/json' },
      signal: bounded,
      maxBytes: 262_144,
    }),
  );
  const relayId = claimedRelayId(body);
  const entry = { relay_id: relayId, endpoint, status: 'active', updated_at: Date.now() };
  const registry = { context: settings.network, relays: [entry] };
  writePrivate(settings.registry, `${JSON.stringify(registry, undefined, 2)}\n`);
}

/** What it claims is checked with the descriptor when the client discovers it. */
function claimedRelayId(body: Uint8Array): string {
  try {
    const value = parseJson(decodeUtf8(body));
    if (isJsonObject(value) && typeof value.relay_id === 'string') return value.relay_id;
  } catch {
    // Not JSON: no relay.
  }
  throw new UsageError('--relay: no relay answers at that address');
}

/** A relay may be named by its ID or by the address the registry has for it. */
export async function relayIdOf(
  settings: Settings,
  relay: string | undefined,
): Promise<string | undefined> {
  if (relay?.startsWith('https://') !== true) return relay;
  const endpoint = relay.replace(/\/$/, '');
  const registry = registryOf(networkOf(settings), settings.registry);
  for await (const entry of registry.listRelays()) {
    if (entry.endpoint.replace(/\/$/, '') === endpoint) return entry.relay_id;
  }
  throw new UsageError(`--relay: the registry has no relay at ${relay}`);
}
