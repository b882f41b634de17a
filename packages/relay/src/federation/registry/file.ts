/** The registry as a file, for networks that are not on a chain. */
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import {
  type Network,
  type Registry,
  type RelayEntry,
  type StaticRegistryFile,
  staticRegistryInSteps,
} from '@posthouse/protocol';
import { parseJsonInSteps } from '@posthouse/protocol/json';
import { withName } from '../../config/with-name.ts';
import type { Steps } from '../../dispatch/slices.ts';
import { withFileLock } from '../../storage/sqlite/file-lock.ts';

/** Runs the steps of reading a file to their end. */
export type RunSteps = <T>(begin: () => Steps<T>) => Promise<T>;

/** For a command, or a relay that does not serve yet. */
const atOnce: RunSteps = async (begin) => {
  const steps = begin();
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
};

/**
 * Reads a registry file; `undefined` if there is none.
 *
 * @throws Error that names the file if it is malformed or of another network
 */
export async function readRegistry(
  network: Network,
  path: string,
  run?: RunSteps,
): Promise<Registry | undefined> {
  return await parsed(network, path, { text: await readText(path), run });
}

/** What an operator does about a registry file that cannot be used. */
const mending = 'correct the registry file, or make a new one with `posthouse registry add`';

async function parsed(
  network: Network,
  path: string,
  {
    text,
    run = atOnce,
  }: { readonly text: string | undefined; readonly run?: RunSteps | undefined },
): Promise<Registry | undefined> {
  if (text === undefined) return undefined;
  return await withName(path, () => run(() => readInSteps(network, text)), mending);
}

function* readInSteps(network: Network, text: string): Steps<Registry> {
  return yield* staticRegistryInSteps(network, yield* parseJsonInSteps(text));
}

/** Reads a file; `undefined` if there is none. */
async function readText(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Milliseconds after which another change of a file has another time for certain. */
const settled = 2_000;

/**
 * The registry of a file that an operator may change: each call reads the file again if its size,
 * time or identity changed. Calls reject while there is no file or a malformed one.
 */
export class FileRegistry implements Registry {
  readonly #network: Network;
  readonly #path: string;
  readonly #run: RunSteps | undefined;
  #read: { readonly version: string; readonly registry: Registry } | undefined;
  /** The reading under way of a file that was settled. */
  #reading: { readonly version: string; readonly registry: Promise<Registry> } | undefined;

  /** @param run for a relay that serves: divides the reading of a file over turns of the event loop */
  constructor(network: Network, path: string, run?: RunSteps) {
    this.#network = network;
    this.#path = path;
    this.#run = run;
  }

  async getRelay(relayId: string): Promise<RelayEntry | undefined> {
    return await (await this.#current()).getRelay(relayId);
  }

  async *listRelays(): AsyncIterable<RelayEntry> {
    yield* (await this.#current()).listRelays();
  }

  /** Returns a text that is another one after the file was changed or removed. */
  async version(): Promise<string> {
    try {
      return (await this.#stat()).version;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'unknown';
    }
  }

  async #stat(): Promise<{ readonly version: string; readonly isSettled: boolean }> {
    const { mtimeNs, size, ino } = await stat(this.#path, { bigint: true });
    const age = Date.now() - Number(mtimeNs / 1_000_000n);
    return { version: `${mtimeNs} ${size} ${ino}`, isSettled: age > settled };
  }

  async #current(): Promise<Registry> {
    // The version before the content: a change in between is read again by the next call.
    const { version, isSettled } = await this.#stat();
    if (this.#read?.version === version) return this.#read.registry;
    // A file system's time stands still for milliseconds: a later change may have the same one.
    if (!isSettled) return await this.#load();
    // Of calls at once, one reads: a file of thousands of relays takes long.
    if (this.#reading?.version !== version) {
      this.#reading = { version, registry: this.#load() };
    }
    const reading = this.#reading;
    try {
      const registry = await reading.registry;
      if (this.#reading === reading) this.#read = { version, registry };
      return registry;
    } finally {
      if (this.#reading === reading) this.#reading = undefined;
    }
  }

  async #load(): Promise<Registry> {
    const registry = await readRegistry(this.#network, this.#path, this.#run);
    if (registry === undefined) throw new Error(`${this.#path}: does not exist`);
    return registry;
  }
}

/**
 * Enters a relay into a registry file, and creates the file if there is none. Several
 * relays, also of several processes, can enter at once: no entry is lost.
 *
 * @throws Error that names the file if it is malformed or of another network
 */
export async function enterRelay(network: Network, path: string, entry: RelayEntry): Promise<void> {
  for (;;) {
    const before = await readText(path);
    const relays: RelayEntry[] = [];
    const registry = await parsed(network, path, { text: before });
    for await (const other of registry?.listRelays() ?? []) {
      if (other.relay_id !== entry.relay_id) relays.push(other);
    }
    // Without a change there is nothing to write: a relay starts on a full disk too.
    const known = await registry?.getRelay(entry.relay_id);
    if (known?.endpoint === entry.endpoint && known.status === entry.status) return;
    const file: StaticRegistryFile = { context: network.context, relays: [...relays, entry] };
    // If another relay has entered since the file was read, its entry is read first.
    if (replaceUnchanged(path, before, `${JSON.stringify(file, undefined, 2)}\n`)) return;
  }
}

/** Replaces a file's text if it is still `before`; returns whether it was. */
function replaceUnchanged(path: string, before: string | undefined, after: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  const replace = () => {
    const current = existsSync(path) ? readFileSync(path, 'utf8') : undefined;
    if (current !== before) return false;
    // A file that an interrupted write left has the mode it was made with.
    rmSync(`${path}.new`, { force: true });
    // Not through a link that another user put there meanwhile.
    const made = openSync(`${path}.new`, 'wx', 0o600);
    try {
      writeFileSync(made, after);
      if (found !== undefined) {
        // Otherwise the relay could not read what a command of root has written.
        if (process.getuid?.() === 0) fchownSync(made, found.uid, found.gid);
        // The operator may have let others read the file: other relays, clients on this machine.
        fchmodSync(made, found.mode);
      }
    } finally {
      closeSync(made);
    }
    renameSync(`${path}.new`, path);
    return true;
  };
  return withFileLock(`${path}.lock`, replace, found);
}
