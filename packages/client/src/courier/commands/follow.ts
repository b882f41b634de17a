/** `courier follow --exec`: runs a program for each new message. */
import type { Command } from 'commander';
import type { AccountEvent } from '../../events.ts';
import type { AccountSession, CliEnvironment } from '../client-session.ts';
import { eventShape } from '../event-shapes.ts';
import { UsageError } from '../exit.ts';
import { followEvents } from '../follow-events.ts';
import { noteEvent } from '../message-output.ts';
import { jsonLine } from '../output.ts';
import { runProgram } from '../run-program.ts';
import { onAccount, withOptions } from './context.ts';

interface FollowOptions {
  readonly exec: string;
  readonly shell?: boolean;
  readonly timeout: string;
  readonly reader: string;
}

/** Longest time for one message, in seconds. */
const longestTimeout = 86_400;

export function followCommand(base: Command, environment: CliEnvironment): Command {
  const command = withOptions(base)
    .requiredOption('--exec <program>', 'program to run; its input is the message as JSON')
    .option('--shell', 'the program is a command line for /bin/sh')
    .option('--timeout <seconds>', 'time for one message, after which the program is ended', '60')
    .option(
      '--reader <name>',
      'gets each message once, over restarts: name the second of two programs on a folder',
      'exec',
    );
  return onAccount<FollowOptions>(command, environment, async (session, { options, args }) => {
    const { account, signal } = session;
    const timeout = Number(options.timeout);
    if (!(timeout > 0 && timeout <= longestTimeout)) {
      throw new UsageError(`--timeout: give seconds, at most ${longestTimeout}`);
    }
    const { reader } = options;
    for await (const event of followEvents(account, signal, { reader })) {
      const variables = variablesOf(event, account.id);
      if (variables === undefined) {
        if (event.kind === 'events-missed') session.out.result({ event: event.kind }, () => []);
        await noteEvent(session, event);
        continue;
      }
      const failure = await runProgram({
        program: options.exec,
        args,
        isShell: options.shell === true,
        env: { ...withoutSecrets(environment.env), COURIER_HOME: session.folder, ...variables },
        input: `${jsonLine(eventShape(event, account.id))}\n`,
        timeout: timeout * 1_000,
        signal,
      });
      if (signal.aborted) return;
      report(session, { id: variables.COURIER_MESSAGE_ID, failure });
      await session.out.drained();
    }
  });
}

/** A program gets no password that was meant for this command. */
function withoutSecrets({ COURIER_WALLET_PASSWORD: _, ...env }: NodeJS.ProcessEnv) {
  return env;
}

/** Prints what became of one message. A failing program does not end the command. */
function report(
  { out }: AccountSession,
  { id, failure }: { readonly id: string; readonly failure: string | undefined },
): void {
  out.result({ event: 'exec', message_id: id, failure }, () => []);
  if (failure !== undefined) out.note(`message ${id}: the program failed: ${failure}`);
}

/** Returns the environment variables of a message of another account. */
function variablesOf(event: AccountEvent, self: string) {
  switch (event.kind) {
    case 'message': {
      const { from, messageId } = event.message;
      return from === self ? undefined : variables(event.kind, from, messageId);
    }
    case 'group-message': {
      const { from, messageId, outcome } = event.message;
      if (from === self || outcome !== 'applied') return undefined;
      return { ...variables(event.kind, from, messageId), COURIER_GROUP: event.groupId };
    }
    case 'channel-post': {
      const { from, messageId } = event.post;
      if (from === self) return undefined;
      return { ...variables(event.kind, from, messageId), COURIER_CHANNEL: event.channelId };
    }
    default:
      return undefined;
  }
}

function variables(event: string, from: string, messageId: string) {
  return { COURIER_EVENT: event, COURIER_FROM: from, COURIER_MESSAGE_ID: messageId };
}
