import type { RelayEntry } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { RelayHealth } from '../../src/federation/relay-health.ts';
import { storeRecords } from '../../src/federation/store.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const other = `0x${'1'.repeat(40)}`;
let health: RelayHealth;
/** Its pauses are not shortened by chance. */
let exact: RelayHealth;
/** How often the relay was said to be back. */
let back: number;
const onBack = async () => {
  back += 1;
};

beforeEach(async () => {
  const entry: RelayEntry = {
    ...{ relay_id: other, endpoint: 'https://other.example/svc/v1' },
    ...{ status: 'active', updated_at: 1 },
  };
  await relay.context.storage.write('relays', (tx) => storeRecords(tx, [entry], 1));
  back = 0;
  health = new RelayHealth(relay.context, onBack);
  exact = new RelayHealth({ ...relay.context, random: () => Uint8Array.of(0) }, onBack);
});

describe('07 §C9: the health of another relay', () => {
  test('an error text with U+0000 or half a character is stored', async () => {
    health.failed(other, 'reset \u0000 by \ud800');
    await health[Symbol.asyncDispose]();
    expect(await relay.rows('relays')).toMatchObject([
      { failures: 1, last_error: 'reset \ufffd by \ufffd' },
    ]);
  });

  test('a relay that connects and resets makes its mail due once in a while', () => {
    const { peerRetryFirst } = relay.context.limits;
    const flap = () => {
      health.failed(other, 'reset');
      health.succeeded(other);
    };
    for (let round = 0; round < 20; round += 1) flap();
    expect(back).toBe(1);
    relay.clock.advance(peerRetryFirst - 1);
    expect(back).toBe(1);
    relay.clock.advance(1);
    expect(back).toBe(2);
    relay.clock.advance(10 * peerRetryFirst);
    expect(back).toBe(2);
    flap();
    expect(back).toBe(3);
    flap();
    health.failed(other, 'reset');
    relay.clock.advance(peerRetryFirst);
    expect(back).toBe(3);
    health.succeeded(other);
    expect(back).toBe(4);
  });

  test('pauses double up to the longest; what fails in a pause, or is due, changes nothing', async () => {
    const { peerRetryFirst, peerRetryMost } = relay.context.limits;
    const first = relay.clock.now();
    for (let round = 0; round < 10; round += 1) {
      for (const error of ['refused', 'again']) exact.failed(other, error);
      const longest = Math.min(peerRetryFirst * 2 ** round, peerRetryMost);
      const retry = relay.clock.now() + longest;
      expect(exact.pausedUntil(other)).toBe(retry);
      expect(exact.nextRetry()).toBe(retry);
      relay.clock.advance(longest);
    }
    expect(exact.pausedUntil(other)).toBeUndefined();
    await exact[Symbol.asyncDispose]();
    const stored = { failures: 10, failing_since: first, last_error: 'refused' };
    expect(await relay.rows('relays')).toMatchObject([stored]);
    exact.forgetUnlisted(new Set([other]));
    relay.clock.advance(1e9);
    exact.forgetUnlisted(new Set([other]));
    expect(exact.isFailing(other)).toBe(true);
    exact.failed(`0x${'2'.repeat(40)}`, 'refused');
    expect(exact.nextRetry()).toBeLessThan(relay.clock.now());
  });

  test('a pause is shortened by up to a half, so that relays do not all try at once', () => {
    const { peerRetryFirst } = relay.context.limits;
    const short = new RelayHealth({ ...relay.context, random: () => Uint8Array.of(255) }, onBack);
    short.failed(other, 'refused');
    const pause = (short.pausedUntil(other) as number) - relay.clock.now();
    expect(pause).toBe(Math.round(peerRetryFirst * (1 - 255 / 512)));
  });

  test('a relay that did not fail makes nothing due; its answers are stored now and then', async () => {
    const start = relay.clock.now();
    const stored = [];
    for (const seconds of [0, 299, 1]) {
      relay.clock.advance(seconds);
      health.succeeded(other);
      await health[Symbol.asyncDispose]();
      stored.push((await relay.rows('relays'))[0]?.last_ok);
    }
    expect(stored).toEqual([start, start, start + 300]);
    expect(back).toBe(0);
  });

  test('of another process, an earlier retry is adopted and a later one is not', async () => {
    health.failed(other, 'refused');
    await health[Symbol.asyncDispose]();
    await exact.restore();
    const retry = exact.pausedUntil(other);
    expect(retry).toBe(health.pausedUntil(other));
    relay.clock.advance((retry as number) - relay.clock.now());
    exact.failed(other, 'refused');
    await exact[Symbol.asyncDispose]();
    await health.adopt();
    expect(health.pausedUntil(other)).toBeUndefined();
    // This process fails too, later; the other one reaches the relay.
    health.failed(other, 'refused');
    await health[Symbol.asyncDispose]();
    exact.succeeded(other);
    await exact[Symbol.asyncDispose]();
    expect(health.pausedUntil(other)).toBeDefined();
    await health.adopt();
    expect(health.pausedUntil(other)).toBeUndefined();
  });

  test('a pause that is not stored yet is not replaced by what is stored', async () => {
    const { storage } = relay.context;
    const writing = Promise.withResolvers<void>();
    const written = Promise.withResolvers<void>();
    const { write } = storage;
    storage.write = async (...args) => {
      storage.write = write;
      writing.resolve();
      await written.promise;
      return (await write.apply(storage, args as Parameters<typeof write>)) as never;
    };
    const busy = new RelayHealth(relay.context, onBack);
    busy.failed(other, 'refused');
    const pause = busy.pausedUntil(other);
    await busy.adopt();
    expect(busy.pausedUntil(other)).toBe(pause);
    await writing.promise;
    await busy.adopt();
    expect(busy.pausedUntil(other)).toBe(pause);
    written.resolve();
    await busy[Symbol.asyncDispose]();
    expect(busy.pausedUntil(other)).toBe(pause);
    expect(await relay.rows('relays')).toMatchObject([{ failures: 1 }]);
  });

  test('a success during the write of a failure is stored after it', async () => {
    health.failed(other, 'refused');
    await Promise.resolve();
    health.succeeded(other);
    await health[Symbol.asyncDispose]();
    expect(await relay.rows('relays')).toMatchObject([{ failures: 0 }]);
  });

  test('a relay that left the registry fails once as long as it is asked', () => {
    const failed = () => relay.context.metrics.value('relays_failed');
    for (let attempt = 0; attempt < 5; attempt += 1) {
      health.failed(other, 'refused: the registry does not list it');
      const pause = (health.pausedUntil(other) as number) - relay.clock.now();
      relay.clock.advance(pause + 60);
      health.forgetUnlisted(new Set());
    }
    expect(failed()).toBe(1);
    relay.clock.advance(1_800);
    health.forgetUnlisted(new Set());
    expect(health.failing).toBe(0);
    health.failed(other, 'refused: the registry does not list it');
    expect(failed()).toBe(2);
  });
});
