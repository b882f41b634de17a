/** deploy/: each metric that the alerts and the dashboard name exists, and no core file is written. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Metrics } from '../../src/observability/metrics.ts';
import { ProcessFigures } from '../../src/observability/process-figures.ts';

const deploy = join(import.meta.dirname, '../../../../deploy');
const alerts = join(deploy, 'alerts.yml');

/** Every name under which a metric is asked for: a histogram has three. */
function knownNames(): Set<string> {
  const types = new Metrics().exposition().matchAll(/^# TYPE (\S+) (\S+)$/gm);
  return new Set(
    [...types].flatMap(([, name = '', kind]) =>
      kind === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name],
    ),
  );
}

test.each(['alerts.yml', 'grafana.json'])('each metric that %s names exists', (file) => {
  const text = readFileSync(join(deploy, file), 'utf8');
  const named = new Set(text.match(/posthouse_[a-z_]+/g));
  expect(named.size).toBeGreaterThan(15);
  expect([...named].filter((name) => !knownNames().has(name))).toEqual([]);
});

test.each([
  ['posthouse.service', /\n\[Service\](?:\n[^[].*|\n)*\nLimitCORE=0\n/],
  ['compose.yml', /^services:\n {2}relay:\n(?: {4}.*\n)* {4}ulimits:\n(?: {6}.*\n)* {6}core: 0\n/m],
])('%s forbids core files: they would have the keys in them', (file, setting) => {
  expect(readFileSync(join(deploy, file), 'utf8')).toMatch(setting);
});

const hasPromtool = spawnSync('promtool', ['--version']).error === undefined;

test.skipIf(!hasPromtool)('promtool accepts the alerts and finds no fault in the metrics', () => {
  expect(execFileSync('promtool', ['check', 'rules', alerts], { encoding: 'utf8' })).toContain(
    'SUCCESS',
  );
  const metrics = new Metrics();
  using figures = new ProcessFigures();
  figures.update(metrics);
  metrics.set('certificate_left_seconds', 1);
  metrics.set('job_last_success_seconds', 1, { job: 'messages.retention' });
  metrics.count('calls', { method: 'relay.info', transport: 'http', code: 'ok' });
  metrics.observe('call_seconds', { method: 'relay.info', transport: 'http' }, 0.01);
  const { stdout, stderr, status } = spawnSync('promtool', ['check', 'metrics'], {
    ...{ input: metrics.exposition(), encoding: 'utf8' },
  });
  expect([stdout, stderr, status]).toEqual(['', '', 0]);
});
