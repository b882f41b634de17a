/** `posthouse group`: the groups that this relay hosts. */
import { GroupId } from '@posthouse/protocol';
import type { Command } from 'commander';
import { addOwnerCommands } from './owners-view.ts';
import { asksStorage } from './storage-command.ts';

const help = `
Bytes are those of messages and events as they are stored, which the relay cannot read.

The command works whether the relay runs or not.

Exit status: 0 done, 1 failed or no such group, 2 wrong arguments or configuration.

Examples:
  posthouse group list --config relay.json
  posthouse group show grp_mVJXT_6BsLvV3wZMLfOUhg --config relay.json`;

/** Completes `posthouse group`. */
export function configure(command: Command): void {
  const group = asksStorage(command)
    // Flags after a verb belong to it.
    .enablePositionalOptions()
    .addHelpText('after', help)
    .action((_, of: Command) => of.help({ error: true }));
  addOwnerCommands(group, {
    ...{ kind: 'group', member: 'group_id', id: GroupId, form: 'grp_ and 22 characters' },
    columns: ['name', 'status', 'owner', 'members'],
  });
}
