#!/usr/bin/env node
/** The operator's command `posthouse`: one file in `commands/` for each verb. */
import { Command } from 'commander';
import manifest from '#package.json' with { type: 'json' };

/** A verb: its name, what it is for, and the file that completes it. */
type Verb = readonly [
  name: string,
  description: string,
  load: () => Promise<{ configure(command: Command): void }>,
];

const verbs: readonly Verb[] = [
  ['serve', 'run the relay', () => import('./commands/serve.ts')],
  [
    'dev',
    'run several relays of one network in this process, for development',
    () => import('./commands/dev.ts'),
  ],
  [
    'init',
    "create the relay's keys, and a configuration file with all settings",
    () => import('./commands/init.ts'),
  ],
  ['descriptor', "print the relay's signed descriptor", () => import('./commands/descriptor.ts')],
  [
    'backup',
    "copy the relay's database to a file, while the relay runs",
    () => import('./commands/backup.ts'),
  ],
  ['verify', 'read all of a backup, and verify it', () => import('./commands/verify.ts')],
  ['restore', 'make a data folder from a backup', () => import('./commands/restore.ts')],
  [
    'restored',
    'mark a database that was put back by other means, before the relay starts',
    () => import('./commands/restored.ts'),
  ],
  ['move', "move the relay's whole state to another database", () => import('./commands/move.ts')],
  [
    'invite',
    'create, list and revoke invites for new accounts',
    () => import('./commands/invite.ts'),
  ],
  [
    'account',
    'let accounts in, list those that wait, list and show those that are here',
    () => import('./commands/account.ts'),
  ],
  ['group', 'list and show the groups that the relay hosts', () => import('./commands/group.ts')],
  [
    'channel',
    'list and show the channels that the relay hosts',
    () => import('./commands/channel.ts'),
  ],
  [
    'stats',
    'count accounts, groups, channels and bytes, and show the largest',
    () => import('./commands/stats.ts'),
  ],
  [
    'reports',
    'list reports of posts in channels, the newest last',
    () => import('./commands/reports.ts'),
  ],
  [
    'peers',
    'list other relays, their state, and the mail that waits for them',
    () => import('./commands/peers.ts'),
  ],
  [
    'block',
    'refuse other relays, and list those that are refused',
    () => import('./commands/block.ts'),
  ],
  [
    'registry',
    "this relay's record in the registry, and how to change it",
    () => import('./commands/registry.ts'),
  ],
  [
    'compact',
    'give the room that the embedded database does not use back to the disk',
    () => import('./commands/compact.ts'),
  ],
  ['clock', 'show whether the clock is trusted, or accept it', () => import('./commands/clock.ts')],
  [
    'check',
    'check the relay on this machine and under its public address',
    () => import('./commands/check.ts'),
  ],
  [
    'doctor',
    'the same, and whether other relays reach this one',
    () => import('./commands/doctor.ts'),
  ],
  ['config', 'show the configuration', () => import('./commands/config.ts')],
];

const program = new Command('posthouse')
  .description('A relay of a network in which people own their accounts.')
  .version(manifest.version, '--version', 'print the version')
  // Flags after a command's name belong to that command.
  .enablePositionalOptions();
const given = process.argv.slice(2);

try {
  for (const [name, description, load] of verbs) {
    const command = new Command(name).description(description);
    // A verb's file, with all that it imports, is loaded only if the verb is used.
    if (given.includes(name)) (await load()).configure(command);
    program.addCommand(command);
  }
  await program.parseAsync();
} catch (error) {
  const { ConfigError, systemFault } = await import('./config/index.ts');
  if (error instanceof ConfigError) {
    process.stderr.write(`the configuration is invalid:\n${error.message}\n`);
    process.exitCode = 2;
  } else {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(`${systemFault(error) ?? message}\n`);
    process.exitCode = 1;
  }
}
