/** Arguments and flags of the commands about posts and reports. */
import { AccountId, ChannelId, TargetSequence, type TSchema, Type } from '@posthouse/protocol';
import type { Command } from 'commander';
import { argument, subcommand } from './storage-command.ts';

/** Default of --limit. */
export const defaultLimit = 50;
const maxLimit = 100_000;

/** Help text of --limit. */
export const limitMeaning = `how many to show, the newest; default ${defaultLimit}`;

/** Creates a command about one post. */
export function aboutPost(name: string, description: string): Command {
  return subcommand(name, description)
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

/** All flags of these commands; each command has some of them. */
export interface OwnFlags {
  readonly channel?: string;
  readonly limit?: number;
  readonly json?: boolean;
  readonly account?: string;
  readonly yes?: boolean;
}
