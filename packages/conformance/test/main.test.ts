/** Tests the command without a relay; `kit.test.ts` runs the checks. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checks, isForDevelopment } from '../src/index.ts';

const main = new URL('../src/main.ts', import.meta.url).pathname;
const nowhere = 'https://127.0.0.1:1/svc/v1';

const target = ['--relay', nowhere, '--registry', '/none/there'];

let folder: string;
let registry: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'posthouse-conformance-'));
  registry = join(folder, 'registry.json');
  const context = `neo:0:0x${'0'.repeat(40)}`;
  const relay = { relay_id: `0x${'1'.repeat(40)}`, endpoint: nowhere };
  writeFileSync(registry, JSON.stringify({ context, relays: [relay] }));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
  });
  return { status, out: stdout.split('\n').slice(0, -1), error: stderr.trimEnd() };
}

test('--list needs no relay, and --only selects checks', () => {
  expect(run('--list')).toMatchObject({ status: 0, out: { length: checks.length } });
  const { out } = run('--list', '--only', 'group.sync/pages', 'relay.info/');
  expect(out.map((line) => line.split('\t')[0])).toContain('group.sync/pages');
  expect(out.every((line) => /^(relay\.info|group\.sync)\//.test(line))).toBe(true);
});

test('--list --by-method counts all checks', () => {
  const { status, out } = run('--list', '--by-method');
  expect(status).toBe(0);
  expect(out[0]).toBe('method\tchecks\truns');
  expect(out.at(-1)).toMatch(new RegExp(`^all\t${checks.length}\t\\d+$`));
});

test.each([
  ['an unknown option', ['--x\u001b[2J']],
  ['a value', ['--relay', nowhere, '--registry', '/none/\u001b[2J']],
])('an error that repeats %s does not command the terminal', (_, args) => {
  const { status, error } = run(...args);
  expect(status).toBe(2);
  expect(error).toMatch(/ \[2J/);
  expect(error).not.toMatch(/[^\P{Cc}\n]/u);
});

test.each([
  [[], /^--relay and --registry are missing: they name the relay to check$/],
  [
    [...target, '--certificate', main],
    /^--certificate, --key, --registry-refresh and --republication need --listen$/,
  ],
  [
    [...target, '--listen', '127.0.0.1', '--key', main],
    /^--listen needs --certificate and --key: /,
  ],
  [['--by-method'], /^--by-method needs --list$/],
  [['--list', '--only', 'group.', 'nothing'], /^no check has an id that starts with nothing$/],
  [['--colour'], /^error: unknown option '--colour'$/],
  [
    ['--registry-refresh', 'often'],
    /^error: option '--registry-refresh <seconds>' argument 'often'/,
  ],
  [['--relay', nowhere, '--registry', '/none/there'], /^\/none\/there: ENOENT/],
  [['--relay', nowhere, '--registry', main], /main\.ts: expected a value at offset 0$/],
] as const)('%j cannot be run: exit status 2', (args, message) => {
  const { status, out, error } = run(...args);
  expect({ status, out }).toEqual({ status: 2, out: [] });
  expect(error).toMatch(message);
});

test('a relay that does not answer is one error, with exit status 2', () => {
  const { status, out, error } = run('--relay', nowhere, '--registry', registry);
  expect({ status, out }).toEqual({ status: 2, out: [] });
  expect(error).toMatch(/^https:\/\/127\.0\.0\.1:1\/svc\/v1 cannot be used: connect ECONNREFUSED/);
});

test('a relay in use is asked for with --yes: the run first says what stays there', () => {
  const relay = 'https://relay.example/svc/v1';
  const file = join(folder, 'in-use.json');
  const entry = { relay_id: `0x${'1'.repeat(40)}`, endpoint: relay };
  const context = `neo:1:0x${'1'.repeat(40)}`;
  writeFileSync(file, JSON.stringify({ context, relays: [entry] }));
  const args = ['--relay', relay, '--registry', file, '--only', 'relay.info/'];
  const refused = run(...args);
  expect(refused).toMatchObject({ status: 2, out: [] });
  expect(refused.error).toMatch(
    /^The \d+ runs of checks make accounts at https:\/\/relay\.example.*they stay.*\nNothing was done: add --yes to go on\.$/,
  );
  const agreed = run(...args, '--yes');
  expect(agreed.error).toMatch(
    /^The \d+ runs.*\nhttps:\/\/relay\.example\/svc\/v1 cannot be used: /,
  );
});

test.each([
  [`neo:0:0x${'0'.repeat(40)}`, 'https://relay.example/svc/v1', true],
  [`neo:1:0x${'1'.repeat(40)}`, 'https://127.0.0.1:8443/svc/v1', true],
  [`neo:1:0x${'1'.repeat(40)}`, 'https://[::1]/svc/v1', true],
  [`neo:1:0x${'1'.repeat(40)}`, 'https://localhost:1/svc/v1', true],
  [`neo:1:0x${'0'.repeat(40)}`, 'https://192.0.2.1/svc/v1', false],
  [`neo:0:0x${'1'.repeat(40)}`, 'https://localhost.example/svc/v1', false],
])('a relay of %s at %s is for development: %s', (context, baseUrl, expected) => {
  expect(isForDevelopment({ network: { context }, baseUrl })).toBe(expected);
});

test('for an unknown relay the error lists the relays of the registry', () => {
  const { status, error } = run('--relay', 'https://other.test/svc/v1', '--registry', registry);
  expect(status).toBe(2);
  expect(error).toBe(`the registry has no relay at https://other.test/svc/v1; it has ${nowhere}`);
});
