import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { Watchers } from './watchers.ts';

/** Milliseconds between two looks for the commits of other processes. */
const interval = 100;

/** Notices commits to a SQLite file: the own ones at once, those of others at intervals. */
export class SqliteCommits {
  readonly #watchers = new Watchers();
  readonly #version: StatementSync;
  #seen: unknown;
  #timer: NodeJS.Timeout | undefined;

  constructor(database: DatabaseSync) {
    // It changes when another connection has committed.
    this.#version = database.prepare('PRAGMA data_version');
  }

  watch(changed: () => void): Disposable {
    const watcher = this.#watchers.add(changed);
    this.#seen ??= this.#read();
    this.#timer ??= setInterval(() => this.#look(), interval);
    return {
      [Symbol.dispose]: () => {
        watcher[Symbol.dispose]();
        if (this.#watchers.size === 0) this.close();
      },
    };
  }

  notify(): void {
    this.#watchers.notify();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    let version: unknown;
    try {
      version = this.#read();
    } catch {
      // The next transaction reports what is wrong with the file.
      return;
    }
    if (version === this.#seen) return;
    this.#seen = version;
    this.notify();
  }

  #read(): unknown {
    return this.#version.get()?.data_version;
  }
}
