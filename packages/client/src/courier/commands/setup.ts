import { join } from 'node:path';
import { activeRelays } from '@posthouse/protocol';
import type { Command } from 'commander';
import { NodeTransport } from '../../connect/node-transport.ts';
import { askRelayEntry } from '../../connect/pinned-registry.ts';
import { isClientError } from '../../errors.ts';
import { givenKey, type KeyOptions, withKey } from '../account-key.ts';
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
import { onAction, withOptions } from './context.ts';

interface SetupOptions extends GlobalOptions, KeyOptions {
  readonly relay?: string;
  readonly keepKey?: boolean;
  readonly recover?: boolean;
  readonly invite?: string;
}

export function setupCommand(base: Command, environment: CliEnvironment): Command {
  const command = withKey(
    withOptions(base)
      .option('--relay <id or url>', 'home relay (default: any relay of the registry)')
      .option('--invite <code>', 'invite code of the home relay, if it asks for one'),
  )
    .option('--keep-key', "store the wallet's key in the folder too")
    .option('--recover', 'replace all devices of the account');
  return onAction<SetupOptions>(command, environment, async ({ options, out, folder }) => {
    prepareFolder(folder);
    const settings = await settingsFor(folder, options, environment);
    const context = { folder, out, environment };
    await withClient(settings, context, async ({ client, signal }) => {
      const network = networkOf(settings);
      const { keyFile, keepKey = keyFile !== undefined, recover = false } = options;
      const accountKey = await givenKey(network, options, environment);
      // From here on the folder may hold a new account key, even if the set-up fails.
      if (readSettings(folder) === undefined) writeSettings(folder, settings);
      const account = await client.setUp({
        ...(accountKey !== undefined && { accountKey }),
        keepKey,
        recover,
        relayId: await relayIdOf(settings, options.relay),
        inviteCode: options.invite,
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
        out.note('The account key is stored in the folder. Back it up: courier key export');
      }
    });
  });
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
    throw new UsageError(
      'setup needs --registry FILE, or --network CONTEXT with --registry-node URL or --relay URL',
    );
  }
  const path = join(folder, 'registry.json');
  const settings = { ...common, network, registry: path };
  await trustRelay(settings, options.relay, environment.signal);
  return settings;
}

/**
 * Writes a registry file for the relay at a URL. The relay's own claim of its ID is trusted this
 * once; from then on the client connects to this relay only.
 */
async function trustRelay(
  settings: Settings & { readonly registry: string },
  url: string,
  signal: AbortSignal,
): Promise<void> {
  using transport = new NodeTransport(
    settings.ca === undefined ? {} : { ca: readText(settings.ca) },
  );
  const network = networkOf(settings);
  const entry = await askRelayEntry(network, { endpoint: url, transport }, signal).catch(
    (cause: unknown) => {
      if (!isClientError(cause, 'relay_misbehaviour')) throw cause;
      throw new UsageError('--relay: no relay of this network is at that address: check the URL');
    },
  );
  const registry = { context: settings.network, relays: [entry] };
  writePrivate(settings.registry, `${JSON.stringify(registry, undefined, 2)}\n`);
}

/** Resolves an option to a relay ID: an ID, or the URL that the registry has for a relay. */
export async function relayIdOf(
  settings: Settings,
  relay: string | undefined,
  option = '--relay',
): Promise<string | undefined> {
  if (relay?.startsWith('https://') !== true) return relay;
  const endpoint = relay.replace(/\/$/, '');
  using toNodes = new NodeTransport();
  const registry = registryOf(networkOf(settings), settings.registry, toNodes);
  for (const entry of await activeRelays(registry)) {
    if (entry.endpoint.replace(/\/$/, '') === endpoint) return entry.relay_id;
  }
  throw new UsageError(`${option}: the registry has no relay at ${relay}: use one of its relays`);
}
