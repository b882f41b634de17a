/**
 * Every check can fail: against a relay that answers the other way round. What a check makes of an
 * answer is its own, whatever the relay stores it in: this runs on one engine.
 */
import { methods } from '@posthouse/protocol';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type Answer, type Check, checks, runCheck, type Target } from '../src/index.ts';
import { TestRelays } from './relays.ts';

let subjects: TestRelays;

beforeAll(async () => {
  subjects = await TestRelays.start();
});

afterAll(async () => {
  await subjects[Symbol.asyncDispose]();
});

/** A relay that refuses what it should do and does what it should refuse. */
function turnedAround(check: Check): Target {
  const { method } = check;
  const alter = (called: string, answer: Answer): Answer => {
    if (called !== method) return answer;
    return answer.ok
      ? { ok: false, code: 'internal_error', message: 'turned around', data: undefined }
      : { ok: true, result: {} };
  };
  return { ...subjects.targetFor(check), alter };
}

describe.concurrent('checks notice', () => {
  const names: readonly string[] = Object.keys(methods);
  for (const check of checks.filter(({ method }) => names.includes(method))) {
    const transport = check.transports[0] as (typeof check.transports)[0];
    test(`${check.id} fails where ${check.method} answers the other way round`, async ({
      expect,
    }) => {
      const finding = await runCheck(turnedAround(check), check, transport);
      expect(finding.outcome).toBe('failed');
    });
  }
});
