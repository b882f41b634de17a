import { randomUUID } from 'node:crypto';
import { BoundedMap } from '../bounded-map.ts';
import type { Notice } from '../dispatch/notice.ts';

export type PresenceNotice = Extract<Notice, { kind: 'process' }>;

/** Limit of processes that are known; a relay has a few. */
const maxProcesses = 1_000;

/**
 * Knows which other processes of the relay are there. Each announces itself every second, and that it
 * leaves. One that falls silent was killed or stopped, perhaps between a commit and its notices.
 */
export class ProcessPresence {
  readonly #id = randomUUID();
  readonly #silence: number;
  /** By process, when it was last heard of; milliseconds of `performance.now`. */
  readonly #heard = new BoundedMap<string, number>(maxProcesses);

  /** @param silence milliseconds after which a process that was not heard of counts as dead */
  constructor(silence: number) {
    this.#silence = silence;
  }

  /** Makes this process's own announcement. */
  announcement(isLeaving: boolean): PresenceNotice {
    return { kind: 'process', process: this.#id, isLeaving };
  }

  hear({ process, isLeaving }: PresenceNotice): void {
    if (isLeaving) this.#heard.delete(process);
    else this.#heard.set(process, performance.now());
  }

  /** Forgets processes that fell silent. Returns whether there was one. */
  forgetSilent(): boolean {
    const now = performance.now();
    const silent = [...this.#heard.entries()].filter(([, heard]) => now - heard > this.#silence);
    for (const [process] of silent) this.#heard.delete(process);
    return silent.length > 0;
  }

  clear(): void {
    this.#heard.clear();
  }
}
