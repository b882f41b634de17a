/** The kit against a real relay: every check passes, and every check can fail. */
import { join } from 'node:path';
import { methods } from '@posthouse/protocol';
import { Relay } from '@posthouse/relay';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RelayData } from '../../relay/test/support/engine.ts';
import { type Answer, checks, loadTarget, runCheck, type Target } from '../src/index.ts';

let data: RelayData;
let relay: Relay;
let target: Target;

beforeAll(async () => {
  const rate = { accountRate: 1e6, accountBurst: 1e6, addressRate: 1e6, addressBurst: 1e6 };
  data = await RelayData.make();
  relay = await Relay.start({
    dev: true,
    ...data.config,
    listen: '127.0.0.1:0',
    host: { groups: true },
    limits: rate,
    log: 'silent',
  });
  target = await loadTarget({
    relay: relay.https[0] as string,
    registry: join(data.path, 'registry.json'),
    ca: join(data.path, 'tls', 'ca.pem'),
  });
});

afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  await data[Symbol.asyncDispose]();
});

describe.concurrent('conformance of the relay', () => {
  for (const check of checks) {
    for (const transport of check.transports) {
      test(`${check.source}: ${check.title} [${check.id} over ${transport}]`, async ({
        expect,
      }) => {
        const finding = await runCheck(target, check, transport);
        expect(finding).toMatchObject({ outcome: 'passed' });
      });
    }
  }
});

/** A relay that refuses what it should do and does what it should refuse. */
function turnedAround(method: string): Target {
  const alter = (called: string, answer: Answer): Answer => {
    if (called !== method) return answer;
    return answer.ok
      ? { ok: false, code: 'internal_error', message: 'turned around', data: undefined }
      : { ok: true, result: {} };
  };
  return { ...target, alter };
}

describe.concurrent('checks notice', () => {
  const names: readonly string[] = Object.keys(methods);
  for (const check of checks.filter(({ method }) => names.includes(method))) {
    const transport = check.transports[0] as (typeof check.transports)[0];
    test(`${check.id} fails where ${check.method} answers the other way round`, async ({
      expect,
    }) => {
      const finding = await runCheck(turnedAround(check.method), check, transport);
      expect(finding.outcome).toBe('failed');
    });
  }
});

test('every method of the base module has checks, and their ids are distinct', () => {
  const covered = new Set(checks.map(({ method }) => method));
  const base = Object.values(methods).filter((method) => !('capability' in method));
  expect(base.map(({ name }) => name).filter((name) => !covered.has(name))).toEqual([]);
  const ids = checks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});
