/** Declares a command of `courier`: its options, and the session that its action gets. */
import { type Command, Option } from 'commander';
import {
  type AccountSession,
  type CliEnvironment,
  type ClientSession,
  settingsInForce,
  withClient,
} from '../client-session.ts';
import { newCommand } from '../command-signature.ts';
import { Interrupted } from '../exit.ts';
import { createOutput, type Output } from '../output.ts';
import { dataFolder, type GlobalOptions } from '../settings.ts';

/** Creates a verb of a command, with the options that all have. @param signature name and parameters */
export function subcommand(signature: string, description: string): Command {
  return withOptions(newCommand(signature, description));
}

/** Adds several verbs to a command; the first one runs if none is given. */
export function withVerbs(command: Command, verbs: readonly Command[]): Command {
  for (const [index, verb] of verbs.entries()) {
    command.addCommand(verb, { isDefault: index === 0 });
  }
  return command;
}

/** Adds the options that all commands have. */
export function withOptions(command: Command): Command {
  return command
    .option('--data <folder>', 'folder of the account (default: COURIER_HOME, or ~/.courier)')
    .option('--json', 'write JSON for programs')
    .option('--ids', 'print account IDs instead of names')
    .option('--network <context>', 'network context neo:<magic>:<registry>')
    .option('--service <word>', 'service word of the network')
    .option('--registry <file>', 'registry file')
    .option(
      '--registry-node <url>',
      'node of the chain that has the registry (repeatable)',
      several,
    )
    .addOption(
      new Option('--registry-agree <count>', 'nodes that must agree on a relay').choices([
        '1',
        '2',
      ]),
    )
    .option('--ca <file>', 'certificate authority of the relays, PEM');
}

export interface ActionContext<O> {
  readonly options: O & GlobalOptions;
  readonly args: readonly string[];
}

/** Registers the action of a command that needs no client. */
export function onAction<O>(
  command: Command,
  environment: CliEnvironment,
  action: (
    context: ActionContext<O> & { readonly out: Output; readonly folder: string },
  ) => Promise<void>,
): Command {
  return command.action(async (...given: unknown[]) => {
    const options = given.at(-2) as O & GlobalOptions;
    // Empty words stay: dropping one would make the next word take its place.
    const args = given
      .slice(0, -2)
      .flatMap((value) => (value as string | string[] | undefined) ?? []);
    const out = createOutput(environment, {
      isJson: options.json === true,
      showsIds: options.ids === true,
    });
    const folder = dataFolder(options, environment.env);
    await action({ options, args, out, folder });
  });
}

/** Registers the action of a command on the folder's client; an account need not be set up. */
function onClient<O>(
  command: Command,
  environment: CliEnvironment,
  action: (session: ClientSession, context: ActionContext<O>) => Promise<void>,
): Command {
  return onAction<O>(command, environment, async ({ options, args, out, folder }) => {
    const settings = settingsInForce(options, environment.env);
    const context = { folder, out, environment };
    await withClient(settings, context, (session) => action(session, { options, args }));
  });
}

/** Registers the action of a command on the folder's account. @throws ClientError `not_set_up` */
export function onAccount<O>(
  command: Command,
  environment: CliEnvironment,
  action: (session: AccountSession, context: ActionContext<O>) => Promise<void>,
): Command {
  return onClient<O>(command, environment, async (session, context) => {
    const account = await session.client.account();
    try {
      await action({ ...session, account }, context);
    } catch (error) {
      if (!session.signal.aborted) throw error;
      throw new Interrupted((await account.status()).outbox > 0);
    }
  });
}

/** Collects the values of an option that may be given several times. */
export function several(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}
