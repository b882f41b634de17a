/** The write-ahead log of a relay that is saturated for long: its largest size, and when all of it is copied. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadGenerator } from '../load-generator.ts';
import { startRelay } from '../measured-process.ts';
import type { Table } from '../table.ts';

const connections = 100;
const window = 16;
/** About what a relay accepts in a minute. */
const messages = 120_000;
/** Milliseconds between two looks at the log, and at most until all of it is copied. */
const sampleTime = 20;
const patience = 30_000;

/** Counts the frames of the log, and copies none. */
const countSql = 'PRAGMA wal_checkpoint(NOOP)';

export interface LogOptions {
  readonly folder: string;
  /** Path of the relay's entry point. */
  readonly main: string;
  /** Scales the number of messages. */
  readonly seconds: number;
}

/** Returns the seconds until the whole log is copied into the database, `undefined` if that takes too long. */
async function untilCopied(database: DatabaseSync): Promise<number | undefined> {
  const begun = performance.now();
  while (performance.now() - begun < patience) {
    const { log, checkpointed } = database.prepare(countSql).get() as Record<string, number>;
    if (log === checkpointed) return (performance.now() - begun) / 1_000;
    await sleep(sampleTime);
  }
  return undefined;
}

/** Measures one relay under load without a pause. */
export async function logTable({ folder, main, seconds }: LogOptions): Promise<Table> {
  await using parts = new AsyncDisposableStack();
  const relay = { name: 'relay, built', main, isProbed: false };
  const server = await startRelay(parts, join(folder, 'log'), relay);
  const generator = parts.use(new LoadGenerator());
  await generator.order({ do: 'make', accounts: connections });
  await generator.order({ do: 'open', target: server.target });
  const count = Math.max(Math.ceil(messages * seconds), connections * window);
  await generator.order({ do: 'messages', connections, messages: count });
  using database = new DatabaseSync(server.database);
  let largest = 0;
  const look = () => {
    largest = Math.max(largest, statSync(`${server.database}-wal`).size);
  };
  const timer = setInterval(look, sampleTime);
  const run = await generator.load(server.target.name, { window });
  clearInterval(timer);
  look();
  const copied = await untilCopied(database);
  return {
    section: 'log',
    title: 'The write-ahead log at saturation',
    columns: [
      { key: 'server', label: 'server' },
      { key: 'accepted', label: 'messages' },
      { key: 'seconds', label: 'seconds', digits: 1 },
      { key: 'log', label: 'largest log MiB', digits: 1 },
      { key: 'copied', label: 'copied after s', digits: 2 },
    ],
    rows: [
      {
        ...{ server: relay.name, accepted: run.accepted, seconds: run.seconds },
        ...{ log: largest / 2 ** 20, copied },
      },
    ],
    notes: [
      `${connections} connections with ${window} requests in flight. Above 32 MiB the next batch waits until the log is copied.`,
      'copied after s: from the last answer until all of the log is in the database.',
    ],
  };
}
