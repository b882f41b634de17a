import { PeerError } from '@posthouse/peer';
import { utf8 } from '@posthouse/protocol';
import { expect, test, vi } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { LongWork } from '../../src/dispatch/long-work.ts';
import { RelayTexts } from '../../src/dispatch/relay-texts.ts';
import { Slices, type Steps } from '../../src/dispatch/slices.ts';
import { finishStream } from '../../src/federation/finish-stream.ts';
import { RpcClient } from '../../src/federation/rpc/client.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { network } from '../support/modules.ts';
import { patience } from '../support/patience.ts';

const relayId = `0x${'11'.repeat(20)}`;

test('07 §C2: calls to one relay that are under way or wait are limited; one more is not sent', async () => {
  const stopping = new AbortController();
  const limits = { ...defaultLimits, relayCalls: 3, relayCallsFirst: 1, relayCallsAtOnce: 1 };
  const log = { debug: () => {} };
  const client = new RpcClient(
    { clock: new ManualClock(), limits, log, metrics: new Metrics(), network } as never,
    {
      connections: { openStream: () => new Promise(() => {}) },
      health: { pausedUntil: () => undefined, failed: () => {} },
      stopping: stopping.signal,
    } as never,
  );
  const call = (to: string) => client.notify(to, 'device.status.changed', {});
  const waiting = Array.from({ length: 3 }, () => call(relayId));
  expect(await call(relayId)).toBe(false);
  // Another relay has calls of its own.
  const other = call(`0x${'22'.repeat(20)}`);
  const all = [...waiting, other].map(async (sent) => void (await sent));
  const pending = Symbol('pending');
  expect(await Promise.race([...all, Promise.resolve(pending)])).toBe(pending);
});

test('07 §C2: the 30 seconds of a relay begin with a place; waiting for one is no failure', async () => {
  const clock = new ManualClock();
  const limits = { ...defaultLimits, relayCallsFirst: 1, relayCallsAtOnce: 1 };
  const opened: AbortSignal[] = [];
  const openStream = (_relay: string, _protocol: string, signal: AbortSignal) => {
    opened.push(signal);
    return new Promise((_, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    );
  };
  const failed = vi.fn();
  const stopping = new AbortController().signal;
  const log = { debug: () => {} };
  const client = new RpcClient(
    { clock, limits, log, metrics: new Metrics(), network } as never,
    {
      connections: { openStream },
      health: { pausedUntil: () => undefined, failed },
      stopping,
    } as never,
  );
  const call = () => client.call(relayId, 'profile.resolve', {});
  const first = call();
  await vi.waitFor(() => expect(opened).toHaveLength(1), patience);
  clock.advance(20);
  const second = call();
  const late = call();
  clock.advance(10);
  expect(await first).toEqual({ kind: 'unreachable' });
  await vi.waitFor(() => expect(opened).toHaveLength(2), patience);
  expect(failed).toHaveBeenCalledTimes(1);
  // The last one has waited for 30 seconds, the second has had 20.
  clock.advance(20);
  expect(await late).toEqual({ kind: 'unreachable' });
  expect(opened[1]?.aborted).toBe(false);
  expect(failed).toHaveBeenCalledTimes(1);
  clock.advance(10);
  expect(await second).toEqual({ kind: 'unreachable' });
  expect(failed).toHaveBeenCalledTimes(2);
  expect(opened).toHaveLength(2);
});

/** Counts the steps of works. */
class CountingSlices extends Slices {
  count = 0;

  override run<T>(owner: string, steps: Steps<T>): Promise<T> {
    return super.run(owner, this.#counting(steps));
  }

  *#counting<T>(steps: Steps<T>): Steps<T> {
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
      this.count += 1;
      yield;
    }
  }
}

test('07 §C2: a large answer is read in steps; one with too many values is not read', async () => {
  const limits = { ...defaultLimits, peerLinger: 1 };
  const slices = new CountingSlices();
  const faults: string[] = [];
  const answers = [
    { texts: Array(6_000).fill('x'.repeat(50)) },
    { lists: Array(100_000).fill([1]) },
  ].map((result, index) => utf8(JSON.stringify({ jsonrpc: '2.0', id: index + 1, result })));
  const openStream = async () => {
    const frames = answers.splice(0, 1);
    const stream = {
      writeFrame: async () => {},
      readFrame: async () => frames.shift(),
      end: () => {},
      reset: () => {},
    };
    return { stream, connection: { isOpen: true, peer: { relayId } } };
  };
  const client = new RpcClient(
    {
      clock: new ManualClock(),
      limits,
      log: { debug: () => {} },
      metrics: new Metrics(),
      network,
    } as never,
    {
      connections: { openStream },
      health: { pausedUntil: () => undefined, succeeded: () => {} },
      faults: { add: (_: string, fault: string) => faults.push(fault) },
      stopping: new AbortController().signal,
      texts: new RelayTexts({
        limits,
        turns: new CallTurns(new ManualClock()),
        longWork: new LongWork(slices),
      }),
    } as never,
  );
  expect(await client.call(relayId, 'profile.resolve', {})).toMatchObject({ kind: 'result' });
  expect(slices.count).toBeGreaterThan(6_000 / 400);
  expect(faults).toEqual([]);
  const invalid = await client.call(relayId, 'profile.resolve', {});
  expect(invalid).toEqual({ kind: 'invalid', why: 'too many values in one text' });
  expect(faults).toEqual(['response']);
});

test('07 §C2: a call is sent again at once, then with pauses that double', async () => {
  const clock = new ManualClock();
  let sent = 0;
  const writeFrame = async () => {
    sent += 1;
  };
  const use = { writeFrame, end: () => {}, reset: () => {} };
  // Calls that are under way, so that the reset one is never alone.
  const held = Array.from({ length: 8 }, () => Promise.withResolvers<never>());
  const streams: object[] = held.map(({ promise }) => ({ ...use, readFrame: () => promise }));
  const resetOne = { ...use, readFrame: () => Promise.reject(new PeerError('reset', 'reset')) };
  const openStream = async () => ({
    stream: streams.pop() ?? resetOne,
    connection: { isOpen: true, peer: { relayId } },
  });
  const log = { debug: () => {} };
  const client = new RpcClient(
    { clock, limits: defaultLimits, log, metrics: new Metrics(), network } as never,
    {
      connections: { openStream, openInstead: async () => undefined },
      health: { pausedUntil: () => undefined, failed: () => {} },
      stopping: new AbortController().signal,
    } as never,
  );
  const under = held.map(() => client.call(relayId, 'profile.resolve', {}));
  await vi.waitFor(() => expect(sent).toBe(8), patience);
  const after = vi.spyOn(clock, 'after');
  const pauses = () => after.mock.calls.map(([time]) => time).filter((time) => time < 30_000);
  /** Ends calls until the window has room, and the call is sent again. */
  const untilSent = async (count: number) => {
    while (sent < count) {
      held.pop()?.reject(new Error('lost'));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const call = client.call(relayId, 'profile.resolve', {});
  await vi.waitFor(() => expect(sent).toBe(9), patience);
  await untilSent(10);
  await vi.waitFor(() => expect(pauses()).toEqual([100]), patience);
  clock.advance(0.1);
  await untilSent(11);
  await vi.waitFor(() => expect(pauses()).toEqual([100, 200]), patience);
  for (const { reject } of held) reject(new Error('lost'));
  await Promise.all(under);
  clock.advance(0.2);
  expect(await call).toEqual({ kind: 'unknown' });
});

test('07 §C2: a stream whose peer does not end its side is reset after ten seconds', async () => {
  const clock = new ManualClock();
  const read = Promise.withResolvers<never>();
  const reset = vi.fn(() => read.reject(new Error('reset')));
  const stream = { end: vi.fn(), reset, readFrame: () => read.promise };
  const finished = finishStream(stream as never, clock, defaultLimits.peerLinger);
  clock.advance(9);
  expect(reset).not.toHaveBeenCalled();
  clock.advance(1);
  await finished;
  expect(reset).toHaveBeenCalled();
});
