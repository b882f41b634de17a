/** Runs of the same load at several servers in alternation, and their ratios to the first server. */
import type { FrameOrder } from '../load.ts';
import type { LoadGenerator, Measured } from '../load-generator.ts';
import type { MeasuredServer } from '../measured-process.ts';
import { type Cell, type Column, median } from '../table.ts';

/** What sections measure with. */
export interface Compared {
  /** Compared with the first one, which is the floor where there is one. */
  readonly servers: readonly MeasuredServer[];
  readonly generator: LoadGenerator;
  /** Runs of each server. */
  readonly pairs: number;
  /** Scales the number of requests; 1 is about a second of each run. */
  readonly seconds: number;
}

/** One load of all servers. */
export interface LoadSetting {
  /** Prepares the frames: the same for all servers, or for each its own. */
  readonly frames: FrameOrder | ((name: string) => FrameOrder);
  /** Requests in flight on each connection. */
  readonly window: number;
  /** Requests a second. */
  readonly rate?: number;
  /** Requests that make one, 1 by default. */
  readonly perItem?: number;
}

/** A measured figure by which servers are compared. */
interface Figure {
  readonly key: string;
  readonly label: string;
  readonly digits: number;
  readonly of: (measured: Measured) => number;
}

const figures: readonly Figure[] = [
  { key: 'perSecond', label: 'per second', digits: 0, of: (run) => run.accepted / run.seconds },
  { key: 'p50', label: 'p50 ms', digits: 2, of: (run) => run.p50 },
  { key: 'p99', label: 'p99 ms', digits: 1, of: (run) => run.p99 },
  { key: 'cpu', label: 'CPU s/10k', digits: 2, of: (run) => run.cpuEach },
  { key: 'loop', label: 'loop µs', digits: 0, of: (run) => run.loopEach },
];

/** How to read the columns. */
export const figureNotes = [
  'CPU s/10k: of the server for 10,000 requests; loop µs: of its event loop for one; load s/10k: of the load generator.',
];

/**
 * Returns the columns of the figures, each followed by its ratio to the first server.
 *
 * @param first name of the first server; ratios are left out without it
 */
export function figureColumns(first?: string): readonly Column[] {
  const columns = figures.flatMap(({ key, label, digits }): Column[] => {
    const ratio = { key: `${key}Ratio`, label: `/${first}`, isRatio: true };
    return [{ key, label, digits }, ...(first === undefined ? [] : [ratio])];
  });
  return [...columns, { key: 'load', label: 'load s/10k', digits: 2 }];
}

/** Measures one setting at all servers in alternation; returns a row for each. */
export async function compare(
  { servers, generator, pairs }: Compared,
  { frames, window, rate, perItem = 1 }: LoadSetting,
): Promise<Record<string, Cell>[]> {
  const runs = servers.map((): Measured[] => []);
  const options = { window, ...(rate === undefined ? {} : { rate }) };
  for (let pair = 0; pair < pairs; pair += 1) {
    if (typeof frames !== 'function') await generator.order(frames);
    for (const step of servers.keys()) {
      // Each server is the first one in turn.
      const at = (step + pair) % servers.length;
      const server = servers[at] as MeasuredServer;
      if (typeof frames === 'function') await generator.order(frames(server.target.name));
      runs[at]?.push(perItemOf(await generator.run(server, options), perItem));
    }
  }
  const [first = []] = runs;
  return servers.map(({ target }, at) => {
    const own = runs[at] as Measured[];
    const row: Record<string, Cell> = { server: target.name };
    for (const { key, of } of figures) {
      row[key] = median(own.map(of));
      const ratios = own.map((run, pair) => of(run) / of(first[pair] as Measured));
      row[`${key}Ratio`] = at === 0 ? undefined : median(ratios);
    }
    row.load = median(own.map(({ cpu, accepted }) => (cpu * 10_000) / accepted));
    return row;
  });
}

/** Counts as one what several requests make. */
function perItemOf(run: Measured, requests: number): Measured {
  const { accepted, cpuEach, loopEach } = run;
  return {
    ...run,
    accepted: accepted / requests,
    cpuEach: cpuEach * requests,
    loopEach: loopEach * requests,
  };
}
