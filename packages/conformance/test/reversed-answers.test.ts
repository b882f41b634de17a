/**
 * Shows that every check can fail: against a relay whose answers are reversed. The storage engine does
 * not matter to a check, so this runs on one engine.
 */
import { methods } from '@posthouse/protocol';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type Answer, type Check, checks, runCheck, type Target } from '../src/index.ts';
import { TestRelays } from './relays.ts';

let relays: TestRelays;

beforeAll(async () => {
  relays = await TestRelays.start();
});

afterAll(async () => {
  await relays[Symbol.asyncDispose]();
});

/** Makes a target that refuses successful calls and accepts refused ones. */
function reversed(check: Check): Target {
  const { method } = check;
  const alter = (called: string, answer: Answer): Answer => {
    if (called !== method) return answer;
    return answer.ok
      ? { ok: false, code: 'internal_error', message: 'reversed', data: undefined }
      : { ok: true, result: {} };
  };
  return { ...relays.targetFor(check), alter };
}

describe.concurrent('reversed answers', () => {
  const names: readonly string[] = Object.keys(methods);
  for (const check of checks.filter(({ method }) => names.includes(method))) {
    const transport = check.transports[0] as (typeof check.transports)[0];
    test(`${check.id} fails if the answers of ${check.method} are reversed`, async ({ expect }) => {
      const finding = await runCheck(reversed(check), check, transport);
      expect(finding.outcome).toBe('failed');
    });
  }
});
