/** Runs of the same load at several servers in alternation, and their ratios to the floor. */
import type { LoadGenerator, Measured } from '../load-generator.ts';
import type { MeasuredServer } from '../measured-process.ts';
import { type Cell, type Column, median } from '../table.ts';

/** What sections measure with: servers of which the first is the floor, and the load. */
export interface Compared {
  readonly servers: readonly MeasuredServer[];
  readonly generator: LoadGenerator;
  /** Runs of each server. */
  readonly pairs: number;
  /** Scales the number of messages; 1 is about a second of each run. */
  readonly seconds: number;
}

export interface LoadSetting {
  readonly connections: number;
  readonly window: number;
  readonly messages: number;
  readonly rate?: number;
}

/** A measured figure by which servers are compared. */
interface Figure {
  readonly key: string;
  readonly label: string;
  readonly digits: number;
  readonly of: (measured: Measured) => number;
}

const figures: readonly Figure[] = [
  { key: 'perSecond', label: 'accepted/s', digits: 0, of: (run) => run.accepted / run.seconds },
  { key: 'p50', label: 'p50 ms', digits: 2, of: (run) => run.p50 },
  { key: 'p99', label: 'p99 ms', digits: 1, of: (run) => run.p99 },
  { key: 'cpu', label: 'CPU s/10k', digits: 2, of: (run) => run.cpuEach },
  { key: 'loop', label: 'loop µs', digits: 0, of: (run) => run.loopEach },
];

/** Columns of the figures, each followed by its ratio to the floor. */
export const figureColumns: readonly Column[] = [
  ...figures.flatMap(({ key, label, digits }) => [
    { key, label, digits },
    { key: `${key}Ratio`, label: 'floor', isRatio: true },
  ]),
  { key: 'load', label: 'load s/10k', digits: 2 },
];

/** Measures one setting at all servers; returns a row for each. */
export async function compare(
  { servers, generator, pairs }: Compared,
  { connections, window, messages, rate }: LoadSetting,
): Promise<Record<string, Cell>[]> {
  const runs = servers.map((): Measured[] => []);
  for (let pair = 0; pair < pairs; pair += 1) {
    await generator.order({ do: 'prepare', connections, messages });
    for (const step of servers.keys()) {
      // Each server is the first one in turn.
      const at = (step + pair) % servers.length;
      const options = { window, ...(rate === undefined ? {} : { rate }) };
      runs[at]?.push(await generator.run(servers[at] as MeasuredServer, options));
    }
  }
  const [floor = []] = runs;
  return servers.map(({ target }, at) => {
    const own = runs[at] as Measured[];
    const row: Record<string, Cell> = { server: target.name };
    for (const { key, of } of figures) {
      row[key] = median(own.map(of));
      const ratios = own.map((run, pair) => of(run) / of(floor[pair] as Measured));
      row[`${key}Ratio`] = at === 0 ? undefined : median(ratios);
    }
    row.load = median(own.map(({ cpu, accepted }) => (cpu * 10_000) / accepted));
    return row;
  });
}
