/** What the commands about posts and reports take: arguments, flags, and the relay's database. */
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

/** Rows that are shown where nobody says how many. */
export const usualLimit = 50;
const mostShown = 100_000;

export const limitMeaning = `the newest so many, ${usualLimit} where it is left out`;

export function command(name: string, description: string): Command {
  return withConfig(new Command(name).description(description)).exitOverride((error) =>
    process.exit(error.exitCode === 0 ? 0 : 2),
  );
}

/** A command about one post. */
export function aboutPost(name: string, description: string): Command {
  return command(name, description)
    .argument('<channel>', 'its ID, chan_…', channelOf)
    .argument('<sequence>', "the post's position in it", sequenceOf);
}

export const channelOf = (text: string) => argument(ChannelId, text, 'chan_ and 22 characters');
export const accountOf = (text: string) => argument(AccountId, text, 'neo:<magic>:<address>');
const sequenceOf = (text: string) => integer(TargetSequence, text, 'a number from 1');
export const limitOf = (text: string) =>
  integer(Type.Integer({ minimum: 1, maximum: mostShown }), text, `1 to ${mostShown}`);

function integer(schema: TSchema, text: string, expected: string): number {
  return argument<number>(schema, /^[0-9]+$/.test(text) ? Number(text) : text, expected);
}

/** What commander is given for a text, where it fits. */
function argument<T>(schema: TSchema, value: T | string, expected: string): T {
  try {
    checkSchema(schema, value);
  } catch {
    throw new InvalidArgumentError(`Expected ${expected}.`);
  }
  return value as T;
}

/** A post, as an operator names it. */
export interface Named {
  readonly channelId: string;
  readonly sequence: number;
}

/** Flags of the commands, each of some of them. */
interface OwnFlags {
  readonly channel?: string;
  readonly limit?: number;
  readonly json?: boolean;
  readonly account?: string;
  readonly yes?: boolean;
}

/** Flags of a command, wherever they stood. */
export function flagsOf(of: Command): { readonly config: RelayConfig; readonly own: OwnFlags } {
  const flags = of.optsWithGlobals();
  return { config: configFrom(flags as Flags, 'storage').config, own: flags as OwnFlags };
}

/** Does something beside the relay, which may run. */
export async function using<T>(
  config: RelayConfig,
  work: (storage: Storage) => Promise<T>,
): Promise<T> {
  await using storage = await openAlongside(config, relayMigrations);
  return await work(storage);
}
