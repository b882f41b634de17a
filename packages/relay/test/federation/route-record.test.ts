import { expect, test } from 'vitest';
import { readRouteRecord } from '../../src/federation/dht/route-record.ts';
import { defaultLimits } from '../../src/limits.ts';
import { ManualClock } from '../support/clock.ts';
import { network } from '../support/modules.ts';

test('07 §B10: a value above 16,384 bytes is refused before it is parsed', () => {
  const context = { network, clock: new ManualClock(), limits: defaultLimits };
  const read = (length: number) =>
    readRouteRecord(context, { key: new Uint8Array(32), value: new Uint8Array(length).fill(32) });
  expect(() => read(16_385)).toThrow(expect.objectContaining({ code: 'request_too_large' }));
  // As long as permitted, but no JSON.
  expect(() => read(16_384)).toThrow(expect.not.objectContaining({ code: 'request_too_large' }));
});
