import { join } from 'node:path';
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
    const password =
      given.password === undefined ? {} : { COURIER_WALLET_PASSWORD: given.password };
    const exit = await runCourier(args, {
      env: { COURIER_HOME: this.folder, ...password },
      write: (text) => {
        written.out += text;
      },
      writeError: (text) => {
        written.error += text;
      },
      readInput: async () => given.input ?? '',
      askSecret: async () => {
        throw new Error('the tests have no terminal');
      },
      signal: new AbortController().signal,
    });
    return { exit, ...written } satisfies Ran;
  }

  /** Runs a command that must succeed, and gives its JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever a command prints.
  async json(...args: string[]): Promise<any> {
    const { exit, out, error } = await this.run([...args, '--json']);
    if (exit !== 0) throw new Error(`courier ${args.join(' ')}: exit ${exit}: ${error}`);
    return JSON.parse(out);
  }
}
