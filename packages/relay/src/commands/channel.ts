/** `posthouse channel`: the channels that this relay hosts. */
import { ChannelId } from '@posthouse/protocol';
import type { Command } from 'commander';
import { addOwnerCommands } from './owners-view.ts';
import { channelOf } from './reports-arguments.ts';
import { asksStorage, subcommand } from './storage-command.ts';
import { instant, print } from './terminal-output.ts';
import { untilMeaning, untilOf } from './until.ts';
import { withVerbs } from './verb-command.ts';

const help = `
The command works whether the relay runs or not.

Exit status: 0 done, 1 failed or no such channel, 2 wrong arguments or configuration.

Examples:
  posthouse channel list --config relay.json
  posthouse channel show chan_0NM6hMaxkR3u59ygBrOYew --config relay.json
  posthouse channel close-here chan_0NM6hMaxkR3u59ygBrOYew --reason spam --config relay.json`;

const closeHelp = `
Until it is opened again, the channel is as if this relay did not host it: nothing is read, written or
subscribed. Its posts stay until their retention is over; copies that clients have stay there. A running
relay applies it within two seconds. To open it again: posthouse block remove channel <id>. It is the same
as posthouse block add channel <id>; posthouse block list shows it.`;

interface CloseFlags {
  readonly reason?: string;
  readonly until?: number;
}

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
  }).addCommand(
    subcommand('close-here', 'close a channel at this relay; it can be opened again')
      .argument('<channel>', 'ID of the channel', channelOf)
      .option('--reason <text>', 'why, for `block list`')
      .option('--until <time>', untilMeaning, untilOf)
      .addHelpText('after', closeHelp)
      .action((id, _, of) => closeHere(id, of)),
  );
}

async function closeHere(channel: string, of: Command): Promise<void> {
  await withVerbs<CloseFlags, void>(of, async (verbs, { reason = '', until }) => {
    const params = { channel, reason, ...(until !== undefined && { until }) };
    const { is_new } = await verbs.call('block', 'add', params);
    const end = until === undefined ? '' : ` until ${instant(until)}`;
    print([`channel ${channel} is closed here${is_new === true ? '' : ' already'}${end}`]);
  });
}
