/**
 * Runs whole relays in a simulation in which everything follows from a seed.
 *
 * npm run test:simulation -- --seeds 100 [--from 1] [--relays 1|2|3] [--minutes 1] [--workers 2]
 *                            [--seconds 90] [--trace]
 * npm run test:simulation -- --kept
 * npm run test:simulation -- --defects [--seeds 20] [--defect NAME]
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { keptSeeds } from './kept.ts';
import type { Simulation } from './run.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    from: { type: 'string', default: '1' },
    relays: { type: 'string' },
    minutes: { type: 'string', default: '1' },
    workers: { type: 'string', default: String(availableParallelism()) },
    trace: { type: 'boolean', default: false },
    kept: { type: 'boolean', default: false },
    defects: { type: 'boolean', default: false },
    defect: { type: 'string', multiple: true, default: [] },
    seconds: { type: 'string', default: '86400' },
  },
});

const count = Number(values.seeds);
const first = Number(values.from);
const workers = Math.min(Number(values.workers), count);

process.exitCode = values.kept || values.defects || workers <= 1 ? await runHere() : await divide();

/** Runs the seeds in several processes, each of them every so many; returns the exit code. */
async function divide(): Promise<number> {
  const codes = Array.from({ length: workers }, async (_, index) => {
    const from = Math.floor((index * count) / workers);
    const share = Math.floor(((index + 1) * count) / workers) - from;
    const args = [
      ...process.execArgv,
      process.argv[1] as string,
      ...['--workers', '1', '--from', String(first + from)],
      ...['--seeds', String(share), '--minutes', values.minutes],
      ...['--seconds', values.seconds],
      ...(values.relays === undefined ? [] : ['--relays', values.relays]),
      ...(values.trace ? ['--trace'] : []),
    ];
    const child = spawn(process.execPath, args, { stdio: 'inherit' });
    return await new Promise<number>((resolve) => child.on('exit', (code) => resolve(code ?? 1)));
  });
  return Math.max(...(await Promise.all(codes)));
}

async function runHere(): Promise<number> {
  // Everything else is imported after the arguments are understood: it takes a while.
  const { findDefects, runAll } = await import('./run.ts');
  const minutes = Number(values.minutes);
  if (values.defects) return await findDefects(values.defect, { seeds: count, minutes });
  const simulations = values.kept
    ? keptSeeds
    : Array.from({ length: count }, (_, index) => simulationOf(first + index));
  return await runAll(simulations, { trace: values.trace, seconds: Number(values.seconds) });
}

/** Each seed has its own number of relays, unless one is asked for. */
function simulationOf(seed: number): Simulation {
  const relays = values.relays === undefined ? 1 + (seed % 3) : Number(values.relays);
  return { seed, relays, minutes: Number(values.minutes) };
}
