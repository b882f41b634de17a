import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import type { CliEnvironment } from '../../src/courier/client-session.ts';
import { pipedLines } from '../../src/courier/line-input.ts';
import { runCourier } from '../../src/courier/program.ts';
import type { RelayWithClients } from './relay-with-clients.ts';

interface Ran {
  readonly exit: number;
  readonly out: string;
  readonly error: string;
}

/** Runs the command for one account in a folder of its own. */
export class Person {
  readonly folder: string;
  readonly #world: Pick<RelayWithClients, 'folder'>;

  constructor(world: Pick<RelayWithClients, 'folder'>, name: string) {
    this.#world = world;
    this.folder = join(world.folder, 'people', name);
  }

  /** Flags that name the network. */
  get network(): string[] {
    const relay = join(this.#world.folder, 'relay');
    return ['--registry', join(relay, 'registry.json'), '--ca', join(relay, 'tls', 'ca.pem')];
  }

  async run(args: readonly string[], given: { input?: string; password?: string } = {}) {
    const written = { out: '', error: '' };
    const exit = await runCourier(args, this.environment(written, given));
    return { exit, ...written } satisfies Ran;
  }

  /** Starts a command that runs on: a test writes its input and reads its output meanwhile. */
  start(args: readonly string[], { drained }: Partial<Pick<CliEnvironment, 'drained'>> = {}) {
    const [written, input, stop] = [
      { out: '', error: '' },
      new PassThrough(),
      new AbortController(),
    ];
    const environment = this.environment(written, {
      ...{ stream: input, signal: stop.signal },
      ...(drained && { drained }),
    });
    const exit = runCourier(args, environment);
    // biome-ignore lint/suspicious/noExplicitAny: as in `json`.
    const objects = (): any[] =>
      written.out
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line));
    return { exit, input, written, objects, stop: () => stop.abort() };
  }

  /** What a command gets of its process; its output is added to `written`. */
  environment(
    written: { out: string; error: string },
    given: {
      input?: string;
      stream?: Readable;
      password?: string;
      signal?: AbortSignal;
      drained?: () => Promise<void>;
    } = {},
  ): CliEnvironment {
    const { input = '', stream = Readable.from([input]), password } = given;
    const streams = {
      write: (text: string) => {
        written.out += text;
      },
      writeError: (text: string) => {
        written.error += text;
      },
      drained: given.drained ?? (async () => {}),
    };
    return {
      env: {
        COURIER_HOME: this.folder,
        ...(password !== undefined && { COURIER_WALLET_PASSWORD: password }),
      },
      ...streams,
      readInput: async () => input,
      openLines: (signal) => pipedLines(stream, streams, signal),
      askSecret: async () => {
        throw new Error('the tests have no terminal');
      },
      signal: given.signal ?? new AbortController().signal,
    };
  }

  /** Runs a command that must succeed, and gives its JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever a command prints.
  async json(...args: string[]): Promise<any> {
    const { exit, out, error } = await this.run([...args, '--json']);
    if (exit !== 0) throw new Error(`courier ${args.join(' ')}: exit ${exit}: ${error}`);
    return JSON.parse(out);
  }
}

let people = 0;

/** Sets up two accounts that know each other as `ann` and `bob`. */
export async function contactsOfCourier(
  world: Pick<RelayWithClients, 'folder'>,
): Promise<[ann: Person, bob: Person]> {
  people += 1;
  const [ann, bob] = [new Person(world, `ann-${people}`), new Person(world, `bob-${people}`)];
  await ann.json('setup', ...ann.network);
  const { account } = await bob.json('setup', ...bob.network);
  const { invite } = await ann.json('invite');
  await bob.json('accept', invite, '--as', 'ann');
  await ann.json('accept', account, '--as', 'bob');
  await bob.json('sync');
  return [ann, bob];
}
