/** How long the PostgreSQL engine waits for what, in milliseconds. */
export interface PostgresTimeouts {
  /** A call, for a server that is away or for others to get out of its way. */
  readonly call: number;
  /** A call whose COMMIT was not answered, for somebody who can tell what became of it. */
  readonly outcome: number;
  /** A start, for the place of a process that was killed, and for a server that starts too. */
  readonly start: number;
  /** Anybody, for a connection. */
  readonly connect: number;
  /** A statement, for locks; the server gives up then. */
  readonly lock: number;
  /** The server, for the next statement: a process that stands still must not keep its locks. */
  readonly idleInTransaction: number;
  /** The server, for a statement to end. */
  readonly statement: number;
  /** A migration, for a statement to end, or for another process to end its migrations. */
  readonly definition: number;
  /** This side, for an answer: longer than any time after which the server gives up. */
  readonly answer: number;
  /** Between two tries to get a lost place back. */
  readonly lockRetry: number;
  /** A connection that is closed, for the server to say so too. */
  readonly close: number;
}

export const defaultTimeouts: PostgresTimeouts = {
  call: 5_000,
  outcome: 10_000,
  start: 5_000,
  connect: 5_000,
  lock: 10_000,
  idleInTransaction: 10_000,
  statement: 30_000,
  definition: 3_600_000,
  answer: 35_000,
  lockRetry: 500,
  close: 2_000,
};
