/** A relay that is backed up and restored with `posthouse`, while its clients stay. */
import { cpSync, globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backUp, restore } from '../../../relay/src/backup/index.ts';
import { relayMigrations, restoredStatements } from '../../../relay/src/modules.ts';
import { LyingRelay } from './lying-relay.ts';
import type { RelayWithClients } from './relay-with-clients.ts';

/** The proxy keeps the relay's address when it starts again. Backups are on SQLite. */
export class RestorableRelay implements AsyncDisposable {
  readonly proxy: LyingRelay;
  readonly world: RelayWithClients;

  private constructor(proxy: LyingRelay) {
    this.proxy = proxy;
    this.world = proxy.world;
  }

  static async start(
    config: Parameters<typeof LyingRelay.start>[0] = {},
  ): Promise<RestorableRelay> {
    return new RestorableRelay(await LyingRelay.start(config));
  }

  path(name: string): string {
    return join(this.world.folder, name);
  }

  get config() {
    const storage = { engine: 'sqlite', url: '', connections: 2 } as const;
    return { data: this.path('relay'), storage };
  }

  async backUp(name: string): Promise<void> {
    const options = { to: this.path(name), withKeys: true, migrations: relayMigrations };
    await backUp({ config: this.config, ...options, now: this.world.clock.now() });
  }

  /** Restores a backup to another folder, and starts the relay on that with the same port and names. */
  async restore(name: string): Promise<void> {
    await this.world.stopRelay();
    const to = this.path(`${name}-restored`);
    rmSync(to, { recursive: true, force: true });
    const modules = { migrations: relayMigrations, statements: restoredStatements };
    const now = this.world.clock.now();
    await restore({ from: this.path(name), to, ...modules, expected: {}, now });
    for (const file of globSync(join(this.path('relay'), '{relay.sqlite*,generation}'))) {
      rmSync(file);
    }
    cpSync(to, this.path('relay'), { recursive: true });
    await this.world.startRelay();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.proxy[Symbol.asyncDispose]();
  }
}
