/** Relays with many stored messages: how long they take to start, and what a page of a timeline costs. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fillTimeline } from '../filled-database.ts';
import { LoadGenerator } from '../load-generator.ts';
import { type MeasuredServer, startRelay } from '../measured-process.ts';
import { cpuWithChildren } from '../process-cpu.ts';
import { type Cell, median, type Table } from '../table.ts';
import { compare, figureColumns, figureNotes } from './compared.ts';

/** A relay to measure: its name, and the path of its entry point. */
interface StoredRelay {
  readonly name: string;
  readonly main: string;
}

/** What is started only: {@link StoredRelay} on the data of another one. */
interface StartedRelay extends StoredRelay {
  /** Name of the relay whose data it starts on. */
  readonly data: string;
}

export interface StoredOptions {
  readonly folder: string;
  readonly relays: readonly StoredRelay[];
  readonly started: readonly StartedRelay[];
  /** Numbers of stored messages, ascending. */
  readonly sizes: readonly number[];
  readonly pairs: number;
  readonly seconds: number;
}

/** Starts of each relay with the most stored messages. */
const starts = 3;
/** Requests in flight, all on one connection. */
const window = 4;
/** About how many pages a second a relay answers: only the length of runs follows from it. */
const expectedRate = 400;

/** Measures pages of an account's timeline at all sizes, then starts with the largest. */
export async function storedTables(options: StoredOptions): Promise<Table[]> {
  const { relays, sizes, pairs, seconds } = options;
  using generator = new LoadGenerator();
  await generator.order({ do: 'make', accounts: 2 });
  const folderOf = (name: string) => join(options.folder, `stored ${name}`);
  const start = (parts: AsyncDisposableStack, relay: StoredRelay) =>
    startRelay(parts, folderOf(relay.name), relay);
  {
    await using parts = new AsyncDisposableStack();
    for (const relay of relays) {
      const server = await start(parts, relay);
      await generator.order({ do: 'open', target: server.target });
      // The first account writes to the second one, whose record is copied.
      await generator.order({ do: 'messages', connections: 1, messages: 1 });
      await generator.run(server, { window: 1 });
    }
  }
  const pages: Record<string, Cell>[] = [];
  for (const stored of sizes) {
    await using parts = new AsyncDisposableStack();
    const servers: MeasuredServer[] = [];
    for (const relay of relays) {
      fillTimeline(folderOf(relay.name), stored);
      const server = await start(parts, relay);
      await generator.order({ do: 'open', target: server.target, isRegistered: true });
      servers.push(server);
    }
    const count = Math.max(4, Math.ceil(expectedRate * seconds));
    const frames = { do: 'pages', stored, count } as const;
    // The first run compiles code and fills caches.
    await compare({ servers, generator, pairs: 1, seconds }, { frames, window });
    const rows = await compare({ servers, generator, pairs, seconds }, { frames, window });
    pages.push(...rows.map((row) => ({ stored, ...row })));
  }
  const first = relays.length > 1 ? relays[0]?.name : undefined;
  const pageTable: Table = {
    section: 'pages',
    title: 'Pages of 50 of a timeline',
    columns: [
      { key: 'stored', label: 'stored' },
      { key: 'server', label: 'server' },
      ...figureColumns(first),
    ],
    rows: pages,
    notes: [
      ...figureNotes,
      'A page reads three pages more of the database at 1,000,000 than at 100,000; 1,000 fit into the cache. The counts are in bench/README.md.',
    ],
  };
  return [pageTable, await startTable(options.started, sizes.at(-1) ?? 0, folderOf)];
}

/** Starts relays in turn, as operators do, and runs `posthouse --help` of each. */
async function startTable(
  relays: readonly StartedRelay[],
  stored: number,
  folderOf: (name: string) => string,
): Promise<Table> {
  const times = relays.map(() => ({
    ready: [] as number[],
    cpu: [] as number[],
    help: [] as number[],
  }));
  for (let count = 0; count < starts; count += 1) {
    for (const [at, { name, main, data }] of relays.entries()) {
      const own = times[at] as (typeof times)[number];
      {
        await using parts = new AsyncDisposableStack();
        const started = performance.now();
        const options = { name, main, isProbed: false };
        const { processes } = await startRelay(parts, folderOf(data), options);
        own.ready.push(performance.now() - started);
        own.cpu.push(cpuWithChildren(processes.map(({ pid }) => pid)) * 1_000);
      }
      // The relay has ended.
      const asked = performance.now();
      execFileSync(process.execPath, [main, '--help']);
      own.help.push(performance.now() - asked);
    }
  }
  return {
    section: 'start',
    title: `Start with ${stored.toLocaleString('en')} stored messages`,
    columns: [
      { key: 'server', label: 'program' },
      { key: 'ready', label: 'ready after ms' },
      { key: 'cpu', label: 'CPU ms' },
      { key: 'help', label: '--help ms' },
    ],
    rows: relays.map(({ name }, at) => ({
      server: name,
      ready: median(times[at]?.ready ?? []),
      cpu: median(times[at]?.cpu ?? []),
      help: median(times[at]?.help ?? []),
    })),
  };
}
