/**
 * Runs the hostile tests with many inputs, and prints what they answered and the memory they took.
 *
 *     npm run test:hostile -- --inputs 100000 [--calls 15000] [--seed 4711]
 *
 * Most inputs are texts for the parsers; `--calls` of them are calls of a relay. A failure prints
 * the seed and the number of the input, which make the same input again.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '100000' },
    calls: { type: 'string' },
    seed: { type: 'string', default: '4711' },
  },
});
const inputs = Number(values.inputs);
const calls = Number(values.calls ?? Math.ceil(inputs * 0.15));
if (!Number.isSafeInteger(inputs) || !(calls <= inputs)) {
  throw new Error('--inputs and --calls are whole numbers, --calls the smaller one');
}
const test = 'packages/relay/test/hostile/hostile.test.ts';
const child = spawn('npx', ['vitest', 'run', '--project', 'sqlite', '--testTimeout=0', test], {
  stdio: 'inherit',
  env: {
    ...process.env,
    TEST_SEED: values.seed,
    TEST_HOSTILE_TEXTS: String(inputs - calls),
    TEST_HOSTILE_CALLS: String(calls),
  },
});
[process.exitCode] = await once(child, 'exit');
