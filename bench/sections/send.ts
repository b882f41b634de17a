/** `message.send` between accounts of one relay: as many as it accepts, and 200 a second. */
import type { Table } from '../table.ts';
import { type Compared, compare, figureColumns, figureNotes } from './compared.ts';

const windows = [1, 16];

/** How often a run fills the window of each connection at least: otherwise it measures one burst. */
const fillings = 5;

/** About how many messages a second a server accepts: only the length of runs follows from it. */
function expectedRate(connections: number, window: number): number {
  return connections === 1 ? 250 * Math.min(window, 6) : 2_500;
}

/** Measures saturation by connections and requests in flight on each. */
export async function send(parts: Compared, connectionCounts: readonly number[]): Promise<Table> {
  const rows = [];
  for (const connections of connectionCounts) {
    for (const window of windows) {
      const rate = expectedRate(connections, window);
      const messages = Math.max(Math.ceil(rate * parts.seconds), fillings * connections * window);
      const frames = { do: 'messages', connections, messages } as const;
      const measured = await compare(parts, { frames, window });
      rows.push(...measured.map((row) => ({ connections, window, ...row })));
    }
  }
  return {
    section: 'send',
    title: 'Sending at saturation',
    columns: [
      { key: 'connections', label: 'connections' },
      { key: 'window', label: 'window' },
      { key: 'server', label: 'server' },
      ...figureColumns('floor'),
    ],
    rows,
    notes: [
      '/floor: ratio to the floor in the same pair of runs, median of the pairs.',
      ...figureNotes,
    ],
  };
}

const rate = 200;

/** Connections of the section `latency`. */
export const latencyConnections = 20;

/** Measures a server that has little to do. */
export async function latency(parts: Compared): Promise<Table> {
  const messages = Math.ceil(rate * 3 * parts.seconds);
  const frames = { do: 'messages', connections: latencyConnections, messages } as const;
  const rows = await compare(parts, { frames, window: 1, rate });
  const columns = figureColumns('floor').filter(({ key }) => !key.startsWith('perSecond'));
  return {
    section: 'latency',
    title: `Latency at ${rate} messages a second on ${latencyConnections} connections`,
    columns: [{ key: 'server', label: 'server' }, ...columns],
    rows,
  };
}
