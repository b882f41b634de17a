import { expect, test } from 'vitest';
import { Progress, type ProgressForm } from '../src/progress.ts';

/** A progress whose clock the test moves, with what it wrote. */
function shown(form: ProgressForm, columns = 80) {
  const written: string[] = [];
  let at = 0;
  const progress = new Progress({
    form,
    write: (text) => void written.push(text),
    now: () => at,
    columns: () => columns,
  });
  return { progress, written, wait: (milliseconds: number) => (at += milliseconds) };
}

test('lines: the first state, one in five seconds with rate and time left, and each end', () => {
  const { progress, written, wait } = shown('lines');
  const show = (done: number) => progress.show({ step: 'copying', done, total: 100 });
  show(0);
  wait(4_000);
  show(10);
  wait(2_000);
  show(30);
  wait(1);
  show(100);
  show(100);
  progress.end();
  expect(written).toEqual([
    'copying 0 of 100\n',
    'copying 30 of 100, 5 a second, 14 s left\n',
    'copying 100 of 100\n',
  ]);
});

test('lines: a step with nothing to do has none; as JSON it has an event', () => {
  const [lines, json] = [shown('lines'), shown('json')];
  for (const { progress } of [lines, json]) progress.show({ step: 'copying', done: 0, total: 0 });
  expect([lines.written, json.written.length]).toEqual([[], 1]);
});

test('a bar overwrites itself, fits the terminal, and is removed at the end', () => {
  const { progress, written, wait } = shown('bar', 40);
  const show = (done: number) =>
    progress.show({ step: 'reading', done, total: 4_000_000, unit: 'bytes' });
  show(0);
  wait(50);
  show(1);
  wait(2_000);
  show(1_000_000);
  progress.end();
  progress.end();
  expect(written).toEqual([
    '\r\u001b[Kreading  [--------------------]   0 %  ',
    '\r\u001b[Kreading  [#####---------------]  25 %  ',
    '\r\u001b[K',
  ]);
});

test('JSON: one object a second, with whole numbers; a total may be unknown', () => {
  const { progress, written, wait } = shown('json');
  progress.show({ step: 'a\u0007', done: 0, total: undefined });
  wait(500);
  progress.show({ step: 'a\u0007', done: 5, total: undefined });
  wait(1_500);
  progress.show({ step: 'a\u0007', done: 7, total: undefined });
  progress.show({ step: 'b', done: 1, total: 2 });
  wait(2_000);
  progress.show({ step: 'b', done: 2, total: 2 });
  expect(written.map((text) => JSON.parse(text))).toEqual([
    { event: 'progress', step: 'a\u0007', done: 0 },
    { event: 'progress', step: 'a\u0007', done: 7, per_second: 4 },
    { event: 'progress', step: 'b', done: 1, total: 2 },
    { event: 'progress', step: 'b', done: 2, total: 2, per_second: 1, seconds_left: 0 },
  ]);
  expect(written[0]).not.toContain('\u0007');
});
