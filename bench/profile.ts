/** Where a relay's event loop spends its time under load: a CPU profile, by function and by module. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { LoadGenerator } from './load-generator.ts';
import { ownCheckout, startRelay } from './measured-process.ts';
import type { Table } from './table.ts';

const connections = 100;
const window = 16;
const warmUp = 6_000;
const messages = 10_000;
/** Rows of each table. */
const shown = 25;

/** What `node --cpu-prof` writes, as far as it is used here. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  /** Microseconds of the monotonic clock. */
  readonly startTime: number;
  readonly samples: readonly number[];
  /** Microseconds from each sample to the one before. */
  readonly timeDeltas: readonly number[];
}

/** Names the module of a function: a file of this project, a package, or a part of Node. */
function moduleOf(url: string): string {
  if (url === '') return '(native)';
  if (!url.startsWith('file:')) return url;
  const path = relative(ownCheckout, fileURLToPath(url));
  return /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path;
}

/** Adds up the self time of samples between two times, microseconds, by the name of their frame. */
export function selfTimes(
  { nodes, startTime, samples, timeDeltas }: CpuProfile,
  { from, to }: { readonly from: number; readonly to: number },
  nameOf: (callFrame: CpuProfile['nodes'][number]['callFrame']) => string,
): Map<string, number> {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, nameOf(callFrame)]));
  const times = new Map<string, number>();
  let at = startTime;
  for (const [index, id] of samples.entries()) {
    const delta = timeDeltas[index] ?? 0;
    at += delta;
    const name = names.get(id) as string;
    if (at < from || at > to || name === '(idle)') continue;
    times.set(name, (times.get(name) ?? 0) + delta);
  }
  return times;
}

/** Reads the profile of the event loop's thread; those of worker threads are shorter. */
function readProfile(folder: string): CpuProfile {
  const files = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'));
  const paths = files.map((name) => join(folder, name));
  const [largest] = paths.sort((a, b) => statSync(b).size - statSync(a).size);
  if (largest === undefined) throw new Error('the relay wrote no profile');
  return JSON.parse(readFileSync(largest, 'utf8')) as CpuProfile;
}

const now = () => Number(process.hrtime.bigint() / 1_000n);

/** Profiles this checkout's relay under load. */
export async function profileTables(folder: string): Promise<Table[]> {
  const profiles = join(folder, 'profiles');
  let period = { from: 0, to: 0 };
  {
    await using parts = new AsyncDisposableStack();
    const flags = ['--cpu-prof', '--cpu-prof-interval=200', `--cpu-prof-dir=${profiles}`];
    const relay = await startRelay(parts, join(folder, 'profiled'), { name: 'relay', flags });
    const generator = parts.use(new LoadGenerator());
    await generator.order({ do: 'make', accounts: connections });
    await generator.order({ do: 'open', target: relay.target });
    await generator.order({ do: 'messages', connections, messages: warmUp });
    await generator.run(relay, { window });
    await generator.order({ do: 'messages', connections, messages });
    const from = now();
    await generator.run(relay, { window });
    period = { from, to: now() };
  }
  const profile = readProfile(profiles);
  const own = (url: string) => moduleOf(url).replace(/^packages\/([^/]+)\/src\//, '$1/');
  const byFunction = selfTimes(profile, period, ({ functionName, url, lineNumber }) => {
    const name = functionName === '' ? '(anonymous)' : functionName;
    return url === '' ? name : `${name}  ${own(url)}:${lineNumber + 1}`;
  });
  const byModule = selfTimes(profile, period, ({ url, functionName }) =>
    url === '' ? functionName : own(url),
  );
  return [topTable('Self time by function', byFunction), topTable('Self time by module', byModule)];
}

function topTable(title: string, times: ReadonlyMap<string, number>): Table {
  const total = [...times.values()].reduce((sum, time) => sum + time, 0);
  const top = [...times].sort(([, a], [, b]) => b - a).slice(0, shown);
  return {
    section: 'profile',
    title: `${title}, ${connections} connections with ${window} requests in flight`,
    columns: [
      { key: 'share', label: '%', digits: 1 },
      { key: 'each', label: 'µs a message', digits: 1 },
      { key: 'name', label: 'where' },
    ],
    rows: top.map(([name, time]) => ({ share: (time / total) * 100, each: time / messages, name })),
    notes: ['Of the time in which the event loop was not idle.'],
  };
}
