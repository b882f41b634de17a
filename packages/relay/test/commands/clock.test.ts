/** `posthouse clock` as an operator types it. */
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Relay } from '../../src/index.ts';
import { putClockMark } from '../../src/storage/clock-mark.ts';
import { killAll, posthouse } from '../support/command.ts';
import { RelayData } from '../support/engine.ts';

const day = 86_400;
let data: RelayData;
beforeEach(async () => {
  data = await RelayData.withSchema();
});
afterEach(async () => {
  killAll();
  await data[Symbol.asyncDispose]();
});

/** A running relay without the clock tolerance of development. */
const start = () =>
  Relay.start(
    {
      ...{ ...data.config, dev: true, listen: '127.0.0.1:0', limits: { clockJump: day } },
      operations: { listen: '127.0.0.1:0' },
    },
    { log: pino({ level: 'silent' }) },
  );
async function clock(verb: string) {
  const command = posthouse(['clock', verb, '--data', data.path], data.environment);
  const code = await command.ended;
  return { code, output: command.output.text };
}

test('a relay that was stopped for a week pauses deleting until the operator accepts', async () => {
  await using first = await start();
  const stoppedAt = Math.floor(Date.now() / 1_000) - 7 * day;
  await first.context.storage.write('relay', (tx) => putClockMark(tx, { seenAt: stoppedAt }));
  await first[Symbol.asyncDispose]();
  await using relay = await start();
  const isPaused = () => relay.context.metrics.value('deleting_paused') === 1;
  const health = async () => await (await fetch(`${relay.operations}/health`)).json();
  expect(isPaused()).toBe(true);
  expect(await health()).toMatchObject({ status: 'degraded', clock: 'ahead' });
  const shown = await clock('show');
  expect(shown).toMatchObject({ code: 0, output: expect.stringContaining('paused until') });
  expect(await clock('accept')).toMatchObject({ code: 0 });
  // Its next check, at the latest after a minute.
  relay.wakeJobs();
  await expect.poll(isPaused).toBe(false);
  expect(await health()).toMatchObject({ status: 'ok', clock: 'ok' });
});
