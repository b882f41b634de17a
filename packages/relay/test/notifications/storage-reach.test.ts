import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import type { Notice } from '../../src/dispatch/notice.ts';
import { MemoryBus } from '../../src/notifications/memory-bus.ts';
import { StorageReach } from '../../src/notifications/storage-reach.ts';
import { Metrics } from '../../src/observability/metrics.ts';

/** As of several processes, which hear each other at once. */
class SharedBus extends MemoryBus {
  override readonly isShared: boolean = true;
  override isConnected = true;
  /** Whether nothing that is published arrives. */
  isMuted = false;

  override publish(notices: readonly Notice[]): void {
    if (!this.isMuted) super.publish(notices);
  }
}

let bus: SharedBus;

beforeEach(() => {
  bus = new SharedBus((error) => {
    throw error;
  });
});

/** A process, and how often it was cut off. */
function start(on: MemoryBus = bus) {
  const reach = new StorageReach(on, { metrics: new Metrics(), log: pino({ level: 'silent' }) });
  const cutOffs = { count: 0 };
  reach.onCutOff(() => {
    cutOffs.count += 1;
  });
  return { reach, cutOffs };
}

test('a process that alone cannot reach storage is cut off, once, until it can', () => {
  const [one, other] = [start(), start()];
  one.reach.update(false);
  // The other one may only have been the first to reach it again.
  expect(one.reach.isCutOff).toBe(false);
  one.reach.update(false);
  one.reach.update(false);
  expect([one.reach.isCutOff, one.cutOffs.count]).toEqual([true, 1]);
  expect([other.reach.isCutOff, other.cutOffs.count]).toEqual([false, 0]);
  one.reach.update(true);
  expect(one.reach.isCutOff).toBe(false);
  one.reach.update(false);
  one.reach.update(false);
  expect([one.reach.isCutOff, one.cutOffs.count]).toEqual([true, 2]);
});

test('while no process reaches storage none is cut off; when one does again, the others are', () => {
  const [one, other] = [start(), start()];
  bus.isMuted = true;
  other.reach.update(false);
  one.reach.update(false);
  bus.isMuted = false;
  for (const { reach } of [one, other, one, other]) reach.update(false);
  expect([one.reach.isCutOff, other.reach.isCutOff]).toEqual([false, false]);
  other.reach.update(true);
  one.reach.update(false);
  one.reach.update(false);
  expect([one.reach.isCutOff, other.reach.isCutOff]).toEqual([true, false]);
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
