import { expect, test } from 'vitest';
import { Metrics } from '../../src/observability/metrics.ts';

test('labels count as the same in any order, and are shown in that of the alphabet', () => {
  const metrics = new Metrics();
  metrics.count('calls', { code: 'ok', method: 'relay.info', transport: 'http' });
  metrics.count('calls', { transport: 'http', method: 'relay.info', code: 'ok' });
  metrics.count('calls', { method: 'relay.info', code: 'ok', transport: 'http' });
  const labels = 'code="ok",method="relay.info",transport="http"';
  expect(metrics.exposition()).toContain(`\nposthouse_calls_total{${labels}} 3\n`);
});
