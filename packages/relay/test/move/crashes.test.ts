/** A move cut off at every place there is, and killed at any moment: the end is the same. */
import { spawn } from 'node:child_process';
import { cpSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { relayMigrations } from '../../src/modules.ts';
import { identityMigration } from '../../src/storage/identity.ts';
import { moveMigration } from '../../src/storage/move/mark.ts';
import { type DatabaseAddress, type MovedTable, moveStorage } from '../../src/storage/move/move.ts';
import type { Migration, Writer } from '../../src/storage/types.ts';
import { seed } from '../support/chance.ts';
import {
  contents,
  Databases,
  fewRows,
  furnish,
  isInService,
  move,
  putEnvelope,
  stateOf,
} from './databases.ts';

let databases: Databases;

beforeAll(async () => {
  databases = await Databases.start();
});
afterAll(() => databases[Symbol.asyncDispose]());

const digests = (tables: readonly MovedTable[]) =>
  tables.map(({ table, target }) => [table, target]);

/** Two tables in addition to a relay's own: one statement of each kind, and few more. */
const migrations: readonly Migration[] = [
  identityMigration,
  moveMigration,
  {
    id: 9_000,
    name: 'two tables',
    statements: [
      'CREATE TABLE things (a TEXT NOT NULL, b BIGINT NOT NULL, c TEXT, PRIMARY KEY (a, b))',
      'CREATE TABLE vacant (a TEXT NOT NULL PRIMARY KEY)',
    ],
  },
];

async function fill(tx: Writer): Promise<void> {
  await tx.run("INSERT INTO things VALUES ('a', 1, NULL), ('a', 2, 'c'), ('b', 1, '')");
}

/** Milliseconds for a test that moves hundreds of times. */
const patience = 180_000;

/** Fails at the statement of this number, counted over both ends; says whether it came so far. */
async function moveUpTo(
  last: number,
  from: DatabaseAddress,
  to: DatabaseAddress,
  replace: boolean,
) {
  let count = 0;
  const beforeStatement = () => {
    count += 1;
    if (count === last) throw new Error('cut off');
  };
  const end = { beforeStatement };
  const options = { faults: { source: end, target: end }, replace, migrations };
  const failed = await move(from, to, options).then(
    () => false,
    () => true,
  );
  expect(failed).toBe(count >= last);
  return failed;
}

/** Cuts one move off at each statement in turn, and completes it each time. */
async function cutEverywhere(
  make: () => Promise<{ readonly from: DatabaseAddress; readonly to: DatabaseAddress }>,
  { replace, step }: { readonly replace: boolean; readonly step: number },
): Promise<number> {
  let expected: unknown;
  for (let last = 1; ; last += step) {
    const { from, to } = await make();
    expected ??= await contents(from);
    const isCut = await moveUpTo(last, from, to, replace);
    const marks = [await stateOf(from), await stateOf(to)];
    const stood = `cut off at ${last}: ${marks}`;
    expect(possible, stood).toContainEqual(marks);
    const outcome = await move(from, to, { replace, migrations });
    expect(outcome.state, stood).toMatch(/^moved( before)?$/);
    expect(await contents(to), stood).toEqual(expected);
    expect([await stateOf(from), await stateOf(to)], stood).toEqual(['moved', 'arrived']);
    if (!isCut) return last;
  }
}

/** Marks in their order. Only without one, or `arrived`, a relay starts: at one end at the most. */
const possible = [
  ...[
    [undefined, undefined],
    ['moving', undefined],
  ],
  // No relay may run on an unfinished copy.
  ...[
    ['arrived', 'moved'],
    ['moving', 'moved'],
    ['moving', 'emptying'],
  ],
  ...[
    ['moving', 'arriving'],
    ['moved', 'arriving'],
    ['moved', 'arrived'],
  ],
];

test(
  'if cut off before any statement, in either database, it is completed by the next run',
  async () => {
    const make = async () => {
      const from = await databases.sqlite();
      await furnish(from, fill, { migrations });
      return { from, to: await databases.sqlite() };
    };
    expect(await cutEverywhere(make, { replace: false, step: 1 })).toBeGreaterThan(60);
  },
  patience,
);

test(
  'so is one that replaces the copy of an earlier move',
  async () => {
    const make = async () => {
      const [to, from] = [await databases.sqlite(), await databases.sqlite()];
      await furnish(to, fill, { migrations });
      await move(to, from, { migrations });
      return { from, to };
    };
    expect(await cutEverywhere(make, { replace: true, step: 2 })).toBeGreaterThan(60);
  },
  patience,
);

test(
  'and one from PostgreSQL, or to it',
  async () => {
    let turn = 0;
    const make = async () => {
      const engines =
        turn % 2 === 0 ? (['sqlite', 'postgres'] as const) : (['postgres', 'sqlite'] as const);
      turn += 1;
      const from = await databases.empty(engines[0]);
      await furnish(from, fill, { migrations });
      return { from, to: await databases.empty(engines[1]) };
    };
    expect(await cutEverywhere(make, { replace: false, step: 7 })).toBeGreaterThan(60);
  },
  patience,
);

const killed = new URL('killed.ts', import.meta.url).pathname;

/** Runs the move in a process that kills itself with SIGKILL at a statement; its signal, or none. */
async function moveAndDie(
  from: DatabaseAddress,
  to: DatabaseAddress,
  statement: number,
): Promise<string | null> {
  const where = (address: DatabaseAddress) =>
    address.engine === 'sqlite' ? address.name : address.url;
  const child = spawn(process.execPath, [killed, where(from), where(to), String(statement)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return await new Promise((resolve) => {
    child.on('close', (_code, signal) => resolve(signal));
  });
}

test('killed with SIGKILL again and again, it goes on, and the end is the same', async () => {
  const from = await databases.sqlite();
  await furnish(from, async (tx) => {
    await fewRows(tx);
    for (let count = 0; count < 12_000; count += 1) {
      await putEnvelope(tx, `envelope ${count}`, 'x'.repeat(count % 400), count);
    }
  });
  const unhurt = await databases.sqlite();
  if (from.engine !== 'sqlite' || unhurt.engine !== 'sqlite') throw new Error('both are SQLite');
  cpSync(from.folder, unhurt.folder, { recursive: true });
  const expected = digests((await move(unhurt, await databases.postgres())).tables);
  const before = await contents(from);

  const moments = fc.sample(fc.integer({ min: 1, max: 220 }), { numRuns: 14, seed });
  const to = await databases.postgres();
  let deaths = 0;
  for (const moment of moments) {
    if ((await moveAndDie(from, to, moment)) === 'SIGKILL') deaths += 1;
  }
  expect(deaths, `seed ${seed}`).toBeGreaterThan(3);
  const outcome = await moveStorage({ from, to, migrations: relayMigrations });
  if (outcome.state === 'moved') expect(digests(outcome.tables)).toEqual(expected);
  expect(outcome.state, `seed ${seed}`).toMatch(/^moved/);
  expect(await contents(to)).toEqual(before);
});

/** Of several batches. */
async function severalBatches(tx: Writer): Promise<void> {
  for (let count = 0; count < 2_000; count += 1) {
    await putEnvelope(tx, `envelope ${count}`, 'x'.repeat(500));
  }
}

/** After a server stopped during a move: starts it, and completes the move. */
async function completeAfterStop(from: DatabaseAddress, to: DatabaseAddress): Promise<void> {
  await databases.server.start();
  expect(await isInService(from)).toBe(false);
  expect((await move(from, to)).state).toBe('moved');
  expect(await contents(to)).toEqual(await contents(from));
}

test.each([
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
] as const)(
  'from %s to %s, a server that stops between two batches is named; the next run completes the move',
  async (...engines) => {
    const from = await databases.empty(engines[0]);
    const to = await databases.empty(engines[1]);
    await furnish(from, severalBatches);
    let stopped: Promise<void> | undefined;
    const progress = ({ table }: { readonly table: string }) => {
      if (table === 'message_envelopes') stopped ??= databases.server.stopAtOnce();
    };
    const lost = engines[0] === 'postgres' ? from : to;
    await expect(move(from, to, { progress })).rejects.toThrow(
      new RegExp(
        `^${lost.name.replaceAll(/[/?.]/g, '\\$&')}.*: (storage|the connection).*run the same command again`,
      ),
    );
    await stopped;
    await completeAfterStop(from, to);
  },
);

test('a server that stops before a COMMIT leaves its outcome unknown; the next run completes the move', async () => {
  const [from, to] = [await databases.sqlite(), await databases.postgres()];
  await furnish(from, severalBatches);
  let isCopying = false;
  let stopped: Promise<void> | undefined;
  const progress = ({ table }: { readonly table: string }) => {
    isCopying ||= table === 'message_envelopes';
  };
  const beforeCommit = () => {
    if (isCopying) stopped ??= databases.server.stopAtOnce();
  };
  await expect(move(from, to, { progress, faults: { target: { beforeCommit } } })).rejects.toThrow(
    `${to.name}, table message_envelopes: the outcome of the commit is unknown`,
  );
  await stopped;
  await completeAfterStop(from, to);
});

test('a signal stops it between two portions; the next run goes on', async () => {
  const [from, to] = [await databases.sqlite(), await databases.postgres()];
  await furnish(from);
  const stopping = new AbortController();
  const progress = () => stopping.abort(new Error('enough'));
  await expect(move(from, to, { progress, signal: stopping.signal })).rejects.toThrow('enough');
  expect([await stateOf(from), await stateOf(to)]).toEqual(['moving', 'arriving']);
  expect((await move(from, to)).state).toBe('moved');
});
