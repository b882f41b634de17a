/** `posthouse peers` and `posthouse block` on a relay that has connections with another one. */
import { pino } from 'pino';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DevNetwork } from '../../src/dev/dev-network.ts';
import type { DevRelay } from '../../src/dev/dev-relay.ts';
import { killAll, posthouse } from '../support/command.ts';
import { RelayData, rowsOf } from '../support/engine.ts';
import { temporaryFolder } from '../support/folder.ts';

let open: AsyncDisposableStack;
let data: RelayData;
let a: DevRelay;
let b: DevRelay;
beforeEach(async () => {
  open = new AsyncDisposableStack();
  const folder = open.use(temporaryFolder()).path;
  data = open.use(await RelayData.withSchema());
  const others = open.use(await RelayData.withSchema());
  const network = open.use(
    await DevNetwork.start({
      ...{ folder, relays: 2, log: pino({ level: 'silent' }) },
      config: (name) => (name === 'a' ? data : others).config,
    }),
  );
  [a, b] = [network.relay('a'), network.relay('b')];
  await connected(1);
});
afterEach(async () => {
  killAll();
  await open.disposeAsync();
});

/** Milliseconds in which a relay is dialled and answers, on a busy machine. */
const patience = { timeout: 30_000 };

/** Waits until relay a has connections with so many relays. */
const connected = (count: number) =>
  expect
    .poll(() => a.server.context.metrics.value('peers', { state: 'connected' }), patience)
    .toBe(count);

/** Runs a command on relay a, whose output must be no error. */
async function posthouseOfA(...args: string[]): Promise<string> {
  const { ended, output } = posthouse([...args, '--data', data.path], {
    ...data.environment,
    POSTHOUSE_LOG: 'silent',
  });
  expect([await ended, output.errors]).toEqual([0, '']);
  return output.text;
}

const peerOfA = async () => JSON.parse(await posthouseOfA('peers', '--json')) as object;

async function failuresOfB(relayId: string): Promise<number> {
  const rows = await rowsOf(a.server.context.storage, 'relays');
  return Number(rows.find((row) => row.relay_id === relayId)?.failures);
}

test('07 §B5: peers shows a relay that is connected, that fails, that is tried again, that is back', async () => {
  const { relayId, https, peerPort } = b.server;
  await expect.poll(peerOfA, patience).toMatchObject({
    ...{ relay_id: relayId, state: 'connected', endpoint: https[0], mail_waiting: 0 },
    ...{ connected_processes: 1, since: expect.any(Number) },
    ...{ addresses: [`/ip4/127.0.0.1/tcp/${peerPort}`], next_try: null },
  });
  await b.stop();
  await connected(0);
  a.moveClock(61);
  await expect.poll(peerOfA, patience).toMatchObject({ relay_id: relayId, state: 'failing' });
  expect(await peerOfA()).toMatchObject({
    ...{ last_error: expect.stringMatching(/\w/), next_try: expect.any(Number) },
    since: expect.any(Number),
  });
  const failures = await failuresOfB(relayId);
  await posthouseOfA('peers', 'retry', relayId);
  // The next run of the job finds it.
  a.moveClock(0);
  await expect.poll(() => failuresOfB(relayId), patience).toBeGreaterThan(failures);
  await b.start();
  await connected(1);
  const back = { state: 'connected', next_try: null, since: expect.any(Number) };
  await expect.poll(peerOfA, patience).toMatchObject(back);
}, 120_000);

test('07 §B5: a blocked relay loses its connections, and gets new ones when the block ends', async () => {
  const { relayId } = b.server;
  await posthouseOfA('block', 'add', 'relay', relayId, '--reason', 'spam');
  a.moveClock(2);
  await connected(0);
  const { metrics } = a.server.context;
  expect(metrics.value('peers_dropped', { reason: 'blocked' })).toBe(1);
  expect(await peerOfA()).toMatchObject({ state: 'blocked', block_reason: 'spam' });
  // Relay b dials by itself, and is refused.
  b.moveClock(3_600);
  await expect
    .poll(() => metrics.value('peers_refused', { check: 'blocked' }), patience)
    .toBeGreaterThan(0);
  await connected(0);
  await posthouseOfA('block', 'remove', 'relay', relayId);
  b.moveClock(-3_600);
  a.moveClock(61);
  await connected(1);
}, 120_000);

test('07 §B5: a relay that stopped has no connections', async () => {
  await expect.poll(peerOfA, patience).toMatchObject({ state: 'connected' });
  await a.stop();
  expect(await peerOfA()).toMatchObject({
    ...{ state: 'disconnected', since: null, connected_processes: 0 },
  });
}, 120_000);
