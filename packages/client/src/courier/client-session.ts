/** What a command works with: the folder's client, opened for it and closed after it. */
import { join } from 'node:path';
import type { Account } from '../account.ts';
import { Client } from '../client.ts';
import { NodeTransport } from '../connect/node-transport.ts';
import { ClientError } from '../errors.ts';
import { SqliteStore } from '../store/sqlite.ts';
import type { Output } from './output.ts';
import {
  dataFolder,
  type GlobalOptions,
  mergedSettings,
  networkOf,
  prepareFolder,
  readSettings,
  readText,
  registryOf,
  type Settings,
} from './settings.ts';

/** The world outside the command; tests pass their own. */
export interface CliEnvironment {
  readonly env: NodeJS.ProcessEnv;
  write(text: string): void;
  writeError(text: string): void;
  /** Everything on standard input. */
  readInput(): Promise<string>;
  /** Asks a person for a secret. @throws UsageError where nobody can be asked */
  askSecret(question: string): Promise<string>;
  /** Ends what runs until it is ended. */
  readonly signal: AbortSignal;
}

export interface ClientSession {
  readonly client: Client;
  readonly settings: Settings;
  readonly folder: string;
  readonly out: Output;
  readonly environment: CliEnvironment;
  readonly signal: AbortSignal;
}

/** A command on an account that is set up. */
export interface AccountSession extends ClientSession {
  readonly account: Account;
}

/** Opens the folder of a command. @throws ClientError `not_set_up`; UsageError */
export function settingsInForce(options: GlobalOptions, env: NodeJS.ProcessEnv): Settings {
  const {
    network,
    service = 'svc',
    registry,
    ca,
  } = mergedSettings(readSettings(dataFolder(options, env)), options);
  if (network === undefined || registry === undefined) {
    throw new ClientError('not_set_up', 'no account is set up here; begin with: courier setup');
  }
  return { network, service, registry, ...(ca !== undefined && { ca }) };
}

/** Runs work with the client of a folder. */
export async function withClient<T>(
  settings: Settings,
  context: {
    readonly folder: string;
    readonly out: Output;
    readonly environment: CliEnvironment;
  },
  work: (session: ClientSession) => Promise<T>,
): Promise<T> {
  const { folder, environment } = context;
  prepareFolder(folder);
  const network = networkOf(settings);
  const registry = registryOf(network, settings.registry);
  const ca = settings.ca === undefined ? {} : { ca: readText(settings.ca) };
  using transport = new NodeTransport(ca);
  await using store = SqliteStore.open(join(folder, 'store.sqlite'));
  await using client = await Client.open({ network, registry, transport, store });
  return await work({ client, settings, ...context, signal: environment.signal });
}
