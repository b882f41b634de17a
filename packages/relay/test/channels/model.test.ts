import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seed, share } from '../support/chance.ts';
import { engine } from '../support/engine.ts';
import { InProcessRelay } from '../support/in-process-relay.ts';
import { cases } from './model/cases.ts';
import { type Step, steps } from './model/commands.ts';
import { limits, Scene } from './model/scene.ts';

/** `TEST_RUNS` sets another number, and prints the outcomes of the steps. */
const runs = process.env.TEST_RUNS;
const usual = share === 'part' ? 12 : 40;
const numRuns = Number(runs ?? (engine === 'postgres' ? 15 : usual));

const tally = new Map<string, { accepted: number; refused: number }>();

async function play(sequence: readonly Step[]): Promise<void> {
  await using relay = await InProcessRelay.start(limits);
  const scene = await Scene.open(relay);
  for (const step of sequence) await scene.run(step);
  await scene.finish();
  for (const [kind, { accepted, refused }] of scene.tally) {
    const sum = tally.get(kind) ?? { accepted: 0, refused: 0 };
    tally.set(kind, { accepted: sum.accepted + accepted, refused: sum.refused + refused });
  }
}

test(`06: a channel equals a simple model of it (seed ${seed})`, {
  timeout: 600_000,
}, async () => {
  const sequences = fc.array(steps, { minLength: 60, maxLength: 120 });
  await fc.assert(fc.asyncProperty(sequences, play), { seed, numRuns });
  for (const kind of ['post', 'repeat', 'edit', 'delete', 'report', 'update']) {
    expect(tally.get(kind)?.accepted, kind).toBeGreaterThan(0);
  }
  if (runs !== undefined) console.table(Object.fromEntries(tally));
});

test.each(Object.entries(cases))('%s', async (_, sequence) => {
  await play(sequence);
});
