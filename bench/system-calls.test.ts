/**
 * What a relay in service asks of the system for a message: in which order it writes, flushes and answers
 * (decision 0025), and how often. Counts and order; times are never asserted.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadTarget, type PlainSocket, TestContext } from '@posthouse/conformance';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRelay } from './measured-process.ts';
import { Population } from './population.ts';
import { Strace, withoutStrace } from './strace.ts';

const messages = 40;
const flushes = ['fsync', 'fdatasync'];
const writes = ['pwrite64', 'pwritev', 'pwritev2'];
const sends = ['write', 'writev', 'sendto', 'sendmsg'];

/** A call of the system; its places count lines of the trace. */
interface SystemCall {
  readonly thread: number;
  readonly name: string;
  /** Path of its file; `socket:[…]` for a connection. */
  readonly file: string;
  readonly begins: number;
  readonly ends: number;
  readonly result: number;
}

const wholeCall = /^(\d+) +(\w+)\(\d+<(.*?)>.*= (-?\d+)/;
const beginOfCall = /^(\d+) +(\w+)\(\d+<(.*?)>.*<unfinished/;
const endOfCall = /^(\d+) +<\.\.\. \w+ resumed>.*= (-?\d+)/;

/** Reads the calls of a trace, in the order of their ends. */
function callsOf(trace: string): SystemCall[] {
  const calls: SystemCall[] = [];
  const begun = new Map<number, Pick<SystemCall, 'name' | 'file' | 'begins'>>();
  for (const [line, text] of trace.split('\n').entries()) {
    const [, thread, name = '', file = '', result] =
      wholeCall.exec(text) ?? beginOfCall.exec(text) ?? [];
    const [, again, late] = endOfCall.exec(text) ?? [];
    const before = begun.get(Number(again));
    if (before !== undefined) {
      begun.delete(Number(again));
      calls.push({ ...before, thread: Number(again), ends: line, result: Number(late) });
    } else if (thread !== undefined && result === undefined) {
      begun.set(Number(thread), { name, file, begins: line });
    } else if (thread !== undefined) {
      calls.push({
        ...{ thread: Number(thread), name, file, begins: line, ends: line },
        result: Number(result),
      });
    }
  }
  return calls;
}

describe.skipIf(withoutStrace !== undefined)(
  `messages that come one after another (${withoutStrace ?? 'traced'})`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    let eventLoop: number;
    let calls: SystemCall[];

    beforeAll(async () => {
      await using parts = new AsyncDisposableStack();
      const relay = await startRelay(parts, join(folder, 'relay'), {
        name: 'relay',
        isProbed: false,
      });
      const { ca, sockets, relay: address } = relay.target;
      const { base = '', registry = '' } = address ?? {};
      const target = await loadTarget({ relay: base, registry, ca });
      const context = parts.use(await TestContext.open(target, 'wss'));
      const population = await Population.make(2);
      const connections = await population.connect(context, sockets, { register: true });
      for (const each of connections) parts.adopt(each, () => each[Symbol.dispose]());
      const [first, ...rest] = population.messages(1, messages + 1)[0] ?? [];
      const [sender, recipient] = connections as [PlainSocket, PlainSocket];
      const exchange = async (frame: unknown) => {
        sender.send(frame as string);
        await sender.receive((text) => text.includes('"result"'));
        await recipient.receive((text) => text.includes('"method"'));
      };
      // From here on accounts, grant and certificate are known.
      await exchange(first);
      eventLoop = relay.processes[0]?.pid as number;
      const strace = await Strace.attach(eventLoop, {
        calls: ['pread64', ...writes, ...flushes, ...sends],
        options: ['-y', '-s', '0'],
        file: join(folder, 'trace'),
      });
      for (const frame of rest) await exchange(frame);
      calls = callsOf(await strace.detach());
    }, 60_000);

    const ofLog = (names: readonly string[]) =>
      calls.filter(({ name, file }) => names.includes(name) && file.endsWith('-wal'));
    const answers = () =>
      calls.filter(({ name, file }) => sends.includes(name) && file.startsWith('socket:'));

    test('0025: an answer leaves when a flush that began after all writes of the log has succeeded', () => {
      expect(answers().length).toBeGreaterThanOrEqual(messages);
      const written = ofLog(writes);
      const flushed = ofLog(flushes).filter(({ result }) => result === 0);
      for (const { begins } of answers()) {
        const last = Math.max(
          ...written.filter((one) => one.begins < begins).map((one) => one.ends),
        );
        const isFlushed = flushed.some((one) => one.begins > last && one.ends < begins);
        expect({ line: begins, isFlushed }).toEqual({ line: begins, isFlushed: true });
      }
    });

    test('0025: the event loop makes no flush, and a message has one', () => {
      const all = ofLog(flushes);
      expect(all.filter(({ thread }) => thread === eventLoop)).toEqual([]);
      // The thread that copies the log makes one for each copy.
      expect(all.length).toBeGreaterThanOrEqual(messages);
      expect(all.length).toBeLessThanOrEqual(messages + 4);
    });

    test('0024, 0025: for a message the event loop reads nothing, or what a snapshot takes', () => {
      const reads: number[] = [];
      let count = 0;
      for (const call of calls) {
        if (call.name === 'pread64' && call.thread === eventLoop) count += 1;
        if (call.name !== 'fdatasync') continue;
        reads.push(count);
        count = 0;
      }
      reads.sort((one, other) => one - other);
      expect(reads.length).toBeGreaterThanOrEqual(messages);
      // Jobs read now and then: from then on a snapshot is taken for each of sixteen commits.
      expect(reads[0]).toBe(0);
      expect(reads[Math.floor(reads.length / 2)]).toBeLessThanOrEqual(2);
    });
  },
);
