/**
 * Kills relays for as long as is asked: `npm run test:crash -- --kills 1000 [--seed 7]
 * [--engine postgres]`. It runs `crash.test.ts`, which says what is killed and what is checked.
 * `npm run test:crash -- --cluster --faults 100 [--seed 7]` has a cluster of three processes suffer
 * instead: see `../cluster/main.ts`.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: '4711' },
    engine: { type: 'string', default: 'sqlite' },
    cluster: { type: 'boolean', default: false },
    faults: { type: 'string', default: '100' },
  },
});
const { kills, seed, engine, cluster, faults } = values;
const [program, ...args] = cluster
  ? ['node', 'packages/relay/test/cluster/main.ts', '--faults', faults, '--seed', seed]
  : ['npx', 'vitest', 'run', '--project', engine, 'packages/relay/test/crash/'];
const { status } = spawnSync(program as string, args, {
  stdio: 'inherit',
  env: { ...process.env, TEST_KILLS: kills, TEST_SEED: seed },
});
process.exitCode = status ?? 1;
