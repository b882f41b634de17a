/** Two relays of one network, the first with an admin interface and its page, and clients of them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Account, Client, MemoryStore } from '@posthouse/client';
import { NodeTransport } from '@posthouse/client/node';
import { staticRegistry } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { type PartialConfig, Relay } from '@posthouse/relay';
import { network } from '../../client/test/support/relay-with-clients.ts';
import { OffsetClock } from '../../relay/src/dev/offset-clock.ts';
import { makeFolder } from '../../relay/src/make-folder.ts';
import { devAuthority } from '../../relay/src/tls/dev-ca.ts';
import { posthouse } from '../../relay/test/support/command.ts';
import { temporaryFolder } from '../../relay/test/support/folder.ts';
import { buildAdminPage } from '../build.ts';

export const token = 'a1'.repeat(32);

export class AdminRelays implements AsyncDisposable {
  readonly relay: Relay;
  /** Its clock. */
  readonly clock: OffsetClock;
  /** Another relay of the network. */
  readonly other: Relay;
  readonly #folder: string;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    parts: Pick<AdminRelays, 'relay' | 'clock' | 'other'>,
    { folder, open }: { readonly folder: string; readonly open: AsyncDisposableStack },
  ) {
    ({ relay: this.relay, clock: this.clock, other: this.other } = parts);
    this.#folder = folder;
    this.#parts = open;
  }

  static async start(): Promise<AdminRelays> {
    await using parts = new AsyncDisposableStack();
    const { path: folder } = parts.use(temporaryFolder());
    const pageFolder = join(folder, 'page');
    await buildAdminPage(pageFolder);
    const authority = join(folder, 'tls');
    const ca = await devAuthority(authority, Math.floor(Date.now() / 1_000));
    const configOf = (name: string): PartialConfig => ({
      ...{ dev: true, network: network.context, data: join(folder, name), log: 'silent' },
      ...{ name: `Relay ${name}`, listen: '127.0.0.1:0', registry: join(folder, 'registry.json') },
      tls: { authority },
      federation: { listen: '127.0.0.1:0', ca },
    });
    const other = parts.use(await Relay.start(configOf('other')));
    makeFolder(join(folder, 'own'));
    const adminTokenFile = join(folder, 'own/admin.token');
    writeFileSync(adminTokenFile, `${token}\n`, { mode: 0o600 });
    const clock = new OffsetClock();
    const relay = parts.use(
      await Relay.start(
        {
          ...configOf('own'),
          registration: 'approval',
          host: { channels: true, groups: true },
          operations: { listen: '127.0.0.1:0', adminTokenFile },
        },
        { clock, adminPage: pageFolder },
      ),
    );
    // The one that started first has not read the entry of the other.
    other.wakeJobs();
    return new AdminRelays({ relay, clock, other }, { folder, open: parts.move() });
  }

  /** A client of the network, without an account. */
  async client(): Promise<Client> {
    const ca = readFileSync(join(this.#folder, 'tls/ca.pem'), 'utf8');
    const transport = this.#parts.use(new NodeTransport({ ca }));
    const file = readFileSync(join(this.#folder, 'registry.json'), 'utf8');
    const registry = staticRegistry(network, parseJson(file));
    const store = new MemoryStore();
    return this.#parts.use(await Client.open({ network, registry, transport, store }));
  }

  /** Tries to set an account up at the relay with an admin interface. */
  async setUp(client: Client): Promise<Account> {
    return await client.setUp({ relayId: this.relay.relayId });
  }

  /** Runs the operator's command next to the relay. */
  async command(...args: string[]): Promise<string> {
    const data = join(this.#folder, 'own');
    const { ended, output } = posthouse([...args, '--data', data], {
      POSTHOUSE_OPERATIONS_LISTEN: new URL(this.relay.operations as string).host,
      POSTHOUSE_OPERATIONS_ADMIN_TOKEN_FILE: join(data, 'admin.token'),
    });
    const code = await ended;
    if (code !== 0) throw new Error(`posthouse ${args.join(' ')}: ${code}, ${output.errors}`);
    return output.text;
  }

  /** Stops the other relay, and has this one notice. */
  async stopOther(): Promise<void> {
    await this.other[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}
