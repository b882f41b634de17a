import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { beforeEach, expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import { GatheredChunks } from '../../src/transport/gathered-chunks.ts';
import { streamBody } from '../../src/transport/streamed-body.ts';
import { ManualClock } from '../support/clock.ts';

/** Decision 0032: a body that ends early is the peer's fault, and no failure of the disk. */

const clock = new ManualClock();
const context = { clock, limits: defaultLimits };
const owner = { kind: 'account', id: 'ann' } as const;
let bytes: ByteAccounts;
let body: PassThrough;
let written: string[];
beforeEach(() => {
  bytes = new ByteAccounts(context);
  body = new PassThrough();
  body.on('error', () => {});
  written = [];
});

/** Reads ten bytes; resolves to `ok` or the code of the error. */
async function read(wait = () => Promise.resolve()): Promise<string> {
  const request = Object.assign(body, { complete: false }) as unknown as IncomingMessage;
  const response = new EventEmitter() as ServerResponse;
  const parts = { context, bytes, owner, request, response };
  try {
    await streamBody(parts, 10, async (piece) => {
      written.push(String(piece));
      await wait();
    });
    return 'ok';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

const turn = () => new Promise((go) => setImmediate(go));

test('the pieces are passed on in order, and nothing stays held', async () => {
  const ended = read();
  body.write('01234');
  await turn();
  body.write('56789');
  expect(await ended).toBe('ok');
  expect(written).toEqual(['01234', '56789']);
  expect(bytes.received.total).toBe(0);
});

test('a request that was destroyed before its body is read is cut off', async () => {
  body.destroy();
  await turn();
  expect(await read()).toBe('bad_request');
  expect(bytes.received.total).toBe(0);
});

test('a request that fails while its body is read is cut off', async () => {
  const ended = read();
  body.write('01234');
  await turn();
  body.destroy(new Error('aborted'));
  expect(await ended).toBe('bad_request');
  expect(written).toEqual(['01234']);
});

test('02 §18: what arrives while a piece is written counts until it is written', async () => {
  new GatheredChunks(body);
  const { promise, resolve } = Promise.withResolvers<void>();
  const ended = read(() => promise);
  await turn();
  body.push(Buffer.from('01234'));
  await turn();
  for (const text of ['5', '67', '89']) body.push(Buffer.from(text));
  expect(written).toEqual(['01234']);
  expect(bytes.received.total).toBe(10);
  await turn();
  resolve();
  expect(await ended).toBe('ok');
  expect(written).toEqual(['01234', '56789']);
  expect(bytes.received.total).toBe(0);
});

test('02 §18: after a refusal, the rest of the body goes to another reader', async () => {
  const ended = read();
  body.write('01234');
  await turn();
  clock.advance(31);
  expect(await ended).toBe('temporarily_unavailable');
  let rest = '';
  body.on('data', (piece) => {
    rest += piece;
  });
  body.resume();
  body.write('5');
  body.write('6');
  await turn();
  expect(rest).toBe('56');
});
