import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';

import { join } from 'node:path';
import type { RelayEntry } from '@posthouse/protocol';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { LongWork } from '../../src/dispatch/long-work.ts';
import {
  enterRelay,
  FileRegistry,
  type RunSteps,
  readRegistry,
} from '../../src/federation/registry/file.ts';
import { openRegistry } from '../../src/federation/registry/open.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { countTurns, fullTurns } from '../support/full-turns.ts';
import { network } from '../support/in-process-relay.ts';
import { patience } from '../support/patience.ts';

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, 'registry.json');
});
afterEach(() => folder[Symbol.dispose]());

const entry = (digit: string, endpoint = 'https://relay.example/svc/v1'): RelayEntry => ({
  relay_id: `0x${digit.repeat(40)}`,
  endpoint,
  status: 'active',
  updated_at: 1,
});

test('without a file there is no registry', async () => {
  expect(await readRegistry(network, path)).toBeUndefined();
});

test('a relay enters itself next to the others, and replaces its earlier entry', async () => {
  await enterRelay(network, path, entry('1'));
  await enterRelay(network, path, entry('2'));
  await enterRelay(network, path, entry('1', 'https://moved.example/svc/v1'));
  const registry = await readRegistry(network, path);
  expect(await registry?.getRelay(`0x${'1'.repeat(40)}`)).toMatchObject({
    endpoint: 'https://moved.example/svc/v1',
  });
  expect(await registry?.getRelay(`0x${'2'.repeat(40)}`)).toEqual(entry('2'));
  expect(JSON.parse(readFileSync(path, 'utf8')).relays).toHaveLength(2);
});

test('relays that enter at once are all listed, also if another process enters one', async () => {
  const digits = [...'0123456789abcdef'];
  const source = new URL('../../src/federation/registry/file.ts', import.meta.url).href;
  const other = Array.from({ length: 20 }, (_, count) => ({
    ...entry('0'),
    relay_id: `0x5${String(count).padStart(39, '0')}`,
  }));
  const program = `
    import { Network } from '@posthouse/protocol';
    import { nodePrimitives } from '@posthouse/protocol/node';
    import { enterRelay } from '${source}';
    const network = new Network({
      context: '${network.context}', word: 'svc', primitives: nodePrimitives,
    });
    for (const entry of ${JSON.stringify(other)}) await enterRelay(network, '${path}', entry);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    cwd: import.meta.dirname,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(child, 'exit');
  let isOver = false;
  void ended.then(() => {
    isOver = true;
  });
  do {
    await Promise.all(digits.map((digit) => enterRelay(network, path, entry(digit))));
  } while (!isOver);
  expect(await ended).toEqual([0, null]);
  const { relays } = JSON.parse(readFileSync(path, 'utf8')) as { relays: RelayEntry[] };
  const ids = [...digits.map((digit) => entry(digit)), ...other].map(({ relay_id }) => relay_id);
  expect(relays.map(({ relay_id }) => relay_id).sort()).toEqual(ids.sort());
});

test('no other user can hold the lock, and the file stays readable for its readers', async () => {
  await enterRelay(network, path, entry('1'));
  expect(statSync(`${path}.lock`).mode & 0o777).toBe(0o600);
  chmodSync(path, 0o644);
  const isRoot = process.getuid?.() === 0;
  // The relay's user, while root enters another relay.
  if (isRoot) chownSync(path, 65_534, 65_534);
  await enterRelay(network, path, entry('2'));
  expect(statSync(path).mode & 0o777).toBe(0o644);
  expect(statSync(`${path}.lock`).mode & 0o777).toBe(0o600);
  if (!isRoot) return;
  for (const file of [path, `${path}.lock`]) {
    const { uid, gid } = statSync(file);
    expect([uid, gid], file).toEqual([65_534, 65_534]);
  }
});

test('a link in the place of the lock is not followed, and no other file is taken for a lock', async () => {
  const other = `${path}.other`;
  symlinkSync(other, `${path}.lock`);
  await expect(enterRelay(network, path, entry('1'))).rejects.toThrow('it is a link: remove it');
  expect(existsSync(other)).toBe(false);
  rmSync(`${path}.lock`);
  writeFileSync(`${path}.lock`, 'text', { mode: 0o644 });
  await expect(enterRelay(network, path, entry('1'))).rejects.toThrow('a lock is empty');
  expect(statSync(`${path}.lock`).mode & 0o777).toBe(0o644);
});

test('a file of another network is refused, and not overwritten', async () => {
  const text = JSON.stringify({ context: `neo:1:0x${'0'.repeat(40)}`, relays: [] });
  writeFileSync(path, text);
  await expect(enterRelay(network, path, entry('1'))).rejects.toMatchObject({
    code: 'bad_request',
  });
  expect(readFileSync(path, 'utf8')).toBe(text);
});

describe('the registry of a file', () => {
  const listed = async (registry: FileRegistry) => {
    const ids: string[] = [];
    for await (const { relay_id: id } of registry.listRelays()) ids.push(id);
    return ids;
  };

  test('07 §B5: a changed file is read again, whatever its time says', async () => {
    await enterRelay(network, path, entry('1'));
    const registry = new FileRegistry(network, path);
    expect(await registry.getRelay(entry('1').relay_id)).toEqual(entry('1'));
    await enterRelay(network, path, { ...entry('1'), status: 'disabled' });
    expect(await registry.getRelay(entry('1').relay_id)).toMatchObject({ status: 'disabled' });
    await enterRelay(network, path, entry('2'));
    expect(await listed(registry)).toEqual([entry('1').relay_id, entry('2').relay_id]);
    // Same length, in place, within the resolution of the file system's time.
    const time = new Date();
    utimesSync(path, time, time);
    expect(await registry.getRelay(entry('1').relay_id)).toMatchObject({ status: 'disabled' });
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace('"disabled"', '"active"  '));
    utimesSync(path, time, time);
    expect(await registry.getRelay(entry('1').relay_id)).toMatchObject({ status: 'active' });
  });

  test('an unchanged file is read once', async () => {
    await enterRelay(network, path, entry('1'));
    utimesSync(path, 1, 1);
    const registry = new FileRegistry(network, path);
    const first = await registry.getRelay(entry('1').relay_id);
    expect(await registry.getRelay(entry('1').relay_id)).toBe(first);
    utimesSync(path, 2, 2);
    const again = await registry.getRelay(entry('1').relay_id);
    expect(again).not.toBe(first);
    expect(again).toEqual(first);
  });

  /** Runs the steps of readings at once, each when the test says so. */
  function held() {
    const release = Promise.withResolvers<void>();
    let begun = 0;
    const run: RunSteps = async (begin) => {
      begun += 1;
      await release.promise;
      const steps = begin();
      let step = steps.next();
      while (step.done !== true) step = steps.next();
      return step.value;
    };
    return { run, release: release.resolve, begun: () => begun };
  }

  test('07 §B5: a change while the file is read for long is not missed, whatever its time says', async () => {
    await enterRelay(network, path, entry('1'));
    const time = new Date();
    utimesSync(path, time, time);
    const reading = held();
    const registry = new FileRegistry(network, path, reading.run);
    const first = registry.getRelay(entry('1').relay_id);
    await vi.waitFor(() => expect(reading.begun()).toBe(1), patience);
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace(/relay\.example/, 'moved.example'));
    utimesSync(path, time, time);
    vi.spyOn(Date, 'now').mockReturnValue(time.getTime() + 5_000);
    onTestFinished(() => void vi.restoreAllMocks());
    reading.release();
    expect(await first).toEqual(entry('1'));
    expect(await registry.getRelay(entry('1').relay_id)).toMatchObject({
      endpoint: 'https://moved.example/svc/v1',
    });
  });

  test('calls at once read a file once, and again after a failure', async () => {
    await enterRelay(network, path, entry('1'));
    utimesSync(path, 1, 1);
    const text = readFileSync(path, 'utf8');
    const reading = held();
    const registry = new FileRegistry(network, path, reading.run);
    const states = async (calls: readonly Promise<unknown>[]) =>
      (await Promise.allSettled(calls)).map(({ status }) => status);
    const five = () => Array.from({ length: 5 }, () => registry.getRelay(entry('1').relay_id));
    const calls = five();
    await vi.waitFor(() => expect(reading.begun()).toBe(1), patience);
    for (let looks = 0; looks < 5; looks += 1) await registry.version();
    reading.release();
    expect(await states(calls)).toEqual(Array(5).fill('fulfilled'));
    expect(reading.begun()).toBe(1);
    writeFileSync(path, '{');
    utimesSync(path, 2, 2);
    expect(await states(five())).toEqual(Array(5).fill('rejected'));
    writeFileSync(path, text);
    utimesSync(path, 3, 3);
    expect(await states(five())).toEqual(Array(5).fill('fulfilled'));
  });

  test('a file of many relays is read in steps, between which calls are served', async () => {
    const relays = Array.from({ length: 1_000 }, (_, count) => ({
      ...entry('0'),
      relay_id: `0x${String(count).padStart(40, '0')}`,
    }));
    writeFileSync(path, JSON.stringify({ context: network.context, relays }));
    await using parts = new AsyncDisposableStack();
    const registry = await openRegistry(
      {
        data: folder.path,
        registry: path,
        federation: { listen: '', ca: '', allowPrivate: false, registryGrace: 0 },
      },
      {
        ...{ network, parts, clock: new ManualClock(), limits: defaultLimits },
        ...{ longWork: new LongWork(), metrics: new Metrics(), log: pino({ level: 'silent' }) },
      },
    );
    using _full = fullTurns();
    using turns = countTurns();
    expect(await registry.current(relays[999]?.relay_id ?? '')).toEqual(relays[999]);
    expect(turns.count).toBeGreaterThan(1_000);
  });

  test('while the file is missing or broken, every call rejects', async () => {
    const registry = new FileRegistry(network, path);
    await expect(registry.getRelay(entry('1').relay_id)).rejects.toThrow();
    await enterRelay(network, path, entry('1'));
    expect(await listed(registry)).toHaveLength(1);
    writeFileSync(path, '{');
    await expect(listed(registry)).rejects.toThrow();
    await expect(registry.getRelay(entry('1').relay_id)).rejects.toThrow();
  });
});
