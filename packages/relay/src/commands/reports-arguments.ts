/** Arguments and flags of the commands about posts and reports, and access to the database. */
import {
  AccountId,
  ChannelId,
  checkSchema,
  TargetSequence,
  type TSchema,
  Type,
} from '@posthouse/protocol';
import { Command, InvalidArgumentError } from 'commander';
import type { RelayConfig } from '../config/index.ts';
import { relayMigrations } from '../modules.ts';
import { openAlongside } from '../storage/open.ts';
import type { Storage } from '../storage/types.ts';
import { configFrom, type Flags, withConfig } from './config-flags.ts';

/** Default of --limit. */
export const defaultLimit = 50;
const maxLimit = 100_000;

/** Help text of --limit. */
export const limitMeaning = `how many to show, the newest; default ${defaultLimit}`;

/** Creates a command that exits with 2 for wrong arguments. */
export function command(name: string, description: string): Command {
  return withConfig(new Command(name).description(description)).exitOverride((error) =>
    process.exit(error.exitCode === 0 ? 0 : 2),
  );
}

/** Creates a command about one post. */
export function aboutPost(name: string, description: string): Command {
  return command(name, description)
    .argument('<channel>', 'ID of the channel, chan_…', channelOf)
    .argument('<sequence>', 'sequence of the post', sequenceOf);
}

export const channelOf = (text: string) => argument(ChannelId, text, 'chan_ and 22 characters');
export const accountOf = (text: string) => argument(AccountId, text, 'neo:<magic>:<address>');
const sequenceOf = (text: string) => integer(TargetSequence, text, 'a number from 1');
export const limitOf = (text: string) =>
  integer(Type.Integer({ minimum: 1, maximum: maxLimit }), text, `1 to ${maxLimit}`);

function integer(schema: TSchema, text: string, expected: string): number {
  return argument<number>(schema, /^[0-9]+$/.test(text) ? Number(text) : text, expected);
}

/** Returns an argument if it is valid; otherwise commander reports what was expected. */
function argument<T>(schema: TSchema, value: T | string, expected: string): T {
  try {
    checkSchema(schema, value);
  } catch {
    throw new InvalidArgumentError(`Expected ${expected}.`);
  }
  return value as T;
}

/** The address of a post. */
export interface PostAddress {
  readonly channelId: string;
  readonly sequence: number;
}

/** All flags of these commands; each command has some of them. */
interface OwnFlags {
  readonly channel?: string;
  readonly limit?: number;
  readonly json?: boolean;
  readonly account?: string;
  readonly yes?: boolean;
}

/** Returns the flags of a command and of its parents. */
export function flagsOf(of: Command): { readonly config: RelayConfig; readonly own: OwnFlags } {
  const flags = of.optsWithGlobals();
  return { config: configFrom(flags as Flags, 'storage').config, own: flags as OwnFlags };
}

/** Runs `work` on the database, whether the relay runs or not. */
export async function withStorage<T>(
  config: RelayConfig,
  work: (storage: Storage) => Promise<T>,
): Promise<T> {
  await using storage = await openAlongside(config, relayMigrations);
  return await work(storage);
}
