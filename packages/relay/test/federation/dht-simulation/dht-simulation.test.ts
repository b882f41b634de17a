import { describe, expect, test } from 'vitest';
import { dhtDefects } from './defect.ts';
import { runDht } from './run.ts';

/** A network that is large enough for lookups that ask a part of it, and small enough for each run. */
const small = { relays: 50, accounts: 4, finders: 1, refresh: 200 };

describe('07 §B12: the relay DHT in simulated time, a fifth gone and a fifth lying', () => {
  test('routes are found through churn, moves, a partition and two days of republication', async () => {
    const { failure, lookups } = await runDht({ seed: 1, ...small, relays: 120 });
    expect(failure).toBeUndefined();
    expect(lookups.length).toBeGreaterThan(16);
  });

  test('a seed replays exactly, event by event', async () => {
    const first = await runDht({ seed: 7, ...small, relays: 30 });
    const second = await runDht({ seed: 7, ...small, relays: 30 });
    expect(second.digest).toBe(first.digest);
    expect(second.requests).toBe(first.requests);
  });

  test.each(['accepts-lower', 'unverified', 'hasty-lookup', 'trusts-named'])(
    'relays that are broken on purpose are found: %s',
    async (name) => {
      const defect = dhtDefects.find((each) => each.name === name);
      const { failure } = await runDht({ seed: 1, ...small, defect });
      expect(failure).toMatchObject({ name: 'RuleBroken' });
    },
  );
});
