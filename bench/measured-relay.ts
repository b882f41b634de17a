/** A relay without sockets, whose calls and SQL statements are measured: for `groups.ts`. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JsonValue, parseJson, parseJsonInSteps } from '@posthouse/protocol/json';
import type { RelayContext } from '../packages/relay/src/context.ts';
import type { ConnectionBinding } from '../packages/relay/src/dispatch/call.ts';
import type { Dispatcher } from '../packages/relay/src/dispatch/dispatcher.ts';
import { encodeResult } from '../packages/relay/src/dispatch/encode.ts';
import { largeText } from '../packages/relay/src/dispatch/slices.ts';
import { relayMigrations } from '../packages/relay/src/modules.ts';
import type { Session } from '../packages/relay/src/sessions/session.ts';
import { migrate } from '../packages/relay/src/storage/migrations.ts';
import { openStorage } from '../packages/relay/src/storage/open.ts';
import type { StorageFaults } from '../packages/relay/src/storage/types.ts';
import type { HomeRelay } from '../packages/relay/test/fixtures/person.ts';
import { ManualClock } from '../packages/relay/test/support/clock.ts';
import {
  defaultRelay,
  openModules,
  origin,
  partsOfOneRelay,
  relayKeys,
  withoutRateLimits,
} from '../packages/relay/test/support/modules.ts';
import { TestPostgres } from '../packages/relay/test/support/postgres.ts';
import { silentObserver } from '../packages/relay/test/support/silent-observer.ts';

/** The cost of one call. */
export interface Cost {
  readonly milliseconds: number;
  readonly statements: number;
}

/** Runs a relay's modules in this process, calls them without sockets and counts statements. */
export class MeasuredRelay implements HomeRelay, AsyncDisposable {
  readonly clock = new ManualClock();
  readonly relayId = relayKeys(defaultRelay).relayId;
  readonly context: RelayContext;
  /** Called with the cost of each call. */
  meter: ((method: string, cost: Cost) => void) | undefined;
  /** Number of runs of each statement in the current call. */
  readonly statements: Map<string, number>;
  /** Every statement that ran so far. */
  readonly allStatements = new Set<string>();
  readonly #dispatcher: Dispatcher;
  readonly #parts: AsyncDisposableStack;

  private constructor(
    parts: AsyncDisposableStack,
    running: { readonly context: RelayContext; readonly dispatcher: Dispatcher },
    statements: Map<string, number>,
  ) {
    this.#parts = parts;
    this.context = running.context;
    this.#dispatcher = running.dispatcher;
    this.statements = statements;
  }

  static async open(engine: 'sqlite' | 'postgres'): Promise<MeasuredRelay> {
    await using parts = new AsyncDisposableStack();
    const data = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
    parts.defer(() => rmSync(data, { recursive: true, force: true }));
    const statements = new Map<string, number>();
    const faults: StorageFaults = {
      beforeStatement: (sql) => void statements.set(sql, (statements.get(sql) ?? 0) + 1),
    };
    const server =
      engine === 'postgres' ? parts.use(await TestPostgres.start({ durable: true })) : undefined;
    const url = (await server?.createDatabase()) ?? '';
    const location = { data, storage: { engine, url, connections: 10 }, bus: { nats: '' } };
    const storage = parts.use(await openStorage(location, { faults, observer: silentObserver }));
    const clock = new ManualClock();
    await migrate(storage, relayMigrations, clock.now());
    const running = openModules(
      {
        storage,
        clock,
        limits: withoutRateLimits,
        ...partsOfOneRelay(),
      },
      relayKeys(defaultRelay),
    );
    return new MeasuredRelay(parts.move(), running, statements);
  }

  /**
   * Calls a method with parameters, or their text; measured from the text of the parameters to the text of the answer.
   *
   * @param options `as`: the name the cost is reported under, by default the method
   * @throws ProtocolError if the relay refuses the call
   */
  async call(
    method: string,
    params: unknown,
    { session, as = method }: { readonly session?: Session | undefined; readonly as?: string } = {},
  ): Promise<JsonValue> {
    const text = typeof params === 'string' ? params : JSON.stringify(params);
    const bound = session && { session, dead: false };
    const credentials = bound && { bound, ...unsubscribedConnection };
    this.statements.clear();
    const started = performance.now();
    const answer = await this.#dispatcher.answer({
      ...{ method, bytes: text.length, origin, address: '127.0.0.1', credentials },
      params: () =>
        text.length < largeText
          ? parseJson(text)
          : this.#dispatcher.longWork.read('', () => parseJsonInSteps(text)),
    });
    const result = answer.ok ? encodeResult(answer.result) : '';
    const milliseconds = performance.now() - started;
    if (!answer.ok) throw answer.error;
    for (const sql of this.statements.keys()) this.allStatements.add(sql);
    const statements = [...this.statements.values()].reduce((sum, count) => sum + count, 0);
    this.meter?.(as, { milliseconds, statements });
    return parseJson(result);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

/** A connection that stores no subscriptions. */
const unsubscribedConnection: Omit<ConnectionBinding, 'bound'> = {
  bind() {},
  end() {},
  setSubscriptions: async (_request, confirm) => {
    await confirm();
  },
};
