import type { AggregateKey } from '../types.ts';
import { unavailable } from '../unavailable.ts';
import type { UnansweredCommit } from './commit.ts';
import { type CommitMark, isCommitted } from './commits.ts';
import { type PostgresConnections, rollBack } from './connections.ts';
import type { PostgresObserver } from './observer.ts';
import { beginWriteSql } from './sql.ts';
import type { PostgresTimeouts } from './timeouts.ts';
import { UnknownCommits } from './unknown-commits.ts';

/** Milliseconds between two queries for the outcome of a commit. */
const outcomePause = 100;

interface CommitOutcomesParts {
  readonly connections: PostgresConnections;
  readonly observer: Pick<PostgresObserver, 'commitUnknown' | 'unannounced'>;
  readonly timeouts: Pick<PostgresTimeouts, 'outcome' | 'outcomeRetry'>;
  /** Whether the server, when last asked, did not answer. */
  readonly isSilent: () => boolean;
}

/** Finds out what became of commits that were not answered: at once, or later. */
export class CommitOutcomes implements AsyncDisposable {
  readonly #parts: CommitOutcomesParts;
  readonly #unknown: UnknownCommits;

  constructor(parts: CommitOutcomesParts) {
    this.#parts = parts;
    this.#unknown = new UnknownCommits({
      pause: parts.timeouts.outcomeRetry,
      query: ({ keys, mark }) => this.#query(beginWriteSql(keys), mark),
      committed: (keys) => parts.observer.unannounced(keys),
    });
  }

  /**
   * Returns whether a write whose COMMIT was not answered was committed.
   *
   * @param keys the aggregates of the write
   * @throws ProtocolError `temporarily_unavailable` if that cannot be found out
   */
  async wasCommitted(
    keys: readonly AggregateKey[],
    { mark, cause }: UnansweredCommit,
  ): Promise<boolean> {
    const { observer, timeouts, isSilent } = this.#parts;
    const begin = beginWriteSql(keys);
    const until = performance.now() + timeouts.outcome;
    do {
      const found = await this.#query(begin, mark);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, outcomePause));
    } while (performance.now() < until && !isSilent());
    observer.commitUnknown(cause);
    this.#unknown.add({ keys, mark });
    throw unavailable('the outcome of the commit is unknown: check, then try again', { cause });
  }

  /** Ends the queries for commits whose outcome is unknown. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#unknown[Symbol.asyncDispose]();
  }

  /** Returns `undefined` if the server does not answer, or still has the write in progress. */
  async #query(begin: string, mark: CommitMark): Promise<boolean | undefined> {
    try {
      const lease = await this.#parts.connections.acquire();
      try {
        await lease.client.query(begin);
        return await isCommitted(lease.client, mark);
      } finally {
        rollBack(lease);
      }
    } catch {
      return undefined;
    }
  }
}
