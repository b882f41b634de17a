import { expect, test, vi } from 'vitest';
import { finishStream } from '../../src/federation/finish-stream.ts';
import { RpcClient } from '../../src/federation/rpc/client.ts';
import { defaultLimits } from '../../src/limits.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { ManualClock } from '../support/clock.ts';
import { network } from '../support/modules.ts';

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
