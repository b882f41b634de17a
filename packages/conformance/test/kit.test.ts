/**
 * Runs the kit against a real relay: every check passes. `reversed-answers.test.ts` shows that every
 * check can fail.
 */
import { methods } from '@posthouse/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checks, type Finding, runCheck, runChecks, type Target } from '../src/index.ts';
import { startRelay, TestRelays, unlimited } from './relays.ts';

let relays: TestRelays;

beforeAll(async () => {
  relays = await TestRelays.start();
});

afterAll(async () => {
  await relays[Symbol.asyncDispose]();
});

describe.concurrent('conformance of the relay', () => {
  for (const check of checks) {
    for (const transport of check.transports) {
      test(`${check.source}: ${check.title} [${check.id} over ${transport}]`, async ({
        expect,
      }) => {
        const finding = await runCheck(relays.targetFor(check), check, transport);
        expect(finding).toMatchObject({ outcome: 'passed' });
      });
    }
  }
});

test('the checks let every method succeed on this storage engine', () => {
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
  for (const finding of await findings(relays.defaults.target, waiting)) {
    const reason = expect.stringMatching(/ for 10080 min here; a check waits 10 s at most$/);
    expect(finding).toMatchObject({ outcome: 'not_applicable', reason });
  }
});

async function findings(target: Target, only: readonly string[]): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const finding of runChecks(target, checks, { only })) found.push(finding);
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
