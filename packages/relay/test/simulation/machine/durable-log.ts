import fs from 'node:fs';

/** The log's state at one moment. */
export interface LogMark {
  /** Number of commits so far. */
  readonly commits: number;
  /** Bytes that are in use. */
  readonly end: number;
  /** The log's header, which is another one each time that the log starts anew. */
  readonly header: string;
}

/** Bytes of the header, which SQLite flushes itself, and of each frame, which holds a page. */
const headerBytes = 32;
const frameBytes = 24 + 4_096;

/** Taken before a simulation replaces them. */
const { openSync, readSync, closeSync, statSync } = fs;

/**
 * What a power cut leaves of a database's log. A flush that fails may lose bytes for good: the system
 * drops what it could not write, and no later flush of the same bytes writes them. Only bytes that are
 * written again can be flushed then, and those of a log that starts anew.
 */
export class DurableLog {
  #path = '';
  #commits = 0;
  /** Bytes in use. */
  #end = 0;
  #flushed: LogMark = { commits: 0, end: 0, header: '' };
  /** Header of the log of which bytes were lost. */
  #lost: string | undefined;

  /** The log is there now, with the same bytes. */
  moved(path: string): void {
    this.#path = path;
    if (this.#flushed.header !== '') return;
    // The first start, from a template.
    this.#end = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    this.#flushed = this.mark();
  }

  /** Something was committed; the log has so many frames in use. */
  committed(frames: number): void {
    this.#commits += 1;
    this.#end = headerBytes + frames * frameBytes;
  }

  /** What a flush that begins now makes durable. */
  mark(): LogMark {
    return { commits: this.#commits, end: this.#end, header: this.#header() };
  }

  /** A flush has ended. */
  flushed(mark: LogMark): void {
    if (mark.header === this.#lost || mark.commits < this.#flushed.commits) return;
    this.#lost = undefined;
    this.#flushed = mark;
  }

  /** A flush has failed. */
  failed(): void {
    this.#lost = this.#header();
  }

  /** Bytes up to this one were written again. */
  rewritten(end: number): void {
    if (end >= this.#end) this.#lost = undefined;
  }

  /** A power cut: returns how many bytes of the log are left. */
  cut(): number {
    const { header, end } = this.#flushed;
    // If the log has started anew, the database has everything that was in it.
    const left = this.#header() === header ? end : headerBytes;
    this.#end = left;
    this.#lost = undefined;
    this.#flushed = this.mark();
    return left;
  }

  #header(): string {
    if (!fs.existsSync(this.#path)) return '';
    const file = openSync(this.#path, 'r');
    try {
      const bytes = Buffer.alloc(headerBytes);
      return bytes.toString('latin1', 0, readSync(file, bytes, 0, headerBytes, 0));
    } finally {
      closeSync(file);
    }
  }
}
