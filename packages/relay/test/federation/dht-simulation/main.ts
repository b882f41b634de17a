/**
 * Runs the relay DHT in a simulation in which everything follows from a seed.
 *
 * npm run test:dht -- --seeds 10 [--from 1] [--relays 200] [--accounts 24] [--finders 3] [--refresh 24]
 *                     [--trace]
 * npm run test:dht -- --defects [--defect NAME] [--seeds 3] [--relays 100]
 */
import { parseArgs } from 'node:util';
import { dhtDefects } from './defect.ts';
import { type DhtRun, runDht } from './run.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '3' },
    from: { type: 'string', default: '1' },
    relays: { type: 'string', default: '200' },
    accounts: { type: 'string', default: '24' },
    finders: { type: 'string', default: '3' },
    refresh: { type: 'string', default: '24' },
    trace: { type: 'boolean', default: false },
    defects: { type: 'boolean', default: false },
    defect: { type: 'string', multiple: true, default: [] },
  },
});

const seeds = Array.from({ length: Number(values.seeds) }, (_, i) => Number(values.from) + i);
const sizes = {
  relays: Number(values.relays),
  accounts: Number(values.accounts),
  finders: Number(values.finders),
  refresh: Number(values.refresh),
};
process.exitCode = values.defects ? await findDefects() : await runSeeds();

async function runSeeds(): Promise<number> {
  const shown = values.trace ? (line: string) => console.log(line) : undefined;
  let code = 0;
  for (const seed of seeds) {
    const run = await runDht({ seed, ...sizes, shown });
    console.log(lineOf(seed, run));
    if (run.failure === undefined) continue;
    code = 1;
    console.log(
      `--from ${seed} --seeds 1 --relays ${sizes.relays} --accounts ${sizes.accounts}: broken`,
    );
    for (const line of run.last) console.log(`  ${line}`);
    console.log(run.failure);
  }
  return code;
}

function lineOf(seed: number, { seconds, requests, lookups, digest, busiest }: DhtRun): string {
  const costs = lookups.map((found) => found.requests).sort((a, b) => a - b);
  const median = costs[Math.floor(costs.length / 2)];
  return [
    `seed ${seed}: ${seconds.toFixed(1)} s, ${requests} requests, ${lookups.length} lookups checked`,
    `(median ${median}, most ${costs.at(-1)}), busiest ten seconds ${busiest}, digest ${digest}`,
  ].join(' ');
}

async function findDefects(): Promise<number> {
  let missed = 0;
  for (const defect of dhtDefects) {
    if (values.defect.length > 0 && !values.defect.includes(defect.name)) continue;
    let found: string | undefined;
    for (const seed of seeds) {
      const { failure } = await runDht({ seed, ...sizes, defect });
      if (failure === undefined) continue;
      found = `seed ${seed}: ${failure.message}`;
      break;
    }
    if (found === undefined) missed += 1;
    console.log(
      `${defect.name} (${defect.what}): ${found ?? `not found in ${seeds.length} seeds`}`,
    );
  }
  return missed === 0 ? 0 : 1;
}
