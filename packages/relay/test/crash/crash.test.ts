/** `npm run test:crash -- --kills 1000 --seed 7` does what this test does, for longer. */
import { afterEach, expect, test } from 'vitest';
import { seed } from '../support/chance.ts';
import { killAll } from '../support/command.ts';
import { engine } from '../support/engine.ts';
import { crashPoints, pointsOf } from './plan.ts';
import { killRepeatedly, noFigures } from './rig.ts';

afterEach(() => killAll());

const asked = process.env.TEST_KILLS;
/** By default as many as take about fifteen seconds. */
const kills = Number(asked ?? (engine === 'postgres' ? 6 : 21));
/** Kills of one database: what it holds is read as a whole in the end. */
const most = 27;

test('02 §12.3, 03 §4, 04 §15.1, 05 §12.6, 06 §7.2: after kills at any point, acknowledged writes exist once and in order, and nothing is partial', {
  timeout: 60_000 + kills * 20_000,
}, async () => {
  const figures = noFigures();
  const started = performance.now();
  for (let round = 0; round * most < kills; round += 1) {
    const here = { kills: Math.min(most, kills - round * most), seed: seed + round };
    try {
      await killRepeatedly(here, figures);
    } catch (error) {
      throw new Error(`again: --seed ${here.seed} --kills ${here.kills}`, { cause: error });
    }
    if (asked !== undefined) report(figures, { seed: here.seed, started });
  }
  expect(figures.lostAnswers).toBeGreaterThan(kills);
  if (kills < 1.5 * crashPoints.length) return;
  // A point that no process comes to proves nothing.
  expect([...figures.points.keys()].sort()).toEqual([...pointsOf(engine)].sort());
});

function report(
  { kills: count, points, acknowledged, lostAnswers, written }: ReturnType<typeof noFigures>,
  { seed: last, started }: { readonly seed: number; readonly started: number },
): void {
  const seconds = Math.round((performance.now() - started) / 1_000);
  const at = [...points].map(([point, times]) => `${point} ${times}`).join(', ');
  console.log(
    `${engine}, seeds ${seed} to ${last}: ${count} kills in ${seconds} s, ${acknowledged} writes ` +
      `acknowledged, ${lostAnswers} answers lost, of ${written} of them the write had happened; ` +
      `killed at: ${at}`,
  );
}
