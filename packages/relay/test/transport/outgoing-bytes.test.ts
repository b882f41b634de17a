import { nextTick } from 'node:process';
import { Duplex } from 'node:stream';
import { expect, test, vi } from 'vitest';
import type { WebSocket } from 'ws';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import { OutgoingBytes } from '../../src/transport/outgoing-bytes.ts';
import { ManualClock } from '../support/clock.ts';

/** 02 §18: what waits for a peer that takes nothing. */

function outgoing(limits = {}) {
  const clock = new ManualClock();
  const context = { clock, limits: { ...defaultLimits, ...limits } };
  const written: (() => void)[] = [];
  const pongs: { data: string; memory: number; written: () => void }[] = [];
  const writes: string[][] = [];
  const stream = new Duplex({
    writev(chunks, done) {
      writes.push(chunks.map(({ chunk }) => String(chunk)));
      done();
    },
  });
  const socket = {
    OPEN: 1,
    readyState: 1,
    send: (message: Buffer, _options: object, done: () => void) => {
      written.push(done);
      stream.write(message);
    },
    pong: (data: Uint8Array, _mask: boolean, done: () => void) =>
      pongs.push({
        data: Buffer.from(data).toString(),
        memory: data.buffer.byteLength,
        written: done,
      }),
  } as unknown as WebSocket;
  const [tooSlow, taken] = [vi.fn(), vi.fn()];
  const bytes = new ByteAccounts(context);
  const owner = { kind: 'address', id: 'a' } as const;
  const sender = new OutgoingBytes({ context, bytes, owner, socket, stream, taken, tooSlow });
  return { sender, bytes, writes, written, pongs, taken, tooSlow, clock };
}

test('small answers count as much as the memory they take', () => {
  const { sender, bytes, written, tooSlow } = outgoing({ sendBufferBytes: 1_048_576 });
  for (let count = 0; count < 500; count += 1) sender.send('x');
  expect(tooSlow).not.toHaveBeenCalled();
  for (let count = 0; count < 50; count += 1) sender.send('x');
  expect(tooSlow).toHaveBeenCalled();
  for (const done of written) done();
  expect(bytes.waiting.total).toBe(0);
});

test('what promises of one moment send leaves in one write, and nothing waits longer', async () => {
  const { sender, writes } = outgoing();
  const sent = ['a', 'b', 'c'];
  const durable = Promise.withResolvers<void>();
  const answers = sent.map(async (text) => {
    await durable.promise;
    sender.send(text);
  });
  durable.resolve();
  await Promise.all(answers);
  expect(writes).toEqual([]);
  await new Promise((go) => nextTick(go));
  expect(writes).toEqual([sent]);
  sender.send('d');
  await new Promise((go) => nextTick(go));
  expect(writes).toEqual([sent, ['d']]);
});

test('what is added before the write leaves with what was sent, once', async () => {
  const { sender, writes } = outgoing();
  sender.send('answer');
  sender.beforeWrite(() => sender.send('hint'));
  await new Promise((go) => nextTick(go));
  expect(writes).toEqual([['answer', 'hint']]);
  sender.beforeWrite(() => sender.send('later hint'));
  expect(writes).toHaveLength(1);
  await new Promise((go) => nextTick(go));
  expect(writes).toEqual([['answer', 'hint'], ['later hint']]);
});

test('one pong waits at most, and it answers the newest ping', () => {
  const { sender, pongs } = outgoing();
  for (const data of ['1', '2', '3']) sender.pong(Buffer.from(data));
  expect(pongs.map(({ data }) => data)).toEqual(['1']);
  pongs[0]?.written();
  expect(pongs.map(({ data }) => data)).toEqual(['1', '3']);
  pongs[1]?.written();
  expect(pongs.length).toBe(2);
});

test('a pong that waits does not keep what its ping came with in memory', () => {
  const { sender, pongs } = outgoing();
  const chunk = Buffer.alloc(65_536, 'x');
  for (let count = 0; count < 2; count += 1) sender.pong(chunk.subarray(count, count + 125));
  pongs[0]?.written();
  expect(pongs.map(({ memory }) => memory)).toEqual([125, 125]);
});

test('a peer that takes an answer now and then is not ended; one that stops is', async () => {
  const { sender, written, tooSlow, clock } = outgoing({ sendTimeout: 60_000 });
  const turn = () => new Promise((go) => setImmediate(go));
  for (let count = 0; count < 4; count += 1) sender.send('x');
  for (let count = 0; count < 3; count += 1) {
    clock.advance(50);
    written[count]?.();
    await turn();
  }
  clock.advance(59);
  await turn();
  expect(tooSlow).not.toHaveBeenCalled();
  // A small answer counts 2 KiB, for which a peer has half a second more.
  clock.advance(1);
  await turn();
  expect(tooSlow).not.toHaveBeenCalled();
  clock.advance(1);
  await turn();
  expect(tooSlow).toHaveBeenCalledOnce();
});

test('a peer has more time for a large answer: a second for each 4,000 bytes', async () => {
  const { sender, tooSlow, clock } = outgoing({ sendTimeout: 60_000 });
  const turn = () => new Promise((go) => setImmediate(go));
  sender.send('x'.repeat(1_000_000));
  clock.advance(310);
  await turn();
  expect(tooSlow).not.toHaveBeenCalled();
  clock.advance(1);
  await turn();
  expect(tooSlow).toHaveBeenCalledOnce();
});

test('what is asked for before a write by such a work is done before that write too', async () => {
  const { sender, writes } = outgoing();
  sender.beforeWrite(() => {
    sender.send('first');
    sender.beforeWrite(() => sender.send('second'));
  });
  await new Promise((go) => setImmediate(go));
  expect(writes).toEqual([['first', 'second']]);
});
