/** `policy.command` (docs/operations.md, "A program that decides"): how the program is run. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { PolicyQuestion } from '../../src/context.ts';
import { defaultLimits } from '../../src/limits.ts';
import { createLog } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { openPolicy } from '../../src/policy/index.ts';
import { PolicyProgram } from '../../src/policy/program.ts';
import { ManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/folder.ts';
import { patience } from '../support/patience.ts';

let clock: ManualClock;
let metrics: Metrics;
let lines: Record<string, unknown>[];
let program: PolicyProgram | undefined;
beforeEach(() => {
  clock = new ManualClock();
  metrics = new Metrics();
  lines = [];
});
afterEach(async () => {
  await program?.[Symbol.asyncDispose]();
  program = undefined;
});

/** What a program needs of a relay; what it logs is in `lines`. */
function parts() {
  const note = (line: object) => void lines.push({ ...line });
  const log = Object.assign(Object.create(createLog('silent')), { info: note, warn: note });
  return { clock, metrics, log, limits: defaultLimits };
}

/** Starts a program that runs `code` for each line, with `question` and `say`. */
async function start(code: string): Promise<PolicyProgram> {
  const script = `
    const say = (text) => process.stdout.write(text + '\\n');
    const allow = (id) => say(JSON.stringify({ id, allow: true }));
    require('node:readline').createInterface({ input: process.stdin })
      .on('line', (line) => { const question = JSON.parse(line); const { id } = question; ${code} });
  `;
  program = await PolicyProgram.start([process.execPath, '-e', script], parts());
  return program;
}
const question = (account = 'a'): PolicyQuestion => ({ ask: 'group', account, address: '::1' });
const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
/** Waits until another process runs than before. */
const restarted = async (before: number | undefined) =>
  await vi.waitFor(() => {
    expect(program?.pid).toBeGreaterThan(0);
    expect(program?.pid).not.toBe(before);
  }, patience);

describe('policy: the program', () => {
  test('answers in any order; it has no environment, and writes into the log', async () => {
    const { ask } = await start(`
      globalThis.first ??= (console.error(JSON.stringify(process.env)), id);
      if (question.account === 'last') { allow(id); say(JSON.stringify({ id: first, allow: false })); }
    `).then((one) => ({ ask: one.ask.bind(one) }));
    const first = ask(question('first'));
    expect(await ask(question('last'))).toBe(true);
    expect(await first).toBe(false);
    await expect.poll(() => lines.find(({ line }) => line !== undefined), patience).toBeDefined();
    const environment = JSON.parse(lines.find(({ line }) => line)?.line as string);
    expect(Object.keys(environment)).toEqual(['PATH']);
  });

  test('gets the question as one line of JSON, whatever ends a line for its reader', async () => {
    const asked: PolicyQuestion = {
      ...{ ask: 'post' as const, account: 'a', address: '192.0.2.1', channel: 'c' },
      post: { text: 'two\nlines\u2028\u0085 \u{1f600}' },
    };
    const one = await start('console.error(JSON.stringify(question)); allow(id);');
    expect(await one.ask(asked)).toBe(true);
    await expect.poll(() => lines.some(({ line }) => line !== undefined), patience).toBe(true);
    const { line } = lines.find((entry) => entry.line) as { line: string };
    expect(JSON.parse(line)).toEqual({ id: 1, ...asked });
  });

  test('has a second; a late answer is ignored, and ten misses in a row end it', async () => {
    const one = await start(`
      if (question.account === 'late') globalThis.late = id;
      else if (question.account === 'good') { if (globalThis.late) allow(late); allow(id); }
    `);
    const { pid } = one;
    const late = one.ask(question('late'));
    clock.advance(0.999);
    expect(await Promise.race([late, 'waits'])).toBe('waits');
    clock.advance(0.001);
    expect(await late).toBe(undefined);
    expect(await one.ask(question('good'))).toBe(true);
    const miss = async (count: number) => {
      const asked = Array.from({ length: count }, () => one.ask(question('silent')));
      clock.advance(1);
      expect(new Set(await Promise.all(asked))).toEqual(new Set([undefined]));
    };
    await miss(9);
    expect(one.pid).toBe(pid);
    await miss(1);
    expect(one.pid).toBe(undefined);
    await expect.poll(() => isRunning(pid as number), patience).toBe(false);
  });

  test('is ended by late answers too: they lie in its input until then, and are no answers in time', async () => {
    const one = await start('if (globalThis.before) allow(before); globalThis.before = id;');
    const { pid } = one;
    let over = 0;
    for (let before = 0; before < 10; before += 1) {
      expect(one.pid).toBe(pid);
      const asked = one.ask(question(), () => {
        over += 1;
      });
      await expect.poll(() => over, patience).toBe(before);
      clock.advance(1);
      expect(await asked).toBe(undefined);
      if (before < 9) expect(over).toBe(before);
    }
    expect(one.pid).toBe(undefined);
    expect(over).toBe(10);
  });

  test('is ended after ten seconds without an answer to one question, others answered or not', async () => {
    const one = await start("if (question.account === 'good') allow(id);");
    let isOver = false;
    const silent = one.ask(question('silent'), () => {
      isOver = true;
    });
    for (let second = 0; second < 10; second += 1) {
      expect(await one.ask(question('good'))).toBe(true);
      expect(isOver).toBe(false);
      clock.advance(1);
    }
    expect(await silent).toBe(undefined);
    expect(one.pid).toBe(undefined);
    expect(isOver).toBe(true);
  });

  test('has at most 16 MiB to answer: above, a question is temporarily_unavailable', async () => {
    const one = await start('allow(id);');
    const post = (bytes: number): PolicyQuestion => {
      const asked = { ask: 'post' as const, account: 'a', address: '::1', channel: 'c' };
      const rest = JSON.stringify({ id: 1, ...asked, post: { text: '' } }).length + 1;
      return { ...asked, post: { text: 'x'.repeat(bytes - rest) } };
    };
    const refused = { code: 'temporarily_unavailable' };
    await expect(one.ask(post(16_777_217))).rejects.toMatchObject(refused);
    const most = one.ask(post(16_777_216));
    let isOver = false;
    const more = one.ask(question(), () => {
      isOver = true;
    });
    await expect(more).rejects.toMatchObject(refused);
    expect(isOver).toBe(true);
    expect(await most).toBe(true);
    expect(await one.ask(question())).toBe(true);
  });

  test.each([
    ['no JSON', "say('yes')"],
    ['no decision', 'say(JSON.stringify({ id, allow: 1 }))'],
    ['the ID of no question', 'allow(id + 1)'],
    ['a long line', "say(JSON.stringify({ id, allow: true, reason: 'x'.repeat(2000) }))"],
    ['nothing, and ends', 'process.exit(3)'],
  ])('that writes %s is ended, and started again after a second', async (_, code) => {
    const one = await start(`if (question.account === 'good') allow(id); else { ${code} }`);
    const { pid } = one;
    const open = one.ask(question());
    expect(await open).toBe(undefined);
    expect(one.pid).toBe(undefined);
    expect(metrics.value('policy_failing_now')).toBe(1);
    expect(await one.ask(question('good'))).toBe(undefined);
    await expect.poll(() => isRunning(pid as number), patience).toBe(false);
    clock.advance(0.999);
    expect(one.pid).toBe(undefined);
    clock.advance(0.001);
    await restarted(pid);
    expect(await one.ask(question('good'))).toBe(true);
    expect(metrics.value('policy_failing_now')).toBe(0);
    expect(metrics.value('policy_ended')).toBe(1);
  });

  test('that always ends is started after 1, 2, 4 and at most 60 seconds', async () => {
    await start('process.exit(1)');
    const pauses: number[] = [];
    for (let count = 0; count < 8; count += 1) {
      void program?.ask(question());
      await expect.poll(() => program?.pid, patience).toBe(undefined);
      pauses.push(lines.at(-1)?.seconds as number);
      clock.advance(pauses.at(-1) as number);
    }
    expect(pauses).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
  });

  test('fills no log: 60 lines a minute, cut at 1,024 characters, the others are counted', async () => {
    const one = await start(
      "for (let n = 0; n < 100; n += 1) console.error('x'.repeat(n === 0 ? 5000 : 1)); allow(id);",
    );
    await one.ask(question());
    const written = () => lines.filter(({ line }) => line !== undefined);
    await expect.poll(() => written().length, patience).toBe(60);
    expect(written()[0]).toEqual({ line: 'x'.repeat(1_024), isCut: true });
    clock.advance(60);
    await one.ask(question());
    await expect.poll(() => written().length, patience).toBe(120);
    expect(written()[60]).toMatchObject({ dropped: 40 });
  });

  test('ends with the relay, also if it ignores the end of its input', async () => {
    const one = await start(
      "process.stdin.on('end', () => setInterval(() => {}, 1e6)); allow(id);",
    );
    await one.ask(question());
    const pid = one.pid as number;
    const ended = one[Symbol.asyncDispose]();
    await vi.waitFor(() => {
      clock.advance(2);
      expect(isRunning(pid)).toBe(false);
    }, patience);
    await ended;
    clock.advance(100);
    expect(one.pid).toBe(undefined);
  });

  test('ends with all it started; what left its group delays no restart and no end', async () => {
    const pipes = () => process.getActiveResourcesInfo().filter((one) => one === 'PipeWrap').length;
    const before = pipes();
    const one = await start(`
      const run = (detached) => {
        const options = { detached, stdio: 'inherit' };
        const child = require('node:child_process').spawn('sleep', ['1000'], options);
        child.unref();
        return child.pid;
      };
      if (question.account === 'bad') say('no answer');
      else { console.error(JSON.stringify([run(false), run(true)])); allow(id); }
    `);
    const outside: number[] = [];
    /** Lets the program start a process in its group, which is returned, and one in another. */
    const startTwo = async () => {
      lines = [];
      expect(await one.ask(question())).toBe(true);
      await expect.poll(() => lines.some(({ line }) => line !== undefined), patience).toBe(true);
      const [inside, other] = JSON.parse(lines.find(({ line }) => line)?.line as string);
      outside.push(other);
      return inside as number;
    };
    try {
      const first = await startTwo();
      const { pid } = one;
      expect(await one.ask(question('bad'))).toBe(undefined);
      await expect.poll(() => isRunning(first), patience).toBe(false);
      await expect.poll(pipes, patience).toBe(before);
      clock.advance(1);
      await restarted(pid);
      const second = await startTwo();
      await one[Symbol.asyncDispose]();
      await expect.poll(() => isRunning(second), patience).toBe(false);
      await expect.poll(pipes, patience).toBe(before);
      expect(outside.map(isRunning)).toEqual([true, true]);
    } finally {
      for (const other of outside) process.kill(other, 'SIGKILL');
    }
  });

  test('that cannot be run, or that every user can replace, stops the start with a sentence', async () => {
    using folder = temporaryFolder();
    const path = join(folder.path, 'program');
    const start = async () => {
      await using open = new AsyncDisposableStack();
      const policy = { command: [path], onFailure: 'refuse' as const };
      await openPolicy({ policy }, { ...parts(), parts: open });
    };
    await expect(start()).rejects.toThrow(
      `policy.command: ${path}: there is no such program: correct the path`,
    );
    writeFileSync(path, '#!/bin/sh\ncat > /dev/null\n', { mode: 0o600 });
    await expect(start()).rejects.toThrow('make it executable');
    chmodSync(path, 0o757);
    await expect(start()).rejects.toThrow(`${path}: every user of this machine can change it`);
    chmodSync(path, 0o755);
    chmodSync(folder.path, 0o777);
    await expect(start()).rejects.toThrow(`${folder.path}: every user of this machine`);
    chmodSync(folder.path, 0o700);
    await start();
    // Executable, but no program: it is not started again.
    writeFileSync(path, '#!/nowhere/interpreter\n');
    lines.length = 0;
    await expect(start()).rejects.toThrow('ENOENT');
    clock.advance(60);
    expect(lines.filter(({ seconds }) => seconds !== undefined)).toHaveLength(1);
  });
});
