/** The command line of `posthouse`: one file for each verb. */
import { Command } from 'commander';
import manifest from '#package.json' with { type: 'json' };
import { commandOutput } from './terminal-output.ts';

/** A verb: its name, what it is for, and the file that completes it. */
type Verb = readonly [
  name: string,
  description: string,
  load: () => Promise<{ configure(command: Command): void }>,
];

const verbs: readonly Verb[] = [
  ['serve', 'run the relay', () => import('./serve.ts')],
  [
    'dev',
    'run several relays of one network in this process, for development',
    () => import('./dev.ts'),
  ],
  [
    'init',
    "create the relay's keys, and a configuration file with all settings",
    () => import('./init.ts'),
  ],
  ['descriptor', "print the relay's signed descriptor", () => import('./descriptor.ts')],
  [
    'backup',
    "copy the relay's database to a file, while the relay runs",
    () => import('./backup.ts'),
  ],
  ['verify', 'read all of a backup, and verify it', () => import('./verify.ts')],
  ['restore', 'make a data folder from a backup', () => import('./restore.ts')],
  [
    'restored',
    'mark a database that was put back by other means, before the relay starts',
    () => import('./restored.ts'),
  ],
  ['move', "move the relay's whole state to another database", () => import('./move.ts')],
  ['invite', 'create, list and revoke invites for new accounts', () => import('./invite.ts')],
  [
    'account',
    'let accounts in, list those that wait, list and show those that are here',
    () => import('./account.ts'),
  ],
  ['group', 'list and show the groups that the relay hosts', () => import('./group.ts')],
  ['channel', 'list and show the channels that the relay hosts', () => import('./channel.ts')],
  [
    'stats',
    'count accounts, groups, channels and bytes, and show the largest',
    () => import('./stats.ts'),
  ],
  ['reports', 'list reports of posts in channels, the newest last', () => import('./reports.ts')],
  [
    'peers',
    'list other relays, their state, and the mail that waits for them',
    () => import('./peers.ts'),
  ],
  ['block', 'refuse other relays, and list those that are refused', () => import('./block.ts')],
  [
    'registry',
    "this relay's record in the registry, and how to change it",
    () => import('./registry.ts'),
  ],
  [
    'compact',
    'give the room that the embedded database does not use back to the disk',
    () => import('./compact.ts'),
  ],
  ['clock', 'show whether the clock is trusted, or accept it', () => import('./clock.ts')],
  [
    'check',
    'check the relay on this machine and under its public address',
    () => import('./check.ts'),
  ],
  ['doctor', 'the same, and whether other relays reach this one', () => import('./doctor.ts')],
  [
    'web',
    'compare the messenger that an address serves with the one of this installation',
    () => import('./web.ts'),
  ],
  ['config', 'show the configuration', () => import('./config.ts')],
];

/**
 * Builds the command line, ready to parse. A verb's file, with all that it imports, is loaded only if the
 * arguments name the verb.
 *
 * @param given arguments; all verbs are loaded without them
 */
export async function createProgram(given?: readonly string[]): Promise<Command> {
  const program = new Command('posthouse')
    .description('A relay of a network in which people own their accounts.')
    .version(manifest.version, '--version', 'print the version')
    // Flags after a command's name belong to that command.
    .enablePositionalOptions();
  for (const [name, description, load] of verbs) {
    const command = new Command(name).description(description);
    if (given?.includes(name) ?? true) (await load()).configure(command);
    program.addCommand(command);
  }
  printSafely(program);
  return program;
}

/** Has the library print the texts of arguments as `note` does; a command inherits nothing when it is added. */
function printSafely(command: Command): void {
  command.configureOutput(commandOutput);
  for (const child of command.commands) printSafely(child);
}
