import { expect, test } from 'vitest';
import {
  type Check,
  checkLines,
  type Finding,
  findingLine,
  htmlReport,
  methodLines,
  printRun,
  selectChecks,
  summaryLines,
  type Target,
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

/** A run of checks that do nothing, stopped after so many of them. */
async function printed(output: { json: boolean; isTTY?: boolean }, stopAfter = 4) {
  const stop = new AbortController();
  const written = { out: '', errors: '' };
  let made = 0;
  const checked = sample.map((one) => ({
    ...one,
    // For these the kit needs a relay of its own: without one it asks nothing of the relay.
    transports: one.transports.map(() => 'relay' as const),
  }));
  const out = {
    write(text: string) {
      written.out += text;
      if (text.includes('group.')) made += 1;
      if (made === stopAfter) stop.abort();
    },
  };
  const errors = {
    ...{ isTTY: output.isTTY ?? false, columns: 80 },
    write(text: string) {
      written.errors += text;
    },
  };
  const parts = { json: output.json, out, errors, signal: stop.signal };
  const result = await printRun({} as Target, checked, parts);
  return { ...result, ...written };
}

test('a run prints each finding, and how far it is: a bar on a terminal, lines elsewhere', async () => {
  const { out, errors, findings } = await printed({ json: false });
  expect(findings).toHaveLength(4);
  expect(out.match(/^n\/a {2}group/gm)).toHaveLength(4);
  expect(errors).toBe('checks 0 of 4\nchecks 4 of 4\n');
  const onTerminal = await printed({ json: false, isTTY: true });
  expect(onTerminal.out).toBe(out);
  expect(onTerminal.errors).toContain('\r\u001b[Kchecks  [#####---------------]  25 %  1 of 4');
  expect(onTerminal.errors).toMatch(/\r\u001b\[K$/);
});

test('with --json, findings and events are one object per line on standard output', async () => {
  const { out, errors } = await printed({ json: true });
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(errors).toBe('');
  expect(lines.filter(({ id }) => id !== undefined)).toHaveLength(4);
  expect(lines[0]).toMatchObject({ event: 'progress', step: 'checks', done: 0, total: 4 });
  expect(lines.at(-1)).toMatchObject({ event: 'progress', done: 4 });
});

test('a run that is stopped says with which check another goes on', async () => {
  const { errors, findings, stoppedBefore } = await printed({ json: false }, 1);
  expect([findings.length, stoppedBefore]).toEqual([1, 'group.sync/pages']);
  expect(errors).toContain(
    'stopped: 1 of 4 runs were made; the same command with --begin-with group.sync/pages goes on\n',
  );
  const later = await printed({ json: true }, 2);
  expect(JSON.parse(later.out.trim().split('\n').at(-1) as string)).toMatchObject({
    ...{ event: 'stopped', done: 2, total: 4 },
    next: expect.stringContaining('--begin-with group.subscribe/whole'),
  });
  expect(selectChecks(sample, undefined, 'group.subscribe/whole')).toEqual(sample.slice(1));
  expect(() => selectChecks(sample, ['group.sync'], 'group.subscribe/whole')).toThrow(
    'no selected check is group.subscribe/whole',
  );
});

test('the HTML report has each check with its clause, failed ones first, and the relay, versions and date', () => {
  const text = htmlReport(
    [
      finding({}),
      finding({ outcome: 'failed', title: 'a <b>', reason: 'expected: "x" & <script>' }),
    ],
    {
      relay: 'https://relay.example/svc/v1',
      relayId: `0x${'1'.repeat(40)}`,
      name: 'Relay <of> the club',
      relayVersion: 'posthouse 1.2.3',
      network: 'neo:1:0x2',
      version: '0.1.0',
      begun: new Date(1_780_000_000_000),
      seconds: 12,
      only: undefined,
    },
  );
  for (const fact of [
    'https://relay.example/svc/v1',
    'Relay &lt;of&gt; the club',
    'posthouse 1.2.3',
    'posthouse-conformance 0.1.0, all checks',
    '2026-05-28T20:26:40.000Z, 12 s',
    '1 passed, 1 failed, 0 not applicable',
    '<td>05 §13.4</td><td>a &lt;b&gt;<div class="reason">expected: &quot;x&quot; &amp; &lt;script&gt;</div>',
  ]) {
    expect(text).toContain(fact);
  }
  expect(text.indexOf('class="failed"')).toBeLessThan(text.indexOf('class="passed"'));
  expect(text).not.toMatch(/<script|<b>|https?:\/\/(?!relay\.example)/);
});
