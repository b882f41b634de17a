import { readFile, rename, writeFile } from 'node:fs/promises';
import type { RelayEntry, StaticRegistryFile } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';

/** Enters relays of the kit into the registry file that the relay under test reads. */
export class RegistryFile {
  readonly #path: string;
  /** Changes are made one after another. */
  #last: Promise<void> = Promise.resolve();

  constructor(path: string) {
    this.#path = path;
  }

  /** Enters a relay; its earlier entry is replaced. */
  async list(entry: RelayEntry): Promise<void> {
    await this.#change((others) => [...others, entry], [entry.relay_id]);
  }

  /** Removes relays. */
  async unlist(relayIds: readonly string[]): Promise<void> {
    await this.#change((others) => others, relayIds);
  }

  /** Lists a relay with another status. */
  async setStatus(entry: RelayEntry, status: RelayEntry['status']): Promise<void> {
    await this.list({ ...entry, status, updated_at: Date.now() });
  }

  /** Returns the IDs of the relays that it lists as active. */
  async activeRelays(): Promise<string[]> {
    const { relays } = await this.#read();
    return relays.filter(({ status }) => status === 'active').map(({ relay_id }) => relay_id);
  }

  async #read(): Promise<StaticRegistryFile> {
    return parseJson(await readFile(this.#path, 'utf8')) as unknown as StaticRegistryFile;
  }

  async #change(
    change: (others: readonly RelayEntry[]) => RelayEntry[] | readonly RelayEntry[],
    without: readonly string[],
  ): Promise<void> {
    const work = async () => {
      const file = await this.#read();
      const others = file.relays.filter(({ relay_id }) => !without.includes(relay_id));
      const text = JSON.stringify({ ...file, relays: change(others) }, undefined, 2);
      await writeFile(`${this.#path}.kit`, `${text}\n`);
      await rename(`${this.#path}.kit`, this.#path);
    };
    const running = this.#last.then(work);
    this.#last = running.catch(() => {});
    await running;
  }
}
