import { pino } from 'pino';
import { expect, test } from 'vitest';
import { callAnswered, callFailed } from '../../src/observability/events.ts';
import { createLog } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';

/** A destination that keeps its lines. */
function lines(): { readonly all: string[]; write(line: string): void } {
  const all: string[] = [];
  return { all, write: (line) => all.push(line) };
}

test('secrets are not logged even where a call site passes them', () => {
  const kept = lines();
  const log = createLog('debug', kept);
  log.info({ token: 'secret-1', request: { nonce: 'secret-2', body: 'secret-3' } }, 'mistake');
  expect(kept.all).toHaveLength(1);
  expect(kept.all[0]).not.toContain('secret-');
  expect(kept.all[0]).toContain('[secret]');
});

test('an event is one line and one counter', () => {
  const kept = lines();
  const observed = { log: createLog('debug', kept), metrics: new Metrics() };
  const call = { method: 'relay.info', transport: 'http', code: 'ok', milliseconds: 2 } as const;
  callAnswered(observed, call);
  callAnswered(observed, call);
  callFailed(observed, { method: 'relay.info', id: 'x', error: new Error('why') });
  const labels = { method: 'relay.info', transport: 'http', code: 'ok' };
  expect(observed.metrics.value('calls', labels)).toBe(2);
  expect(observed.metrics.value('internal_errors', { method: 'relay.info' })).toBe(1);
  expect(kept.all.map((line) => JSON.parse(line).msg)).toEqual([
    'call answered',
    'call answered',
    'call failed',
  ]);
  expect(kept.all[2]).toContain('why');
});

test('a level keeps the rest out', () => {
  const kept = lines();
  createLog('warn', kept).info('nothing');
  expect(kept.all).toEqual([]);
  expect(pino.levels.values).toHaveProperty('warn');
});
