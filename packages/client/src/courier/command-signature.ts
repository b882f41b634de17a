import { Command } from 'commander';

/** Creates a command with its parameters, without options. @param signature `name <a> [b...]` */
export function newCommand(signature: string, description: string): Command {
  const [name, ...parameters] = signature.split(' ');
  const command = new Command(name).description(description);
  for (const parameter of parameters) command.argument(parameter);
  return command;
}
