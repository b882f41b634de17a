/**
 * Checks each write of a test's storage: one that changes what is remembered of an account names the
 * account, so that its facts are forgotten (decision 0024).
 */
import type {
  AggregateKey,
  AppendKind,
  BatchWriter,
  Row,
  SqlValue,
  Storage,
  SyncWriter,
  Writer,
} from '../../src/storage/types.ts';

/** The columns that facts are read from, by table; each table has a column `account`. */
const factColumns: Readonly<Record<string, readonly string[]>> = {
  account_routes: ['relay_id', 'held_until', 'conflict', 'revision'],
  device_states: ['revision'],
  devices: ['device_id', 'not_before', 'expires_at', 'certificate_id', 'certificate'],
  profiles: ['public_discovery'],
};
const change = new RegExp(
  `\\b(INSERT INTO|UPDATE|DELETE FROM)\\s+(${Object.keys(factColumns).join('|')})\\b`,
  'i',
);

/** Whether a statement may change facts. */
function changesFacts(sql: string): boolean {
  const [, verb, table = ''] = change.exec(sql) ?? [];
  if (verb === undefined) return false;
  if (verb.toUpperCase() !== 'UPDATE') return true;
  const [, assignments = ''] = /\bSET\b(.*?)(?:\bWHERE\b|$)/is.exec(sql) ?? [];
  return (factColumns[table] ?? []).some((name) => new RegExp(`\\b${name}\\s*=`).test(assignments));
}

const known = new Map<string, boolean>();

function mayChangeFacts(sql: string): boolean {
  const found = known.get(sql) ?? changesFacts(sql);
  known.set(sql, found);
  return found;
}

/**
 * Has the writes of a storage checked; one that breaks the rule is rejected.
 *
 * @param broken gets what a job may have caught
 */
export function checkFactWrites(storage: Storage, broken: Error[]): Storage {
  const { append, write } = storage;
  storage.write = (aggregates, work, options) => {
    const named = options?.keepsFacts === true ? [] : [aggregates].flat();
    return write.call(
      storage,
      aggregates,
      (tx) => work(new CheckedWriter(tx, { named, broken })),
      options,
    ) as never;
  };
  const kinds = new WeakMap<object, unknown>();
  storage.append = (kind, input) => {
    const checked = (kinds.get(kind) as typeof kind | undefined) ?? checkedKind(kind, broken);
    kinds.set(kind, checked);
    return append.call(storage, checked as never, input) as never;
  };
  return storage;
}

interface Checks {
  /** Aggregates of which facts are forgotten. */
  readonly named: readonly AggregateKey[];
  readonly broken: Error[];
}

/** A transaction whose statements return the accounts that they changed. */
class CheckedWriter implements Writer {
  readonly #tx: Writer;
  readonly #checks: Checks;

  constructor(tx: Writer, checks: Checks) {
    this.#tx = tx;
    this.#checks = checks;
  }

  get<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T | undefined> {
    if (mayChangeFacts(sql)) return Promise.reject(this.#broken(sql, 'has a result'));
    return this.#tx.get(sql, ...values);
  }

  all<T extends Row>(sql: string, ...values: SqlValue[]): Promise<T[]> {
    if (mayChangeFacts(sql)) return Promise.reject(this.#broken(sql, 'has a result'));
    return this.#tx.all(sql, ...values);
  }

  async run(sql: string, ...values: SqlValue[]): Promise<number> {
    if (!mayChangeFacts(sql)) return await this.#tx.run(sql, ...values);
    const rows = await this.#tx.all(`${sql} RETURNING *`, ...values);
    for (const { account, held_until: heldUntil } of rows) {
      // A route that has ended, of an account elsewhere: facts from before say the same of it.
      if (heldUntil === 0) continue;
      if (this.#checks.named.includes(`account:${account}`)) continue;
      throw this.#broken(sql, `changes facts of ${account}, which it does not name`);
    }
    return rows.length;
  }

  #broken(sql: string, what: string): Error {
    return noteBroken(this.#checks.broken, `a write ${what}: ${sql}`);
  }
}

function noteBroken(broken: Error[], message: string): Error {
  const error = new Error(message);
  broken.push(error);
  return error;
}

/** An append relies on facts, and changes none. */
function checkedKind<Input, Output>(
  kind: AppendKind<Input, Output>,
  broken: Error[],
): AppendKind<Input, Output> {
  const { batch } = kind;
  return {
    ...kind,
    apply: (tx, input) => kind.apply(withoutFacts(tx, broken), input),
    batch: batch && {
      ...batch,
      bytes: (input) => batch.bytes(input),
      write: (tx, inputs, changed) => batch.write(withoutFacts(tx, broken), inputs, changed),
    },
  };
}

function withoutFacts<T extends SyncWriter | BatchWriter>(tx: T, broken: Error[]): T {
  return new Proxy(tx, {
    get(target, name) {
      const method = Reflect.get(target, name, target);
      if (typeof method !== 'function') return method;
      return (sql: string, ...values: unknown[]) => {
        if (mayChangeFacts(sql)) throw noteBroken(broken, `an append changes facts: ${sql}`);
        return method.call(target, sql, ...values);
      };
    },
  });
}
