/** `posthouse channel`: the channels that this relay hosts. */
import { ChannelId } from '@posthouse/protocol';
import type { Command } from 'commander';
import { addOwnerCommands } from './owners-view.ts';
import { asksStorage } from './storage-command.ts';

const help = `
The command works whether the relay runs or not.

Exit status: 0 done, 1 failed or no such channel, 2 wrong arguments or configuration.

Examples:
  posthouse channel list --config relay.json
  posthouse channel show chan_0NM6hMaxkR3u59ygBrOYew --config relay.json`;

/** Completes `posthouse channel`. */
export function configure(command: Command): void {
  const channel = asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }));
  addOwnerCommands(channel, {
    ...{ kind: 'channel', member: 'channel_id', id: ChannelId, form: 'chan_ and 22 characters' },
    columns: ['name', 'status', 'owner'],
  });
}
