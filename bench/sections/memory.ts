/** Memory of a relay as it is installed: idle, of each connection, under load and after it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoadGenerator } from '../load-generator.ts';
import { type MeasuredServer, startFloor, startRelay } from '../measured-process.ts';
import type { Cell, Table } from '../table.ts';

/** Connections that send nothing. */
const idleConnections = 1_000;
/** The load. */
const connections = 100;
const window = 16;
const messages = 5_000;
/** Milliseconds until an idle process is measured, and between two looks under load. */
const settleTime = 3_000;
const sampleTime = 200;

export interface MemoryOptions {
  readonly folder: string;
  /** Path of the built relay's entry point. */
  readonly main: string;
  /** Scales the number of messages. */
  readonly seconds: number;
  /** Seconds after the load at which memory is measured once more. */
  readonly rest: number;
}

/** Proportional set size in MiB: memory of its own, and its share of what processes have in common. */
function pss({ processes }: MeasuredServer): number {
  const [process] = processes;
  const text = readFileSync(`/proc/${process?.pid}/smaps_rollup`, 'utf8');
  return Number(/^Pss: +([0-9]+) kB$/m.exec(text)?.[1]) / 1_024;
}

async function measure(
  server: MeasuredServer,
  { seconds, rest }: MemoryOptions,
): Promise<Record<string, Cell>> {
  using generator = new LoadGenerator();
  const { target } = server;
  await sleep(settleTime);
  const idle = pss(server);
  await generator.order({ do: 'make', accounts: connections });
  await generator.order({ do: 'idle', target, count: idleConnections });
  await sleep(settleTime);
  const connected = pss(server);
  await generator.order({ do: 'idle', target, count: 0 });
  await generator.order({ do: 'open', target });
  const count = Math.max(Math.ceil(messages * seconds), connections * window);
  await generator.order({ do: 'messages', connections, messages: count });
  let highest = 0;
  const timer = setInterval(() => {
    highest = Math.max(highest, pss(server));
  }, sampleTime);
  await generator.load(target.name, { window });
  clearInterval(timer);
  highest = Math.max(highest, pss(server));
  await sleep(rest * 1_000);
  const each = ((connected - idle) * 1_024) / idleConnections;
  return { server: target.name, idle, each, highest, after: pss(server) };
}

/** Measures the built relay, and the floor for its connections and its load. */
export async function memoryTable(options: MemoryOptions): Promise<Table> {
  const { folder, main, rest } = options;
  const relayFolder = join(folder, 'memory');
  const rows: Record<string, Cell>[] = [];
  {
    await using parts = new AsyncDisposableStack();
    const relay = { name: 'relay, built', main, isProbed: false };
    rows.push(await measure(await startRelay(parts, relayFolder, relay), options));
  }
  await using parts = new AsyncDisposableStack();
  const floor = await startFloor(parts, join(folder, 'memory of the floor'), relayFolder);
  rows.unshift(await measure(floor, options));
  return {
    section: 'memory',
    title: 'Memory (PSS)',
    columns: [
      { key: 'server', label: 'server' },
      { key: 'idle', label: 'idle MiB' },
      { key: 'each', label: 'KiB for an idle TLS WebSocket' },
      { key: 'highest', label: 'under load MiB' },
      { key: 'after', label: `${rest} s later MiB` },
    ],
    rows,
    notes: [
      `${idleConnections.toLocaleString('en')} WebSockets without a session; load: ${connections} connections with ${window} requests in flight.`,
      'The floor runs from TypeScript, which takes about 50 MiB: compare its connections, not its idle memory.',
    ],
  };
}
