import { expect, test } from 'vitest';
import {
  type Check,
  checkLines,
  type Finding,
  findingLine,
  methodLines,
  summaryLines,
} from '../src/index.ts';

const check = (method: string, word: string, transports: Check['transports']): Check => ({
  id: `${method}/${word}`,
  method,
  title: `does ${word}`,
  source: '05 §13',
  transports,
  run: async () => {},
});

const sample = [
  check('group.sync', 'pages', ['https', 'wss']),
  check('group.subscribe', 'whole', ['wss']),
  check('group.sync', 'order', ['https']),
];

const finding = (facts: Partial<Finding>): Finding => ({
  id: 'group.sync/pages',
  method: 'group.sync',
  title: 'pages',
  source: '05 §13.4',
  transport: 'wss',
  outcome: 'passed',
  ...facts,
});

test('a list of checks has id, source and title', () => {
  expect(checkLines(sample)[1]).toBe('group.subscribe/whole\t05 §13\tdoes whole');
});

test('a list by method counts checks, and runs on each transport', () => {
  expect(methodLines(sample)).toEqual([
    'method\tchecks\truns',
    'group.sync\t2\t3',
    'group.subscribe\t1\t1',
    'all\t3\t4',
  ]);
});

test('a finding has a reason if it did not pass', () => {
  expect(findingLine(finding({}))).toBe('ok   group.sync/pages [wss] 05 §13.4: pages');
  expect(findingLine(finding({ outcome: 'failed', reason: 'lost one' }))).toBe(
    'FAIL group.sync/pages [wss] 05 §13.4: pages\n     lost one',
  );
});

test('a summary names failures and counts checks that do not apply by reason', () => {
  const left = { outcome: 'not_applicable', reason: 'no module' } as const;
  const findings = [finding({}), finding({ outcome: 'failed' }), finding(left), finding(left)];
  expect(summaryLines(findings, 7)).toEqual([
    '',
    'failed: group.sync/pages [wss]',
    'not applicable, 2: no module',
    '1 passed, 1 failed, 2 not applicable in 7 s',
  ]);
  expect(summaryLines([finding({})], 0)).toEqual(['', '1 passed, 0 failed in 0 s']);
});
