/** Opens the folder's client for one command and closes it afterwards. */
import { join } from 'node:path';
import type { Command } from 'commander';
import type { Account } from '../account.ts';
import { Client } from '../client.ts';
import { NodeTransport } from '../connect/node-transport.ts';
import { ClientError } from '../errors.ts';
import { SqliteStore } from '../store/sqlite.ts';
import type { LineInput } from './line-input.ts';
import type { Output, Streams } from './output.ts';
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

/** Environment of the command: variables, streams, terminal, signal. Tests pass their own. */
export interface CliEnvironment extends Streams {
  readonly env: NodeJS.ProcessEnv;
  /** Everything on standard input. */
  readInput(): Promise<string>;
  /** Reads standard input a line at a time, until it ends or the signal aborts. */
  openLines(signal: AbortSignal): LineInput;
  /** Asks at the terminal for a secret. @throws UsageError if there is no terminal */
  askSecret(question: string): Promise<string>;
  /** The session that the command uses instead of its own: one for many commands. */
  readonly session?: ClientSession;
  /** Aborts the command, also one that follows until it is interrupted. */
  readonly signal: AbortSignal;
}

/** The command line itself, for commands that are about other commands. */
export interface Program {
  /** Builds the command line. Only commands that `args` name have their options; without `args`, all. */
  build(args: readonly string[] | undefined, environment: CliEnvironment): Promise<Command>;
  /** Runs one command. @returns the exit status */
  run(args: readonly string[], environment: CliEnvironment): Promise<number>;
}

export interface ClientSession {
  readonly client: Client;
  readonly settings: Settings;
  readonly folder: string;
  readonly out: Output;
  readonly environment: CliEnvironment;
  readonly signal: AbortSignal;
}

/** A client session with the account that is set up in the folder. */
export interface AccountSession extends ClientSession {
  readonly account: Account;
}

/** Merges the folder's settings with the options. @throws ClientError `not_set_up`; UsageError */
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

/** Runs work with the folder's client, and closes client, store and transport afterwards. */
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
  const { session, signal } = environment;
  if (session !== undefined) return await work({ ...session, ...context, signal });
  prepareFolder(folder);
  const network = networkOf(settings);
  // Nodes of the chain have certificates of public authorities, whatever the relays have.
  using toNodes = new NodeTransport();
  const registry = registryOf(network, settings.registry, toNodes);
  const ca = settings.ca === undefined ? {} : { ca: readText(settings.ca) };
  using transport = new NodeTransport(ca);
  await using store = SqliteStore.open(join(folder, 'store.sqlite'));
  await using client = await Client.open({ network, registry, transport, store });
  return await work({ client, settings, ...context, signal });
}
