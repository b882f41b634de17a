/** The kit against a real relay: every check passes, and every check can fail. */
import { join } from 'node:path';
import { type MethodDefinition, methods } from '@posthouse/protocol';
import { Relay } from '@posthouse/relay';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RelayData } from '../../relay/test/support/engine.ts';
import {
  type Answer,
  checks,
  type Finding,
  loadTarget,
  runCheck,
  runChecks,
  type Target,
} from '../src/index.ts';

/** Checks come faster than people do. */
const unlimited = { accountRate: 1e6, accountBurst: 1e6, addressRate: 1e6, addressBurst: 1e6 };

let data: RelayData;
let relay: Relay;
let target: Target;

beforeAll(async () => {
  data = await RelayData.make();
  relay = await Relay.start({
    dev: true,
    ...data.config,
    listen: '127.0.0.1:0',
    host: { groups: true },
    limits: unlimited,
    log: 'silent',
  });
  target = await targetOf(relay, data);
});

function targetOf(of: Relay, { path }: RelayData): Promise<Target> {
  return loadTarget({
    relay: of.https[0] as string,
    registry: join(path, 'registry.json'),
    ca: join(path, 'tls', 'ca.pem'),
  });
}

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

test('a module that the relay does not declare is not checked, and said so', async () => {
  const own = await RelayData.make();
  try {
    await using plain = await Relay.start({
      dev: true,
      ...own.config,
      listen: '127.0.0.1:0',
      host: { groups: false },
      limits: unlimited,
      log: 'silent',
    });
    const without = await targetOf(plain, own);
    const found: Finding[] = [];
    for await (const finding of runChecks(without, checks, {
      only: ['group.create/', 'relay.info/'],
    })) {
      found.push(finding);
    }
    const [groups, others] = [true, false].map((of) =>
      found.filter(({ method }) => method.startsWith('group.') === of),
    ) as [Finding[], Finding[]];
    expect(groups.length).toBeGreaterThan(0);
    const outcome = 'not_applicable';
    const reason = 'the relay does not declare group.host.v1';
    for (const finding of groups) expect(finding).toMatchObject({ outcome, reason });
    expect(others.length).toBeGreaterThan(0);
    for (const finding of others) expect(finding).toMatchObject({ outcome: 'passed' });
  } finally {
    await own[Symbol.asyncDispose]();
  }
});

test('every method of the base module and of groups has checks, and their ids are distinct', () => {
  const covered = new Set(checks.map(({ method }) => method));
  const definitions: readonly MethodDefinition[] = Object.values(methods);
  const asked = definitions.filter(({ capability }) => capability !== 'channel.host.v1');
  expect(asked.map(({ name }) => name).filter((name) => !covered.has(name))).toEqual([]);
  const ids = checks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});
