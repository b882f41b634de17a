/** 0019: work for connections is divided over turns of the event loop. */
import { expect, test } from 'vitest';
import { StepTurns } from '../src/step-turns.ts';

const turn = () => new Promise<void>((go) => setImmediate(go));

/** A step that is to be done so often; the first one takes all the time of its turn. */
function steps(turns: StepTurns, owner: string, count: number, done: string[]): void {
  let left = count;
  turns.run(owner, () => {
    const until = performance.now() + 2;
    while (left === count && performance.now() < until);
    done.push(owner);
    left -= 1;
    return left > 0;
  });
}

test('0019: after its time the rest is done in later turns, in rotation of owners', async () => {
  const turns = new StepTurns();
  const done: string[] = [];
  steps(turns, 'eve', 20, done);
  expect(done).toEqual(['eve']);
  turns.run('ann', () => {
    done.push('ann');
    return false;
  });
  await turn();
  expect(done).toContain('ann');
  expect(done.length).toBeLessThan(10);
});

test('0019: what waits for its turn begins in it', async () => {
  const turns = new StepTurns();
  const done: string[] = [];
  steps(turns, 'eve', 2, done);
  const ann = turns.take('ann').then(() => done.push('ann'));
  expect(done).toEqual(['eve']);
  await ann;
  expect(done).toContain('ann');
});

test('it is idle when nothing waits', async () => {
  const turns = new StepTurns();
  await turns.idle();
  const done: string[] = [];
  steps(turns, 'eve', 20, done);
  await turns.idle();
  expect(done).toHaveLength(20);
  await turns.idle();
});
