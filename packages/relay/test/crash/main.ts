/**
 * Kills relays for as long as is asked: `npm run test:crash -- --kills 1000 [--seed 7]
 * [--engine postgres]`. It runs `crash.test.ts`, which says what is killed and what is checked.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: '4711' },
    engine: { type: 'string', default: 'sqlite' },
  },
});
const { kills, seed, engine } = values;
const { status } = spawnSync(
  'npx',
  ['vitest', 'run', '--project', engine, 'packages/relay/test/crash/'],
  { stdio: 'inherit', env: { ...process.env, TEST_KILLS: kills, TEST_SEED: seed } },
);
process.exitCode = status ?? 1;
