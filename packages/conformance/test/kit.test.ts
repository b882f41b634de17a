/** The kit against a real relay: every check passes, and every check can fail. */
import { join } from 'node:path';
import { methods } from '@posthouse/protocol';
import { type PartialConfig, Relay } from '@posthouse/relay';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RelayData } from '../../relay/test/support/engine.ts';
import {
  type Answer,
  type Check,
  checks,
  type Finding,
  loadTarget,
  runCheck,
  runChecks,
  type Target,
} from '../src/index.ts';

/** Checks come faster than people do. */
const unlimited = { accountRate: 1e6, accountBurst: 1e6, addressRate: 1e6, addressBurst: 1e6 };

/** A relay, and the data that goes with it. */
interface Subject extends AsyncDisposable {
  readonly target: Target;
}

async function start(config: Omit<PartialConfig, 'storage'>): Promise<Subject> {
  await using stack = new AsyncDisposableStack();
  const data = stack.use(await RelayData.make());
  const relay = stack.use(
    await Relay.start({
      dev: true,
      ...data.config,
      listen: '127.0.0.1:0',
      log: 'silent',
      ...config,
    }),
  );
  const target = await loadTarget({
    relay: relay.https[0] as string,
    registry: join(data.path, 'registry.json'),
    ca: join(data.path, 'tls', 'ca.pem'),
  });
  const owned = stack.move();
  return { target, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** As relays are; and one whose periods are short enough to see them end. */
let usual: Subject;
let quick: Subject;

beforeAll(async () => {
  const host = { groups: true, channels: true };
  usual = await start({ host, limits: unlimited });
  const short = { groupRecoveryWait: 4, groupStagingPeriod: 4 };
  quick = await start({ host, limits: { ...unlimited, ...short } });
});

afterAll(async () => {
  await usual[Symbol.asyncDispose]();
  await quick[Symbol.asyncDispose]();
});

/** The relay on which a check can be made. */
const targetFor = ({ waits }: Check): Target => (waits === true ? quick : usual).target;

describe.concurrent('conformance of the relay', () => {
  for (const check of checks) {
    for (const transport of check.transports) {
      test(`${check.source}: ${check.title} [${check.id} over ${transport}]`, async ({
        expect,
      }) => {
        const finding = await runCheck(targetFor(check), check, transport);
        expect(finding).toMatchObject({ outcome: 'passed' });
      });
    }
  }
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
  return { ...targetFor(check), alter };
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

test('a module that the relay does not declare is not checked, and said so', async () => {
  const host = { groups: false, channels: false };
  await using plain = await start({ host, limits: unlimited });
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

test('what ends only after days is not waited for, and said so', async () => {
  const waiting = checks.filter(({ waits }) => waits === true).map(({ id }) => id);
  expect(waiting.length).toBeGreaterThan(0);
  for (const finding of await findings(usual.target, waiting)) {
    const reason = expect.stringMatching(/ for 10080 min here; a check waits 10 s at most$/);
    expect(finding).toMatchObject({ outcome: 'not_applicable', reason });
  }
});

async function findings(target: Target, only: readonly string[]): Promise<Finding[]> {
  const found: Finding[] = [];
  for await (const finding of runChecks(target, checks, { only })) found.push(finding);
  return found;
}

test('every method has checks, and their ids are distinct', () => {
  const covered = new Set(checks.map(({ method }) => method));
  expect(Object.keys(methods).filter((name) => !covered.has(name))).toEqual([]);
  const ids = checks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test('every check names its chapter and section', () => {
  const wrong = checks.filter(({ source }) => !/^0[1-7] §\d/.test(source));
  expect(wrong).toEqual([]);
});
