import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { MemoryBus } from '../../src/notifications/memory-bus.ts';
import { StorageReach } from '../../src/notifications/storage-reach.ts';
import { Metrics } from '../../src/observability/metrics.ts';

/** As of several processes, which hear each other at once. */
class SharedBus extends MemoryBus {
  override readonly isShared: boolean = true;
  override isConnected = true;
}

let bus: SharedBus;

beforeEach(() => {
  bus = new SharedBus((error) => {
    throw error;
  });
});

/** A process, how often it was cut off, and what it finds when another one asks. */
function start(on: MemoryBus = bus) {
  const found = { isReached: true, count: 0 };
  const probe = async () => {
    found.count += 1;
    if (!found.isReached) throw new Error('out of reach');
  };
  const observed = { metrics: new Metrics(), log: pino({ level: 'silent' }) };
  const reach = new StorageReach({ bus: on, probe }, observed);
  const cutOffs = { count: 0 };
  reach.onCutOff(() => {
    cutOffs.count += 1;
  });
  return { reach, cutOffs, found };
}

/** A further probe of the server failed, and the answers of the other processes arrived. */
async function fail(process: ReturnType<typeof start>): Promise<void> {
  process.found.isReached = false;
  process.reach.update(false);
  await new Promise((resolve) => setImmediate(resolve));
}

test('a process that alone cannot reach storage is cut off, once, until it can', async () => {
  const [one, other] = [start(), start()];
  await fail(one);
  // The other one may only have been the first to reach it again.
  expect(one.reach.isCutOff).toBe(false);
  await fail(one);
  await fail(one);
  expect([one.reach.isCutOff, one.cutOffs.count]).toEqual([true, 1]);
  expect([other.reach.isCutOff, other.cutOffs.count]).toEqual([false, 0]);
  one.reach.update(true);
  expect(one.reach.isCutOff).toBe(false);
  await fail(one);
  await fail(one);
  expect([one.reach.isCutOff, one.cutOffs.count]).toEqual([true, 2]);
});

test('while no process reaches storage none is cut off; when one does again, the others are', async () => {
  const [one, other] = [start(), start()];
  // The other one did not notice yet.
  other.found.isReached = false;
  await fail(one);
  await fail(one);
  expect([one.reach.isCutOff, other.found.count]).toEqual([false, 2]);
  for (const process of [other, one, other, one]) await fail(process);
  expect([one.reach.isCutOff, other.reach.isCutOff]).toEqual([false, false]);
  other.reach.update(true);
  other.found.isReached = true;
  await fail(one);
  await fail(one);
  expect([one.reach.isCutOff, other.reach.isCutOff]).toEqual([true, false]);
});

test('an answer counts no more when the process that answered asks itself', async () => {
  const [one, other] = [start(), start()];
  await fail(one);
  await fail(other);
  await fail(one);
  expect([one.reach.isCutOff, other.reach.isCutOff]).toEqual([false, false]);
});

test('a question that comes during a probe is answered by the next one', async () => {
  const [one, other] = [start(), start()];
  one.reach.update(false);
  // The probe under way succeeds, the next one does not.
  other.found.isReached = false;
  await fail(one);
  await fail(one);
  expect([one.reach.isCutOff, other.found.count]).toEqual([false, 3]);
});

test('a process that reaches neither storage nor the bus is cut off', () => {
  const { reach } = start();
  bus.isConnected = false;
  reach.update(false);
  expect(reach.isCutOff).toBe(true);
});

test('the only process is never cut off', () => {
  const { reach, cutOffs } = start(new MemoryBus(() => {}));
  reach.update(false);
  expect([reach.isCutOff, cutOffs.count]).toEqual([false, 0]);
});
