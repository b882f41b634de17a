/** What a page of a timeline reads of the database, by what is stored. Counts; times are never asserted. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadTarget, type PlainSocket, TestContext } from '@posthouse/conformance';
import { expect, onTestFinished, test } from 'vitest';
import { fillTimeline } from './filled-database.ts';
import { startRelay } from './measured-process.ts';
import { Population } from './population.ts';
import { Strace, withoutStrace } from './strace.ts';

const sizes = [1_000, 30_000];
/** Pages more that a page of 50 may read at the larger size: the trees are deeper by one level. */
const allowance = 8;

test.skipIf(withoutStrace !== undefined)(
  `0024: with 30 times as many records, a page of 50 reads hardly more of the database (${withoutStrace ?? 'traced'})`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'posthouse-bench-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const data = join(folder, 'relay');
    const population = await Population.make(2);
    const reads: number[] = [];
    for (const [step, stored] of [0, ...sizes].entries()) {
      if (step > 0) fillTimeline(data, stored);
      await using parts = new AsyncDisposableStack();
      const relay = await startRelay(parts, data, { name: 'relay', isProbed: false });
      const { ca, sockets, relay: address } = relay.target;
      const { base = '', registry = '' } = address ?? {};
      const target = await loadTarget({ relay: base, registry, ca });
      const context = parts.use(await TestContext.open(target, 'wss'));
      const connections = await population.connect(context, sockets, { register: step === 0 });
      for (const each of connections) parts.adopt(each, () => each[Symbol.dispose]());
      const [sender, recipient] = connections as [PlainSocket, PlainSocket];
      const call = async (socket: PlainSocket, frame: unknown) => {
        socket.send(frame as string);
        expect(await socket.receive((text) => text.includes('"id"'))).toContain('"result"');
      };
      // The first account writes to the second one, whose record is copied.
      if (step === 0) await call(sender, population.messages(1, 1)[0]?.[0]);
      else
        reads.push(
          await readsOf(relay.processes[0]?.pid as number, folder, () =>
            call(recipient, pageFrame(stored)),
          ),
        );
    }
    const [small, large] = reads as [number, number];
    expect(small).toBeGreaterThan(10);
    expect(large).toBeLessThanOrEqual(small + allowance);
  },
  180_000,
);

/** A page in the middle of the timeline. */
function pageFrame(stored: number): string {
  const params = { after: Math.floor(stored / 2), limit: 50 };
  return JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'message.timeline.sync', params });
}

/** Counts reads of the database by the event loop, to which SQLite's caches had nothing of it. */
async function readsOf(pid: number, folder: string, call: () => Promise<void>): Promise<number> {
  const file = join(folder, 'trace');
  const calls = ['pread64'];
  const strace = await Strace.attach(pid, { calls, options: ['-y', '-s', '0'], file });
  await call();
  const trace = await strace.detach();
  const isOfLoop = (line: string) => new RegExp(`^${pid} +pread64\\(.*relay\\.sqlite>`).test(line);
  return trace.split('\n').filter(isOfLoop).length;
}
