import type { RelayEntry } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { RelayHealth } from '../../src/federation/relay-health.ts';
import { storeRecords } from '../../src/federation/store.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const other = `0x${'1'.repeat(40)}`;
let health: RelayHealth;
/** How often the relay was said to be back. */
let back: number;

beforeEach(async () => {
  const entry: RelayEntry = {
    ...{ relay_id: other, endpoint: 'https://other.example/svc/v1' },
    ...{ status: 'active', updated_at: 1 },
  };
  await relay.context.storage.write('relays', (tx) => storeRecords(tx, [entry], 1));
  back = 0;
  health = new RelayHealth(relay.context, async () => {
    back += 1;
  });
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
    flap();
    health.failed(other, 'reset');
    relay.clock.advance(peerRetryFirst);
    expect(back).toBe(2);
    health.succeeded(other);
    expect(back).toBe(3);
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
