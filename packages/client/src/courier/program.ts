/** The command `courier`, as a function: arguments in, exit status out. */
import { type Command, CommanderError, type OutputConfiguration } from 'commander';
import manifest from '../../package.json' with { type: 'json' };
import type { CliEnvironment, Program } from './client-session.ts';
import { newCommand } from './command-signature.ts';
import { exitCodes, Interrupted } from './exit.ts';
import { columns, jsonLine, printable } from './output.ts';

/** A verb: name and parameters, what it is for, and how to load the function that completes it. */
type Verb = readonly [
  signature: string,
  description: string,
  load: () => Promise<(base: Command, environment: CliEnvironment, program: Program) => Command>,
];

const verbs: readonly Verb[] = [
  [
    'setup',
    'create an account on a relay, or add this device to an account',
    async () => (await import('./commands/setup.ts')).setupCommand,
  ],
  [
    'whoami',
    'show account, device and home relay of the folder',
    async () => (await import('./commands/account.ts')).whoamiCommand,
  ],
  [
    'profile [account]',
    'show a profile, or publish your own',
    async () => (await import('./commands/account.ts')).profileCommand,
  ],
  [
    'invite',
    'print an invite; anyone who has it may ask to be a contact',
    async () => (await import('./commands/contacts.ts')).inviteCommand,
  ],
  [
    'accept <whom>',
    'accept an invite or a contact request, or ask a public account',
    async () => (await import('./commands/contacts.ts')).acceptCommand,
  ],
  [
    'reject <account>',
    'reject a request; the other account is not notified',
    async () => (await import('./commands/contacts.ts')).rejectCommand,
  ],
  [
    'contacts',
    'other accounts',
    async () => (await import('./commands/contacts.ts')).contactsCommand,
  ],
  [
    'send <to> [text...]',
    'send a message; without text, standard input is sent',
    async () => (await import('./commands/messages.ts')).sendCommand,
  ],
  [
    'fetch <message>',
    'download the files of a message, by its ID',
    async () => (await import('./commands/fetch.ts')).fetchCommand,
  ],
  [
    'inbox',
    'catch up and show messages',
    async () => (await import('./commands/messages.ts')).inboxCommand,
  ],
  [
    'chat <contact>',
    'talk with a contact: each line of input is a message',
    async () => (await import('./commands/chat.ts')).chatCommand,
  ],
  [
    'conversations',
    'show people, groups and channels, those with the newest messages first',
    async () => (await import('./commands/conversations.ts')).conversationsCommand,
  ],
  [
    'follow [parameters...]',
    'run a program for each new message',
    async () => (await import('./commands/follow.ts')).followCommand,
  ],
  [
    'group',
    'groups, their members and messages',
    async () => (await import('./commands/groups.ts')).groupCommand,
  ],
  [
    'channel',
    'public channels: following and publishing',
    async () => (await import('./commands/channels.ts')).channelCommand,
  ],
  [
    'devices',
    'the devices of the account',
    async () => (await import('./commands/devices.ts')).devicesCommand,
  ],
  [
    'status',
    'show what this device has read, and what waits to be sent',
    async () => (await import('./commands/account.ts')).statusCommand,
  ],
  [
    'serve',
    'the commands for another program: JSON-RPC over standard input and output',
    async () => (await import('./commands/serve.ts')).serveCommand,
  ],
  ['sync', 'catch up once', async () => (await import('./commands/account.ts')).syncCommand],
  [
    'move',
    'move the account to another home relay',
    async () => (await import('./commands/move.ts')).moveCommand,
  ],
  [
    'completion <shell>',
    'print a script with which bash, zsh or fish completes the command line',
    async () => (await import('./commands/completion.ts')).completionCommand,
  ],
  ['key', 'the account key', async () => (await import('./commands/account.ts')).keyCommand],
];

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

/**
 * Builds the command line, ready to parse. The file of a verb, with all that it imports, is loaded only
 * if the arguments name the verb; without arguments all are.
 */
export async function courier(
  args: readonly string[] | undefined,
  environment: CliEnvironment,
): Promise<Command> {
  const root = newCommand('courier', 'Messages between accounts that belong to their owners.');
  root.version(manifest.version, '--version', 'print the version').addHelpText('after', help);
  for (const [signature, description, load] of verbs) {
    const command = newCommand(signature, description);
    if (args?.includes(command.name()) ?? true) (await load())(command, environment, program);
    root.addCommand(command);
  }
  configure(root, {
    writeOut: (text) => environment.write(text),
    // With --json, the failure is written as JSON instead.
    writeErr: (text) => asksForJson(args ?? []) || environment.writeError(text),
    // Written with the command that it is about, when it is caught.
    outputError: () => {},
  });
  return root;
}

/** Makes commander write to the given streams and throw instead of exiting. */
function configure(command: Command, output: OutputConfiguration, path = 'courier'): void {
  const fail = (error: CommanderError) => {
    failedAt.set(error, { command, path });
    throw error;
  };
  command.exitOverride(fail).configureOutput(output);
  for (const child of command.commands) configure(child, output, `${path} ${child.name()}`);
}

/** The command that arguments were wrong for. */
const failedAt = new WeakMap<
  CommanderError,
  { readonly command: Command; readonly path: string }
>();

/** Whether the options contain `--json`; after `--` there are no options. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? args.length : end).includes('--json');
}

/** Formats what commander reports about wrong arguments as one sentence. */
function usageMessage(error: CommanderError): string {
  const { command } = failedAt.get(error) ?? {};
  // A word that is no verb is given to the verb that runs without one.
  const isVerb = command?.parent?.parent && command.registeredArguments.length === 0;
  if (isVerb && error.code === 'commander.excessArguments') {
    return `unknown command '${command.args[0]}'`;
  }
  const message = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
  const isEarly = error.code === 'commander.unknownOption' && command?.parent === null;
  return `${message.replace(/\.$/, '')}${isEarly ? ' here: options come after the command' : ''}`;
}

/** Returns where the right arguments are listed. */
function helpOf(error: CommanderError): string {
  const { command, path = 'courier' } = failedAt.get(error) ?? {};
  const isUnknownVerb =
    error.code === 'commander.excessArguments' && command?.registeredArguments.length === 0;
  return `${isUnknownVerb ? path.replace(/(?<= \w+) \w+$/, '') : path} --help`;
}

const keptNote = 'It is stored; the next command that reaches the relay sends it.';

const waitingNote =
  'Interrupted. What was not confirmed yet is stored; the next command that reaches the relay sends it.';

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
    const command = await courier(args, environment);
    await command.parseAsync([...args], { from: 'user' });
    return exitCodes.ok.code;
  } catch (error) {
    const isJson = asksForJson(args);
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return exitCodes.ok.code;
      const failure = { code: 'usage', message: usageMessage(error) };
      if (isJson) environment.writeError(`${jsonLine({ error: failure })}\n`);
      else if (error.code !== 'commander.help') {
        environment.writeError(`courier: ${printable(failure.message)}; see: ${helpOf(error)}\n`);
      }
      return exitCodes.usage.code;
    }
    if (environment.signal.aborted) {
      if (error instanceof Interrupted && error.kept) {
        const failure = { code: 'interrupted', message: waitingNote, kept: true };
        environment.writeError(`${isJson ? jsonLine({ error: failure }) : waitingNote}\n`);
      }
      return exitCodes.interrupted.code;
    }
    const { failureOf } = await import('./failure.ts');
    const { exit, ...failure } = failureOf(error);
    const text = isJson ? jsonLine({ error: failure }) : `courier: ${printable(failure.message)}`;
    environment.writeError(`${text}\n`);
    if (failure.kept && !isJson) environment.writeError(`${keptNote}\n`);
    return exit;
  }
}

const program: Program = { build: courier, run: runCourier };
