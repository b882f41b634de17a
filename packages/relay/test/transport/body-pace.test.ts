/** 02 §18: how bodies are charged, and held back with all that their owner sends. */
import { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { beforeEach, expect, test, vi } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { BodyPace } from '../../src/transport/body-pace.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import { ManualClock } from '../support/clock.ts';

const owner = { kind: 'address', id: '192.0.2.1' } as const;
const limits = { ...defaultLimits, addressBytes: 1_000, addressBytesBurst: 100_000 };
const clock = new ManualClock();
let bytes: ByteAccounts;
beforeEach(() => {
  bytes = new ByteAccounts({ clock, limits });
});
const turn = () => new Promise<void>((go) => setImmediate(go));

function begin(headers: Record<string, string> = {}) {
  const request = Object.assign(new EventEmitter(), { headers, pause: vi.fn(), resume: vi.fn() });
  const hold = bytes.received.open(owner, () => {});
  const pace = new BodyPace({
    ...{ context: { limits }, bytes, owner, hold, refused: () => {} },
    request: request as unknown as IncomingMessage,
  });
  return { request, pace };
}

test('the first chunk costs its bytes, every other one 32 at least', () => {
  const { pace } = begin();
  for (let count = 0; count < 1_001; count += 1) pace.receive(Buffer.alloc(1));
  pace.receive(Buffer.alloc(33));
  expect(pace.received).toBe(1_034);
  const left = 100_000 - 1 - 1_000 * 32 - 33;
  expect(bytes.charge(owner, left - 1)).toBe(0);
  expect(bytes.charge(owner, 1)).toBeGreaterThan(0);
});

test('when one body puts its owner into debt, the others are held back with it, until the owner owes nothing', async () => {
  const [one, other, complete, ended] = [
    begin(),
    begin(),
    begin({ 'content-length': '5' }),
    begin(),
  ];
  complete.pace.receive(Buffer.alloc(5));
  ended.request.emit('close');
  await turn();
  one.pace.receive(Buffer.alloc(110_000));
  for (const { request } of [one, other]) expect(request.pause).toHaveBeenCalledOnce();
  for (const { request } of [complete, ended]) expect(request.pause).not.toHaveBeenCalled();
  clock.advance(9);
  await turn();
  expect(other.request.resume).not.toHaveBeenCalled();
  clock.advance(2);
  await turn();
  await turn();
  for (const { request } of [one, other]) expect(request.resume).toHaveBeenCalledOnce();
  await turn();
  one.pace.receive(Buffer.alloc(110_000));
  expect(other.request.pause).toHaveBeenCalledTimes(2);
});

test('a body that ended meanwhile goes on no more', async () => {
  const { request, pace } = begin();
  await turn();
  bytes.charge(owner, 110_000);
  expect(request.pause).toHaveBeenCalledOnce();
  pace[Symbol.dispose]();
  clock.advance(60);
  await turn();
  await turn();
  expect(request.resume).not.toHaveBeenCalled();
  bytes.charge(owner, 300_000);
  expect(request.pause).toHaveBeenCalledOnce();
});

test('a body that waits for its turn and ended meanwhile goes on no more', async () => {
  const { request, pace } = begin();
  bytes = new ByteAccounts({ clock, limits: defaultLimits });
  const rich = begin();
  rich.pace.receive(Buffer.alloc(300_000));
  expect(rich.request.pause).toHaveBeenCalledOnce();
  rich.pace[Symbol.dispose]();
  await turn();
  await turn();
  expect(rich.request.resume).not.toHaveBeenCalled();
  pace[Symbol.dispose]();
  expect(request.pause).not.toHaveBeenCalled();
});
