/** The command `courier`, as a function: arguments in, exit status out. */
import { Command, CommanderError } from 'commander';
import type { CliEnvironment } from './client-session.ts';
import {
  keyExportCommand,
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
import { moveCommand } from './commands/move.ts';
import { setupCommand } from './commands/setup.ts';
import { exitCodes, failureOf } from './exit.ts';
import { columns, jsonLine, printable } from './output.ts';

const help = `
Begin with:
  courier setup --registry relay/registry.json --ca relay/tls/ca.pem
  courier invite                 prints an invite to give to another person
  courier accept <invite>        or accepts the invite of another person
  courier send <contact> hello
  courier inbox --follow
  courier group create Chess club
  courier channel create Release notes

Exit status:
${columns(Object.values(exitCodes).map(({ code, meaning }) => [`  ${code}`, meaning])).join('\n')}
`;

/** Builds the whole command line, ready to parse. */
function courier(environment: CliEnvironment): Command {
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
    .addCommand(setupCommand(environment))
    .addCommand(whoamiCommand(environment))
    .addCommand(profileCommand(environment))
    .addCommand(inviteCommand(environment))
    .addCommand(acceptCommand(environment))
    .addCommand(declineCommand(environment))
    .addCommand(
      group('contacts', 'other accounts', [
        listContactsCommand(environment),
        renameContactCommand(environment),
        removeContactCommand(environment),
      ]),
    )
    .addCommand(sendCommand(environment))
    .addCommand(inboxCommand(environment))
    .addCommand(groupCommand(environment))
    .addCommand(channelCommand(environment))
    .addCommand(
      group('devices', 'the devices of the account', [
        listDevicesCommand(environment),
        requestDeviceCommand(environment),
        approveDeviceCommand(environment),
        completeDeviceCommand(environment),
        renewDeviceCommand(environment),
        removeDeviceCommand(environment),
      ]),
    )
    .addCommand(statusCommand(environment))
    .addCommand(syncCommand(environment))
    .addCommand(moveCommand(environment))
    .addCommand(
      new Command('key').description('the account key').addCommand(keyExportCommand(environment)),
    );
  configure(root, environment);
  return root;
}

/** Makes commander write to the environment's streams and throw instead of exiting. */
function configure(command: Command, environment: CliEnvironment): void {
  command.exitOverride().configureOutput({
    writeOut: (text) => environment.write(text),
    writeErr: (text) => environment.writeError(text),
  });
  for (const child of command.commands) configure(child, environment);
}

/**
 * Runs one command.
 * @param args without the program itself
 * @returns the exit status
 */
export async function runCourier(
  args: readonly string[],
  environment: CliEnvironment,
): Promise<number> {
  try {
    await courier(environment).parseAsync([...args], { from: 'user' });
    return exitCodes.ok.code;
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? exitCodes.ok.code : exitCodes.usage.code;
    }
    if (environment.signal.aborted) return exitCodes.interrupted.code;
    const { exit, ...failure } = failureOf(error);
    const isJson = args.includes('--json');
    const text = isJson ? jsonLine({ error: failure }) : `courier: ${printable(failure.message)}`;
    environment.writeError(`${text}\n`);
    return exit;
  }
}
