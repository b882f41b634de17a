import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seed, share } from '../support/chance.ts';
import { engine } from '../support/engine.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { cases } from './model/cases.ts';
import { type Step, steps } from './model/commands.ts';
import { Scene } from './model/scene.ts';
import { limits } from './model/stage.ts';

/** More of them, and what became of their steps, with `TEST_RUNS`. */
const runs = process.env.TEST_RUNS;
const usual = share === 'part' ? 20 : 80;
const numRuns = Number(runs ?? (engine === 'postgres' ? 25 : usual));

const tally = new Map<string, { accepted: number; refused: number }>();

async function play(sequence: readonly Step[]): Promise<void> {
  await using relay = await InProcessRelay.start(limits);
  const scene = await Scene.open(relay);
  for (const step of sequence) await scene.take(step);
  await scene.readEverything();
  for (const [kind, { accepted, refused }] of scene.tally) {
    const sum = tally.get(kind) ?? { accepted: 0, refused: 0 };
    tally.set(kind, { accepted: sum.accepted + accepted, refused: sum.refused + refused });
  }
}

test(`05: the relay behaves as the reference model (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  const sequences = fc.array(steps, { minLength: 60, maxLength: 120 });
  await fc.assert(fc.asyncProperty(sequences, play), { seed, numRuns });
  expect(tally.get('approve')?.accepted).toBeGreaterThan(0);
  if (runs !== undefined) console.table(Object.fromEntries(tally));
});

test.each(Object.entries(cases))('%s', async (_, sequence) => {
  await play(sequence);
});
