/** `courier serve --stdio`: the commands for another program, over one session. */
import type { Command } from 'commander';
import { channelOf } from '../channel-output.ts';
import type { AccountSession, CliEnvironment, Program } from '../client-session.ts';
import { commandLine, commandOf } from '../command-request.ts';
import { eventShape } from '../event-shapes.ts';
import { exitCodes, UsageError } from '../exit.ts';
import type { Failure } from '../failure.ts';
import { followEvents } from '../follow-events.ts';
import { groupOf } from '../group-output.ts';
import { accountOf } from '../names.ts';
import { RequestLanes } from '../request-lanes.ts';
import {
  errorLine,
  notificationLine,
  parseRequest,
  RpcError,
  type RpcRequest,
  resultLine,
} from '../rpc-messages.ts';
import { onAccount, withOptions } from './context.ts';

export function serveCommand(
  base: Command,
  environment: CliEnvironment,
  program: Program,
): Command {
  const command = withOptions(base)
    .requiredOption(
      '--stdio',
      'read requests from standard input and write answers and events to standard output',
    )
    .option('--reader <name>', 'gets each event once, over restarts with the same name');
  return onAccount<ServeOptions>(command, environment, async (opened, { options }) => {
    const ending = new AbortController();
    const signal = AbortSignal.any([opened.signal, ending.signal]);
    const session: Served = { ...opened, signal, program };
    using input = environment.openLines(signal);
    const following = notify(session, options);
    // A failure there, such as a removed device, ends the session.
    following.catch(() => ending.abort());
    const lanes = new RequestLanes();
    try {
      for await (const line of input.lines) {
        if (line === '') continue;
        await accept(session, lanes, line);
        // Not a request more is read than answers fit.
        await environment.drained();
      }
      await lanes.finish();
    } finally {
      ending.abort();
      await following;
    }
  });
}

interface ServeOptions {
  readonly reader?: string;
}

interface Served extends AccountSession {
  readonly program: Program;
}

/** Writes each event as a notification. */
async function notify(
  { account, environment, signal }: AccountSession,
  { reader }: ServeOptions,
): Promise<void> {
  for await (const event of followEvents(account, signal, { reader })) {
    environment.write(notificationLine('event', eventShape(event, account.id)));
    await environment.drained();
  }
}

/** Adds a request to its lane; answers at once what is none. */
async function accept(
  session: Served,
  lanes: RequestLanes,
  line: string | undefined,
): Promise<void> {
  const { write } = session.environment;
  let request: RpcRequest;
  try {
    request = parseRequest(line);
  } catch (error) {
    // Answered in any case: it may have been a notification, or a request without a readable ID.
    if (!(error instanceof RpcError)) throw error;
    write(errorLine(error.id, error));
    return;
  }
  const { id, method } = request;
  const fail = (error: unknown) => {
    const known =
      error instanceof RpcError ? error : new RpcError('internal', (error as Error).message);
    if (id !== undefined) write(errorLine(id, known));
  };
  try {
    const root = await session.program.build(method.split('.').slice(0, 1), session.environment);
    const found = commandOf(root, method);
    const args = commandLine(found, request);
    const work = async () => {
      await run(session, args).then((result) => {
        if (id !== undefined) write(resultLine(id, result));
      }, fail);
    };
    if (changesNames(found.words)) return await lanes.addAlone(work);
    // The lane is that of what the name means once the commands before have changed it.
    await lanes.untilShared();
    await lanes.add(await laneOf(session, found.words, args), work);
  } catch (error) {
    fail(error);
  }
}

/** Commands that change what a name stands for: later requests mean the names as they are then. */
const namingCommands = new Set([
  ...['accept', 'contacts.block', 'contacts.remove', 'contacts.rename', 'reject'],
  ...['group.add', 'group.create', 'group.forget', 'group.join', 'group.update'],
  ...['channel.create', 'channel.follow', 'channel.unfollow', 'channel.update'],
]);

const changesNames = (words: readonly string[]) => namingCommands.has(words.join('.'));

/** Names the lane of a command: that of its conversation, or the one of all others. */
async function laneOf(
  { account }: AccountSession,
  [word]: readonly string[],
  args: readonly string[],
): Promise<string> {
  const name = args[args.indexOf('--') + 1] ?? '';
  try {
    if (word === 'send') return await accountOf(account, name);
    if (word === 'group') return (await groupOf(account, name)).id;
    if (word === 'channel') return (await channelOf(account, name)).id;
  } catch {
    // No such conversation, or a command on several of them.
  }
  return 'others';
}

/** Runs a command line over the session. @returns its JSON; @throws RpcError */
async function run(session: Served, args: readonly string[]): Promise<unknown> {
  const written = { out: '', error: '' };
  const exit = await session.program.run(args, {
    ...session.environment,
    write: (text) => {
      written.out += text;
    },
    writeError: (text) => {
      written.error += text;
    },
    readInput: noInput,
    openLines: noInput,
    drained: async () => {},
    askSecret: noInput,
    session,
    signal: session.signal,
  });
  const result: unknown = written.out === '' ? {} : JSON.parse(written.out);
  if (exit === exitCodes.ok.code) return result;
  if (exit === exitCodes.interrupted.code) {
    const kept = written.error === '' ? undefined : true;
    throw new RpcError('failed', 'interrupted', { data: { code: 'interrupted', kept, exit } });
  }
  const { error } = JSON.parse(written.error) as { error: Omit<Failure, 'exit'> };
  const { code, message, reason, kept } = error;
  const kind = { usage: 'invalidParams', internal: 'internal' } as const;
  throw new RpcError(kind[code as keyof typeof kind] ?? 'failed', message, {
    data: { code, reason, kept, exit, ...(written.out !== '' && { result }) },
  });
}

function noInput(): never {
  throw new UsageError(
    'requests have no standard input: give the text or the password as a parameter',
  );
}
