/** Timeouts of the PostgreSQL engine, in milliseconds. */
export interface PostgresTimeouts {
  /** For a call: retries while the server is unreachable or conflicts last. */
  readonly call: number;
  /** For a call whose COMMIT was not answered: until its outcome is found. */
  readonly outcome: number;
  /** Between later queries for an outcome that stayed unknown. */
  readonly outcomeRetry: number;
  /** For a start: until the lock of a killed process is free, or a starting server answers. */
  readonly start: number;
  /** For a connection. */
  readonly connect: number;
  /** Server side, for a statement: until it gets its locks. */
  readonly lock: number;
  /** Server side, for a batch of appends: until it is its turn. */
  readonly turn: number;
  /** Server side, between statements: a stalled process must not hold its locks. */
  readonly idleInTransaction: number;
  /** Server side, for a statement to end. */
  readonly statement: number;
  /** For a migration: until a statement ends, or another process has finished its migrations. */
  readonly definition: number;
  /** Client side, for an answer: longer than the server's timeouts. */
  readonly answer: number;
  /** Between two attempts to acquire the process lock. */
  readonly lockRetry: number;
  /** Between two questions whether the server answers. */
  readonly probe: number;
  /** For an answer to that; then all connections are broken. */
  readonly silence: number;
  /** After the first question without an answer: then the server counts as out of reach. */
  readonly overdue: number;
  /** For a closing connection: until the server closes its side. */
  readonly close: number;
}

/** Timeouts in production; tests use shorter ones. */
export const defaultTimeouts: PostgresTimeouts = {
  call: 5_000,
  outcome: 10_000,
  outcomeRetry: 1_000,
  start: 5_000,
  connect: 5_000,
  lock: 10_000,
  turn: 250,
  idleInTransaction: 10_000,
  statement: 30_000,
  definition: 3_600_000,
  answer: 35_000,
  lockRetry: 500,
  probe: 1_000,
  silence: 3_000,
  overdue: 3_000,
  close: 2_000,
};
