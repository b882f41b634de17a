/**
 * Runs the kit against a real relay: every check passes. `reversed-answers.test.ts` shows that every
 * check can fail.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { methods } from '@posthouse/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { share } from '../../relay/test/support/chance.ts';
import { engine } from '../../relay/test/support/engine.ts';
import { TestChannel } from '../src/channels/test-channel.ts';
import type { Check, CheckTransport } from '../src/check.ts';
import { TestContext } from '../src/fixtures/test-context.ts';
import { TestGroup } from '../src/groups/test-group.ts';
import {
  checks,
  type Finding,
  runCheck,
  runChecks,
  selectChecks,
  type Target,
} from '../src/index.ts';
import { startRelay, TestRelays, unlimited } from './relays.ts';

let relays: TestRelays;

beforeAll(async () => {
  relays = await TestRelays.start();
});

afterAll(async () => {
  await relays[Symbol.asyncDispose]();
});

/** Checks between relays about what the engine does not store. */
const withoutStorage =
  /^(?:peer\.|rpc\.(?:envelope|frames|limits)$|dht\.(?:frames|messages|peers|answers|candidates)$)/;

/** How many checks on several transports there were so far. */
let several = 0;

/**
 * Returns the transports of a check. `npm test` makes each check once, over one transport and the
 * other in turns; `npm run test:long` makes them over the others. PostgreSQL gets the same statements over either client
 * transport: there a check that runs over WebSocket is not repeated over HTTPS.
 */
function transportsOf({ method, transports }: Check): readonly CheckTransport[] {
  if (engine === 'sqlite') {
    if (transports.length < 2) return share === 'rest' ? [] : transports;
    several += 1;
    const one = transports[several % transports.length];
    return transports.filter((each) => share === 'all' || (each === one) === (share === 'part'));
  }
  if (withoutStorage.test(method)) return [];
  if (!transports.includes('wss')) return transports;
  return transports.filter((transport) => transport !== 'https');
}

type Suite = (name: string, define: () => void) => unknown;

/** Makes the tests of some checks; a suite without any would fail. */
function expectPassing(name: string, some: readonly Check[], suite: Suite = describe): void {
  const planned = some.flatMap((check) =>
    transportsOf(check).map((transport) => ({ check, transport })),
  );
  if (planned.length === 0) return;
  suite(name, () => {
    for (const each of planned) expectOnePassing(each);
  });
}

function expectOnePassing({
  check,
  transport,
}: {
  readonly check: Check;
  readonly transport: CheckTransport;
}): void {
  test(`${check.source}: ${check.title} [${check.id} over ${transport}]`, async ({ expect }) => {
    const { outcome, reason } = await runCheck(relays.targetFor(check), check, transport);
    expect(reason ?? outcome).toBe('passed');
  });
}

const together = checks.filter(({ isAlone }) => isAlone !== true);
expectPassing('conformance of the relay', together, describe.concurrent);

const alone = checks.filter(({ isAlone }) => isAlone);
expectPassing('conformance of the relay, one check at a time', alone);

test.skipIf(share === 'rest')('the checks let every method succeed on this engine', () => {
  const never = Object.keys(methods).filter((method) => relays.defaults.successes(method) === 0);
  expect(never).toEqual([]);
});

test('checks of an undeclared module are not applicable, with the reason', async () => {
  const host = { groups: false, channels: false };
  await using plain = await startRelay({ host, limits: unlimited });
  for (const module of ['group', 'channel']) {
    const found = await findings(plain.target, [`${module}.create/`]);
    expect(found.length).toBeGreaterThan(0);
    const reason = `the relay does not declare ${module}.host.v1`;
    for (const finding of found) {
      expect(finding).toMatchObject({ outcome: 'not_applicable', reason });
    }
  }
  const others = await findings(plain.target, ['relay.info/', 'module/']);
  expect(others.length).toBeGreaterThan(0);
  for (const finding of others) expect(finding).toMatchObject({ outcome: 'passed' });
});

test('checks that would wait for days are not applicable, with the reason', async () => {
  const waiting = checks
    .filter(({ waitsForPeriod }) => waitsForPeriod === true)
    .map(({ id }) => id);
  expect(waiting.length).toBeGreaterThan(0);
  for (const finding of await findings(relays.withSeats.target, waiting)) {
    const reason = expect.stringMatching(
      / for (?:10080|43200) min here; a check waits 10 s at most$|: --republication states how often$/,
    );
    expect(finding).toMatchObject({ outcome: 'not_applicable', reason });
  }
});

test('without a command for it, restarts are not applicable, with the reason', async () => {
  const { restart: _, ...target } = relays.withSeats.target;
  for (const finding of await findings(target, ['restart/'])) {
    const reason = '--restart is missing: a command that restarts the relay';
    expect(finding).toMatchObject({ outcome: 'not_applicable', reason });
  }
});

test('without a relay of the kit, checks of chapter 07 are not applicable, with the reason', async () => {
  for (const finding of await findings(relays.defaults.target, ['peer.admission/'])) {
    const reason = expect.stringMatching(/: --listen, --certificate and --key are missing$/);
    expect(finding).toMatchObject({ outcome: 'not_applicable', reason });
  }
});

test('the command is another relay, and leaves the registry as it was', async () => {
  const { folder, target } = relays.withSeats;
  const registry = join(folder, 'registry.json');
  const before = JSON.parse(readFileSync(registry, 'utf8'));
  const certificate = join(folder, 'kit', 'tls', 'server');
  const { stdout } = await promisify(execFile)(process.execPath, [
    new URL('../src/main.ts', import.meta.url).pathname,
    ...['--relay', target.baseUrl, '--registry', registry, '--ca', join(folder, 'tls', 'ca.pem')],
    ...['--listen', '127.0.0.1', '--certificate', `${certificate}.pem`],
    ...['--key', `${certificate}.key`, '--restart', 'exit'],
    ...['--only', 'peer.admission/listed', 'peer.dial/reaches', 'restart/received'],
    ...['--report', join(folder, 'report.html')],
  ]);
  const report = readFileSync(join(folder, 'report.html'), 'utf8');
  expect(report).toContain('3 passed, 0 failed, 0 not applicable');
  expect(report).toContain(target.baseUrl);
  expect(stdout).toMatch(/^3 passed, 0 failed in \d+ s$/m);
  expect(JSON.parse(readFileSync(registry, 'utf8'))).toEqual(before);
});

test('at a relay in use, the groups and channels of a check are closed at its end', async () => {
  const { target, successes } = relays.defaults;
  const closed = () => [successes('group.close'), successes('channel.close')];
  for (const cleansUp of [false, true]) {
    const [groups = 0, channels = 0] = closed();
    const context = await TestContext.open({ ...target, cleansUp }, 'https');
    const owner = await context.testAccount();
    await TestGroup.create(context, owner);
    const channel = await TestChannel.create(context, owner);
    await channel.close();
    await TestChannel.create(context, owner);
    await context[Symbol.asyncDispose]();
    expect(closed()).toEqual(cleansUp ? [groups + 1, channels + 2] : [groups, channels + 1]);
  }
});

async function findings(target: Target, only: readonly string[]): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const finding of runChecks(target, selectChecks(checks, only))) found.push(finding);
  return found;
}

test('every method has checks, and all ids are distinct', () => {
  const covered = new Set(checks.map(({ method }) => method));
  expect(Object.keys(methods).filter((name) => !covered.has(name))).toEqual([]);
  const ids = checks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test('every check names its chapter and section', () => {
  const wrong = checks.filter(({ source }) => !/^(?:0[1-6] §|07 §[A-D])\d/.test(source));
  expect(wrong).toEqual([]);
});
