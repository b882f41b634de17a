/** Two relays that get the same calls: one makes every write in the general way. */
import { type JsonValue, parseJson } from '@posthouse/protocol/json';
import { beforeEach, expect } from 'vitest';
import type { HomeRelay } from '../fixtures/person.ts';
import {
  type CallOptions,
  type InProcessRelay,
  inProcessRelay,
} from '../support/in-process-relay.ts';

/** What a call ended with: its result, or the code of its refusal. */
type Ending = { readonly result: JsonValue } | { readonly code: string };

export class TwinRelays implements HomeRelay {
  readonly appending: InProcessRelay = inProcessRelay();
  /** Its storage declines every append. */
  readonly general: InProcessRelay = inProcessRelay();
  /** Appends that were not declined. */
  appended = 0;

  constructor() {
    beforeEach(() => {
      this.appended = 0;
      const { storage } = this.appending.context;
      const append = storage.append.bind(storage);
      storage.append = async (...args) => {
        const output = await append(...args);
        if (output !== undefined) this.appended += 1;
        return output as never;
      };
      this.general.context.storage.append = async () => undefined;
    });
  }

  get clock() {
    return this.appending.clock;
  }

  get relayId(): string {
    return this.appending.relayId;
  }

  get both(): readonly [InProcessRelay, InProcessRelay] {
    return [this.appending, this.general];
  }

  advance(seconds: number): void {
    for (const relay of this.both) relay.clock.advance(seconds);
  }

  /** Calls both. @throws ProtocolError what the appending relay refuses with */
  async call(method: string, params: unknown, options: CallOptions = {}): Promise<JsonValue> {
    const [result] = await Promise.all(this.both.map((each) => each.call(method, params, options)));
    return result as JsonValue;
  }

  /** Calls both and requires that the call ends at both in the same way. */
  async callAlike(method: string, params: unknown, options: CallOptions = {}): Promise<Ending> {
    const text = JSON.stringify(params);
    const endings = await Promise.all(
      this.both.map(
        async (relay): Promise<Ending> =>
          await relay.call(method, parseJson(text), options).then(
            (result) => ({ result }),
            (error) => ({ code: error.code }),
          ),
      ),
    );
    const [ending, other] = endings as [Ending, Ending];
    expect(ending, method).toEqual(other);
    return ending;
  }

  /** Requires that both have the same rows in these tables, and published the same notices. */
  async expectAlike(tables: readonly string[]): Promise<void> {
    const [mine, other] = await Promise.all(this.both.map((relay) => relay.dump()));
    for (const table of tables) expect(rowsOf(mine, table), table).toEqual(rowsOf(other, table));
    expect(this.appending.takeNotices()).toEqual(this.general.takeNotices());
  }
}

/** Rows without what each relay draws for itself. */
function rowsOf(dump: Record<string, unknown[]> | undefined, table: string): string[] {
  const rows = dump?.[table];
  if (rows === undefined) throw new Error(`no table ${table}`);
  return rows
    .map((row) => JSON.stringify({ ...(row as object), relay_secret: undefined }))
    .toSorted();
}
