/**
 * Measures accepted `message.send` per second with one, two and three relay processes on PostgreSQL
 * and with one process on SQLite in the same run, the CPU time by part for each accepted message,
 * and this machine's raw verifications and disk flushes to compare with.
 *
 *   npm run bench:cluster [-- --connections 48 --messages 60 --window 4 --pool 10]
 *
 * Everything is durable. The load generator is a process of its own; it seals its messages before
 * the clock starts and spreads its connections over the relay processes.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { RelayProcess } from '../packages/relay/test/cluster/relay-process.ts';
import { TestNats, withoutNats } from '../packages/relay/test/support/nats.ts';
import { freePort } from '../packages/relay/test/support/ports.ts';
import { TestPostgres } from '../packages/relay/test/support/postgres.ts';
import type { LoadOrder, LoadReport } from './load.ts';
import { flushesPerSecond, verificationsPerSecond, writeConfig } from './support.ts';

const { values } = parseArgs({
  options: {
    connections: { type: 'string', default: '48' },
    messages: { type: 'string', default: '60' },
    window: { type: 'string', default: '4' },
    pool: { type: 'string', default: '10' },
  },
});
const options = {
  connections: Number(values.connections),
  messages: Number(values.messages),
  window: Number(values.window),
};
/** Connections of each relay process to PostgreSQL. */
const pool = Number(values.pool);

/** Clock ticks of `/proc`, the same on every Linux. */
const ticksPerSecond = 100;

/** Reads the CPU seconds of a process and of the children it waited for. */
function cpuOf(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in brackets before the fields may contain spaces.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return ticks / ticksPerSecond;
  } catch {
    return 0; // It ended meanwhile.
  }
}

function childrenOf(parent: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
      return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]) === parent;
    } catch {
      return false;
    }
  });
}

/** Adds up the CPU seconds of processes and of their running children. */
function cpuWithChildren(pids: readonly number[]): number {
  const all = [...pids, ...pids.flatMap(childrenOf)];
  return all.reduce((sum, pid) => sum + cpuOf(pid), 0);
}

interface Setup {
  readonly name: string;
  readonly processes: number;
  readonly settings: Readonly<Record<string, unknown>>;
  /** PIDs of the database and NATS servers, whose CPU time is reported. */
  readonly servers: readonly number[];
}

interface Measured extends LoadReport {
  readonly relayCpu: number;
  readonly serverCpu: number;
}

async function measure({ processes, settings, servers }: Setup): Promise<Measured> {
  await using parts = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
  parts.defer(() => rmSync(folder, { recursive: true, force: true }));
  const ports: number[] = [];
  for (let count = 0; count < processes; count += 1) ports.push(await freePort());
  const base = `https://127.0.0.1:${ports[0]}/svc/v1`;
  // All processes announce the first one's address; each port leads to the same relay.
  const named = { https: [base], peer: '/ip4/127.0.0.1/tcp/4201' };
  const config = writeConfig(folder, { public: named, ...settings });
  const pids: number[] = [];
  for (const port of ports) {
    pids.push(parts.use(await RelayProcess.start({ config, port }, console.error)).pid);
  }
  const generator = fork(new URL('./load.ts', import.meta.url));
  parts.defer(() => void generator.kill('SIGKILL'));
  const order: LoadOrder = {
    target: {
      relay: base,
      registry: join(folder, 'registry.json'),
      ca: join(folder, 'tls', 'ca.pem'),
    },
    sockets: ports.map((port) => `wss://127.0.0.1:${port}/svc/v1`),
    options,
  };
  generator.send(order);
  await nextMessage(generator);
  const before = { relay: cpuWithChildren(pids), server: cpuWithChildren(servers) };
  generator.send('go');
  const report = (await nextMessage(generator)) as LoadReport;
  return {
    ...report,
    relayCpu: cpuWithChildren(pids) - before.relay,
    serverCpu: cpuWithChildren(servers) - before.server,
  };
}

/** Waits for the generator's next message; throws if the generator ends instead. */
async function nextMessage(generator: ReturnType<typeof fork>): Promise<unknown> {
  const over = new AbortController();
  const { signal } = over;
  const ended = once(generator, 'exit', { signal }).then(([code]) => {
    throw new Error(`the load generator ended with ${code}`);
  });
  ended.catch(() => {});
  try {
    const [message] = await Promise.race([once(generator, 'message', { signal }), ended]);
    return message;
  } finally {
    over.abort();
  }
}

const columns = [
  ...['', 'accepted/s', 'ratio', 'retried', 'median', '99 %'],
  ...['relay', 'servers', 'load', 'cores'],
];
const widths = [24, 11, 7, 9, 11, 11, 7, 9, 6, 7];

function line(cells: readonly string[]): string {
  const padded = cells.map((cell, index) =>
    index === 0 ? cell.padEnd(widths[0] as number) : cell.padStart(widths[index] as number),
  );
  return padded.join('');
}

/** @param raw verifications per second */
function row({ name }: Setup, measured: Measured, raw: number): string {
  const { accepted, seconds, relayCpu, serverCpu, cpu } = measured;
  const perSecond = accepted / seconds;
  const each = (spent: number) => ((spent * 1_000) / accepted).toFixed(2);
  return line([
    name,
    perSecond.toFixed(0),
    (perSecond / raw).toFixed(3),
    String(measured.retried),
    `${measured.median.toFixed(1)} ms`,
    `${measured.ninetyNine.toFixed(1)} ms`,
    each(relayCpu),
    each(serverCpu),
    each(cpu),
    ((relayCpu + serverCpu + cpu) / seconds).toFixed(2),
  ]);
}

await using parts = new AsyncDisposableStack();
const postgres = parts.use(await TestPostgres.start({ durable: true }));
const nats = withoutNats === undefined ? parts.use(await TestNats.start()) : undefined;
const raw = verificationsPerSecond();
const flushes = flushesPerSecond(tmpdir());
const setups: Setup[] = [{ name: 'SQLite, 1 process', processes: 1, settings: {}, servers: [] }];
for (const processes of [1, 2, 3]) {
  if (processes > 1 && nats === undefined) break;
  setups.push({
    name: `PostgreSQL, ${processes} process${processes === 1 ? '' : 'es'}`,
    processes,
    settings: {
      storage: { engine: 'postgres', url: await postgres.createDatabase(), connections: pool },
      ...(processes > 1 && { bus: { nats: nats?.url } }),
    },
    servers: [postgres.pid, ...(nats === undefined ? [] : [nats.pid])],
  });
}
console.log(`cores                    ${availableParallelism()}`);
console.log(`Ed25519 verifications    ${raw.toFixed(0)} per second on one thread`);
console.log(`durable appends          ${flushes.toFixed(0)} per second`);
console.log(`load                     ${options.connections} connections, ${options.window} each`);
if (withoutNats !== undefined) console.log(`several processes        not measured: ${withoutNats}`);
console.log(
  'ratio: accepted per raw verification; retried: sends answered temporarily_unavailable',
);
console.log('relay, servers, load: CPU milliseconds for each accepted message; cores: busy in all');
console.log(line(columns));
for (const setup of setups) console.log(row(setup, await measure(setup), raw));
