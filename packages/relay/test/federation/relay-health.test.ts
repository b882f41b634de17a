import type { RelayEntry } from '@posthouse/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { RelayHealth } from '../../src/federation/relay-health.ts';
import { storeRecords } from '../../src/federation/store.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const other = `0x${'1'.repeat(40)}`;
let health: RelayHealth;

beforeEach(async () => {
  const entry: RelayEntry = {
    ...{ relay_id: other, endpoint: 'https://other.example/svc/v1' },
    ...{ status: 'active', updated_at: 1 },
  };
  await relay.context.storage.write('relays', (tx) => storeRecords(tx, [entry], 1));
  health = new RelayHealth(relay.context, async () => {});
});

describe('07 §C9: the health of another relay', () => {
  test('an error text with U+0000 or half a character is stored', async () => {
    health.failed(other, 'reset \u0000 by \ud800');
    await health[Symbol.asyncDispose]();
    expect(await relay.rows('relays')).toMatchObject([
      { failures: 1, last_error: 'reset \ufffd by \ufffd' },
    ]);
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
