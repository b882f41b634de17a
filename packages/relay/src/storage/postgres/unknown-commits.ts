import type { AggregateKey } from '../types.ts';
import type { CommitMark } from './commits.ts';

/** A commit whose caller was told that its outcome is unknown. */
interface UnknownCommit {
  readonly keys: readonly AggregateKey[];
  readonly mark: CommitMark;
}

interface UnknownCommitsParts {
  /** Milliseconds between two rounds of queries. */
  readonly pause: number;
  /** Returns `undefined` while the outcome cannot be found out. */
  readonly query: (commit: UnknownCommit) => Promise<boolean | undefined>;
  readonly committed: (keys: readonly AggregateKey[] | 'any') => void;
}

/** Limit of commits that are looked up later; of more, any aggregate may have changed. */
const maxCommits = 1_000;

/**
 * Looks up later what became of commits whose outcome stayed unknown. Their callers published no
 * notices: if such a commit succeeded, connections must be compared with storage.
 */
export class UnknownCommits implements AsyncDisposable {
  readonly #parts: UnknownCommitsParts;
  readonly #commits = new Set<UnknownCommit>();
  #hasMore = false;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(parts: UnknownCommitsParts) {
    this.#parts = parts;
  }

  /** Looks a commit up later, until its outcome is found. */
  add(commit: UnknownCommit): void {
    if (this.#commits.size < maxCommits) this.#commits.add(commit);
    else this.#hasMore = true;
    this.#schedule();
  }

  /** Lets the current query finish and starts no other. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#running;
  }

  #schedule(): void {
    if (this.#isClosed || this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#running = this.#run().finally(() => {
        this.#timer = undefined;
        if (this.#commits.size > 0) this.#schedule();
      });
    }, this.#parts.pause);
  }

  async #run(): Promise<void> {
    for (const commit of this.#commits) {
      const isCommitted = await this.#parts.query(commit);
      // The next one would fail as well.
      if (isCommitted === undefined || this.#isClosed) return;
      this.#commits.delete(commit);
      if (isCommitted) this.#parts.committed(commit.keys);
    }
    if (!this.#hasMore) return;
    this.#hasMore = false;
    this.#parts.committed('any');
  }
}
