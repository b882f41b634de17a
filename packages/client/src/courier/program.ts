/** The command `courier`, as a function: arguments in, exit status out. */
import { Command, CommanderError } from 'commander';
import {
  keyExportCommand,
  moveCommand,
  profileCommand,
  statusCommand,
  syncCommand,
  whoamiCommand,
} from './commands/account.ts';
import { channelCommand } from './commands/channels.ts';
import {
  acceptCommand,
  declineCommand,
  inviteCommand,
  listContactsCommand,
  removeContactCommand,
  renameContactCommand,
} from './commands/contacts.ts';
import {
  approveDeviceCommand,
  completeDeviceCommand,
  listDevicesCommand,
  removeDeviceCommand,
  renewDeviceCommand,
  requestDeviceCommand,
} from './commands/devices.ts';
import { groupCommand } from './commands/groups.ts';
import { inboxCommand, sendCommand } from './commands/messages.ts';
import { setupCommand } from './commands/setup.ts';
import { exitCodes, failureOf } from './exit.ts';
import { columns, jsonLine, printable } from './output.ts';
import type { Surroundings } from './session.ts';

const help = `
Begin with:
  courier setup --registry relay/registry.json --ca relay/tls/ca.pem
  courier invite                 give the printed text to somebody
  courier accept <their invite>  or ask them, with theirs
  courier send <contact> hello
  courier inbox --follow
  courier group create Chess club
  courier channel create Release notes

Exit status:
${columns(Object.values(exitCodes).map(({ code, meaning }) => [`  ${code}`, meaning])).join('\n')}
`;

/** The whole command line, ready to parse. */
function courier(surroundings: Surroundings): Command {
  const group = (name: string, description: string, commands: readonly Command[]) => {
    const command = new Command(name).description(description);
    for (const [index, item] of commands.entries()) {
      command.addCommand(item, { isDefault: index === 0 });
    }
    return command;
  };
  const root = new Command('courier')
    .description('Messages between accounts that belong to their owners.')
    .addHelpText('after', help)
    .addCommand(setupCommand(surroundings))
    .addCommand(whoamiCommand(surroundings))
    .addCommand(profileCommand(surroundings))
    .addCommand(inviteCommand(surroundings))
    .addCommand(acceptCommand(surroundings))
    .addCommand(declineCommand(surroundings))
    .addCommand(
      group('contacts', 'other accounts', [
        listContactsCommand(surroundings),
        renameContactCommand(surroundings),
        removeContactCommand(surroundings),
      ]),
    )
    .addCommand(sendCommand(surroundings))
    .addCommand(inboxCommand(surroundings))
    .addCommand(groupCommand(surroundings))
    .addCommand(channelCommand(surroundings))
    .addCommand(
      group('devices', 'the devices of the account', [
        listDevicesCommand(surroundings),
        requestDeviceCommand(surroundings),
        approveDeviceCommand(surroundings),
        completeDeviceCommand(surroundings),
        renewDeviceCommand(surroundings),
        removeDeviceCommand(surroundings),
      ]),
    )
    .addCommand(statusCommand(surroundings))
    .addCommand(syncCommand(surroundings))
    .addCommand(moveCommand(surroundings))
    .addCommand(
      new Command('key').description('the account key').addCommand(keyExportCommand(surroundings)),
    );
  configure(root, surroundings);
  return root;
}

/** Commander neither writes past the surroundings nor ends the process. */
function configure(command: Command, surroundings: Surroundings): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => surroundings.write(text),
    writeErr: (text) => surroundings.writeError(text),
  });
  for (const child of command.commands) configure(child, surroundings);
}

/**
 * Runs one command.
 * @param args without the program itself
 * @returns the exit status
 */
export async function runCourier(
  args: readonly string[],
  surroundings: Surroundings,
): Promise<number> {
  try {
    await courier(surroundings).parseAsync([...args], { from: 'user' });
    return exitCodes.ok.code;
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? exitCodes.ok.code : exitCodes.usage.code;
    }
    if (surroundings.signal.aborted) return exitCodes.interrupted.code;
    const { exit, ...failure } = failureOf(error);
    const isJson = args.includes('--json');
    const text = isJson ? jsonLine({ error: failure }) : `courier: ${printable(failure.message)}`;
    surroundings.writeError(`${text}\n`);
    return exit;
  }
}
