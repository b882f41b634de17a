import { ProtocolError } from '@posthouse/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PostgresStorage } from '../../src/storage/postgres/storage.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { TestPostgres } from '../support/postgres.ts';
import { counters, open } from '../support/postgres-engine.ts';

let server: TestPostgres;

beforeAll(async () => {
  server = await TestPostgres.start({ durable: true });
});
afterAll(() => server[Symbol.asyncDispose]());

const accounts = 12;
const rounds = 3;

/** Writes that go on until they are told to stop, and what became of each. */
class Load {
  readonly done: { account: string; value: number; id: string }[] = [];
  readonly refused: { account: string; id: string; error: unknown }[] = [];
  readonly #storages: readonly PostgresStorage[];
  readonly #name: string;
  #isOver = false;
  #count = 0;

  constructor(name: string, storages: readonly PostgresStorage[]) {
    this.#name = name;
    this.#storages = storages;
  }

  stop(): void {
    this.#isOver = true;
  }

  /** Several writers for each account, at every process. */
  async run(): Promise<void> {
    const writers = this.#storages.flatMap((storage) =>
      Array.from({ length: accounts * 2 }, (_, index) => this.#write(storage, index % accounts)),
    );
    await Promise.all(writers);
  }

  /** Resolves when so many more writes have succeeded. */
  async progress(count: number): Promise<void> {
    const enough = this.done.length + count;
    while (this.done.length < enough) await new Promise((resolve) => setImmediate(resolve));
  }

  async #write(storage: PostgresStorage, index: number): Promise<void> {
    const account = `account:${index}`;
    while (!this.#isOver) {
      this.#count += 1;
      const id = `${this.#name}${this.#count}`;
      try {
        const value = await storage.write(account, async (tx) => {
          await tx.run('INSERT INTO writes (id, account) VALUES (?, ?)', id, account);
          return await counters.add(tx, account);
        });
        this.done.push({ account, value, id });
      } catch (error) {
        this.refused.push({ account, id, error });
      }
    }
  }
}

async function check(url: string, load: Load): Promise<void> {
  await using storage = await open(url);
  const rows = await storage.read((tx) =>
    tx.all<{ id: string; account: string }>('SELECT id, account FROM writes'),
  );
  const stored = new Set(rows.map(({ id }) => id));
  expect(stored.size).toBe(rows.length);
  // Every success is stored once; a refused write is stored only if its outcome was unknown.
  expect(load.done.filter(({ id }) => !stored.has(id))).toEqual([]);
  for (const { error } of load.refused) {
    expect(error).toBeInstanceOf(ProtocolError);
    expect(error).toMatchObject({ code: 'temporarily_unavailable' });
  }
  const known = new Set(load.done.map(({ id }) => id));
  const untold = load.refused.filter(({ id }) => stored.has(id));
  for (const { error } of untold) {
    expect(error).toMatchObject({
      message: 'the outcome of the commit is unknown: check, then try again',
    });
  }
  expect(known.size + untold.length).toBe(stored.size);
  for (let index = 0; index < accounts; index += 1) {
    const account = `account:${index}`;
    // As many as were applied, and no value was given twice.
    const applied = rows.filter((row) => row.account === account).length;
    expect(await counters.of(storage, account)).toBe(applied);
    const values = load.done.filter((write) => write.account === account).map(({ value }) => value);
    expect(new Set(values).size).toBe(values.length);
  }
}

async function prepare(): Promise<string> {
  const url = await server.createDatabase();
  await using storage = await open(url);
  await counters.make(storage);
  await storage.write('relay', (tx) =>
    tx.run('CREATE TABLE writes (id TEXT NOT NULL, account TEXT NOT NULL)'),
  );
  return url;
}

const faults = {
  'stopped and started': () => server.restart(),
  'crashed and started': async () => {
    await server.crash();
    await server.start();
  },
};

test.each(Object.keys(faults) as (keyof typeof faults)[])(
  'the server is %s under load: what succeeded is there once, nothing else is',
  async (fault) => {
    const url = await prepare();
    await using first = await open(url, { timeouts: { lockRetry: 20 } });
    await using second = await open(url, { timeouts: { lockRetry: 20 } });
    const load = new Load('w', [first, second]);
    const running = load.run();
    for (let round = 0; round < rounds; round += 1) {
      await load.progress(300);
      await faults[fault]();
    }
    await load.progress(300);
    load.stop();
    await running;
    await check(url, load);
  },
);

test('connections break at every moment: what succeeded is there once, nothing else is', async () => {
  const url = await prepare();
  await using proxy = await CuttingProxy.start(url);
  await using storage = await open(proxy.url, { timeouts: { lockRetry: 20 } });
  const load = new Load('w', [storage]);
  const running = load.run();
  for (let round = 0; round < 40; round += 1) {
    await load.progress(20);
    const when = round % 2 === 0 ? 'after' : 'before';
    const moments = [/^COMMIT$/, /posthouse_commits/, /^BEGIN/, /^INSERT INTO writes/];
    const cuts = moments.map((moment) => proxy.cut(moment, { when }));
    if (round % 5 === 0) proxy.cutAll();
    await Promise.all(cuts);
  }
  await load.progress(20);
  load.stop();
  await running;
  expect(load.refused).toEqual([]);
  await check(url, load);
});
