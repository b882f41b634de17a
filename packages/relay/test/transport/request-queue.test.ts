import { expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import type { ByteHold } from '../../src/transport/byte-ledger.ts';
import { RequestQueue } from '../../src/transport/request-queue.ts';

/** 02 §18: requests of a WebSocket start while there is room for their answers. */

function queue(sendBufferBytes: number) {
  const limits = { ...defaultLimits, sendBufferBytes };
  const peer = { waitingBytes: 0 };
  const requests = new RequestQueue({
    context: { limits },
    waitingBytes: () => peer.waitingBytes,
  });
  const started: ((() => void) | undefined)[] = [];
  const dropped: string[] = [];
  const add = (method: string, count: number) => {
    for (let number = 0; number < count; number += 1) {
      const hold = { [Symbol.dispose]: () => void dropped.push(method) } as unknown as ByteHold;
      const start = () => new Promise<void>((resolve) => started.push(resolve));
      requests.add({ method, hold, start });
    }
  };
  /** Ends the oldest request under way, with an answer of so many bytes. */
  const answer = async (bytes: number) => {
    peer.waitingBytes += bytes;
    started.shift()?.();
    await new Promise((go) => setImmediate(go));
  };
  return { requests, peer, started, dropped, add, answer };
}

const page = 900_000;

test('small requests start at once, pages while the half of the buffer has room for them', () => {
  const { started, add } = queue(4_194_304);
  add('message.send', 32);
  expect(started.length).toBe(32);
  add('message.timeline.sync', 32);
  expect(started.length).toBe(34);
  // In their order: later ones do not overtake.
  add('message.send', 1);
  expect(started.length).toBe(34);
});

test('answers that are no page count what each method answers at the most', () => {
  const started = (method: string) => {
    const made = queue(4_194_304);
    made.add(method, 64);
    return made.started.length;
  };
  // A device state has up to 128 KiB, an invitation what a write may have.
  expect(started('device.state.resolve')).toBe(15);
  expect(started('group.invite.resolve')).toBe(1);
  for (const method of ['profile.resolve', 'account.route.resolve', 'group.subscribe', 'unknown']) {
    expect(started(method)).toBe(64);
  }
});

test('the next page starts when the peer has taken one, or the answer is small', async () => {
  const { requests, peer, started, add, answer } = queue(4_194_304);
  add('channel.read', 8);
  expect(started.length).toBe(2);
  await answer(page);
  await answer(page);
  expect(started.length).toBe(0);
  peer.waitingBytes -= page;
  requests.startNext();
  expect(started.length).toBe(1);
  await answer(100);
  expect(started.length).toBe(1);
});

test('one request is always under way, however small the buffer is', async () => {
  const { requests, peer, started, dropped, add, answer } = queue(1_048_576);
  add('channel.read', 4);
  expect(started.length).toBe(1);
  await answer(page);
  expect(started.length).toBe(0);
  peer.waitingBytes = 0;
  requests.startNext();
  expect(started.length).toBe(1);
  requests[Symbol.dispose]();
  await answer(0);
  expect([started.length, dropped.length]).toEqual([0, 2]);
});
