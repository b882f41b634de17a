/** `message.send` between accounts of one relay: as many as it accepts, and 200 a second. */
import type { Table } from '../table.ts';
import { type Compared, compare, figureColumns } from './compared.ts';

const windows = [1, 16];

/** About how many messages a second a server accepts: only the length of runs follows from it. */
function expectedRate(connections: number, window: number): number {
  return connections === 1 ? 250 * Math.min(window, 6) : 2_500;
}

const notes = [
  'floor: ratio to the floor in the same pair of runs, median of the pairs.',
  'CPU s/10k: of the server for 10,000 messages; loop µs: of its event loop for one; load s/10k: of the load generator.',
];

/** Measures saturation by connections and requests in flight on each. */
export async function send(parts: Compared, connectionCounts: readonly number[]): Promise<Table> {
  const rows = [];
  for (const connections of connectionCounts) {
    for (const window of windows) {
      const rate = expectedRate(connections, window);
      // Each connection fills its window more than once.
      const messages = Math.max(Math.ceil(rate * parts.seconds), connections * window);
      const measured = await compare(parts, { connections, window, messages });
      rows.push(...measured.map((row) => ({ connections, window, ...row })));
    }
  }
  const columns = [
    { key: 'connections', label: 'connections' },
    { key: 'window', label: 'window' },
    { key: 'server', label: 'server' },
    ...figureColumns,
  ];
  return { section: 'send', title: 'Sending at saturation', columns, rows, notes };
}

const rate = 200;
const pacedConnections = 20;

/** Measures what a server takes that has little to do. */
export async function latency(parts: Compared): Promise<Table> {
  const messages = Math.ceil(rate * 3 * parts.seconds);
  const setting = { connections: pacedConnections, window: 1, messages, rate };
  const rows = await compare(parts, setting);
  const columns = [{ key: 'server', label: 'server' }, ...figureColumns.slice(2)];
  const title = `Latency at ${rate} messages a second on ${pacedConnections} connections`;
  return { section: 'latency', title, columns, rows };
}
