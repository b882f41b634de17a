/** `message.send` with one, two and three relay processes on one PostgreSQL, and on SQLite. */
import { join } from 'node:path';
import { TestNats, withoutNats } from '../../packages/relay/test/support/nats.ts';
import { TestPostgres } from '../../packages/relay/test/support/postgres.ts';
import { LoadGenerator } from '../load-generator.ts';
import { type RelayOptions, startRelay } from '../measured-process.ts';
import { cpuWithChildren } from '../process-cpu.ts';
import type { Cell, Table } from '../table.ts';

/** The load of every row. */
const load = { connections: 48, window: 8 } as const;
/** Connections of each relay process to PostgreSQL. */
const pool = 10;
/** About how many messages a second are accepted: only the length of runs follows from it. */
const expectedRate = 3_000;

interface Setup extends RelayOptions {
  /** PIDs of the database and NATS servers, whose CPU time is reported. */
  readonly servers: readonly number[];
}

async function measure(
  folder: string,
  messages: number,
  setup: Setup,
): Promise<Record<string, Cell>> {
  await using parts = new AsyncDisposableStack();
  const server = await startRelay(parts, join(folder, setup.name), setup);
  const generator = parts.use(new LoadGenerator());
  const { connections, window } = load;
  await generator.order({ do: 'make', accounts: connections });
  await generator.order({ do: 'open', target: server.target });
  // The first run is not counted: code is compiled, grants are verified.
  await generator.order({ do: 'messages', connections, messages });
  await generator.run(server, { window });
  await generator.order({ do: 'messages', connections, messages });
  const before = cpuWithChildren(setup.servers);
  const run = await generator.run(server, { window });
  const spent = cpuWithChildren(setup.servers) - before;
  return {
    setup: setup.name,
    perSecond: run.accepted / run.seconds,
    p50: run.p50,
    p99: run.p99,
    cpu: run.cpuEach,
    servers: (spent * 10_000) / run.accepted,
    load: (run.cpu * 10_000) / run.accepted,
    retried: run.retried,
  };
}

/** Measures all setups, one after another; `seconds` scales the number of messages. */
export async function postgres(
  folder: string,
  { seconds, main }: { readonly seconds: number; readonly main?: string | undefined },
): Promise<Table> {
  await using parts = new AsyncDisposableStack();
  const server = parts.use(await TestPostgres.start({ durable: true }));
  const nats = withoutNats === undefined ? parts.use(await TestNats.start()) : undefined;
  const messages = Math.max(Math.ceil(expectedRate * seconds), load.connections * 4);
  const first = { name: 'SQLite, 1 process', servers: [], main };
  const rows = [await measure(folder, messages, first)];
  for (const count of nats === undefined ? [1] : [1, 2, 3]) {
    const url = await server.createDatabase();
    const settings = {
      storage: { engine: 'postgres', url, connections: pool },
      ...(count > 1 && { bus: { nats: nats?.url } }),
    };
    const servers = [server.pid, ...(nats === undefined ? [] : [nats.pid])];
    const name = `PostgreSQL, ${count} process${count === 1 ? '' : 'es'}`;
    rows.push(await measure(folder, messages, { name, count, main, settings, servers }));
  }
  const [sqlite] = rows;
  for (const row of rows) row.ratio = Number(row.perSecond) / Number(sqlite?.perSecond);
  return {
    section: 'postgres',
    title: `PostgreSQL: ${load.connections} connections with ${load.window} requests in flight`,
    columns: [
      { key: 'setup', label: 'setup' },
      { key: 'perSecond', label: 'accepted/s' },
      { key: 'ratio', label: 'SQLite', isRatio: true },
      { key: 'p50', label: 'p50 ms', digits: 1 },
      { key: 'p99', label: 'p99 ms', digits: 1 },
      { key: 'cpu', label: 'relay s/10k', digits: 2 },
      { key: 'servers', label: 'servers s/10k', digits: 2 },
      { key: 'load', label: 'load s/10k', digits: 2 },
      { key: 'retried', label: 'retried' },
    ],
    rows,
    notes: [
      's/10k: CPU seconds for 10,000 messages, of all relay processes, of PostgreSQL and NATS, of the load generator.',
      ...(withoutNats === undefined ? [] : [`Several processes are not measured: ${withoutNats}.`]),
    ],
  };
}
