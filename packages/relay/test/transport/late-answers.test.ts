/** 02 §18: answers that are given late, to callers that go on although they owe. */
import { EventEmitter } from 'node:events';
import type { Duplex } from 'node:stream';
import { beforeEach, describe, expect, test } from 'vitest';
import { defaultLimits } from '../../src/limits.ts';
import { LateAnswers } from '../../src/transport/late-answers.ts';
import { ManualClock } from '../support/clock.ts';
import { ServedRelay } from '../support/served-relay.ts';

describe('of one owner', () => {
  let clock: ManualClock;
  const owner = { kind: 'address', id: '192.0.2.1' } as const;
  const connect = () => new EventEmitter() as Duplex;
  let late: LateAnswers;
  let ended: boolean[];
  const wait = (by: { kind: 'address' | 'account'; id: string } = owner, connection = connect()) =>
    void late.wait(by, 1_000, connection).then((hadRoom) => ended.push(hadRoom));
  const settled = () => new Promise((go) => setImmediate(go));
  beforeEach(() => {
    clock = new ManualClock();
    late = new LateAnswers({ clock, limits: { ...defaultLimits, lateAnswers: 2 } });
    ended = [];
  });

  test('as many as the limit wait; one more does not, and has room when another one is given', async () => {
    wait();
    wait();
    await settled();
    expect(ended).toEqual([]);
    wait();
    await settled();
    expect(ended).toEqual([false]);
    wait({ ...owner, id: '192.0.2.2' });
    wait({ kind: 'account', id: owner.id });
    await settled();
    expect(ended).toEqual([false]);
    clock.advance(1);
    await settled();
    expect(ended).toEqual([false, true, true, true, true]);
    wait();
    await settled();
    expect(ended).toHaveLength(5);
  });

  test('one whose connection ends waits no longer, and leaves nothing at one that goes on', async () => {
    const [first, second] = [connect(), connect()];
    wait(owner, first);
    wait(owner, second);
    first.emit('close');
    await settled();
    expect(ended).toEqual([true]);
    wait();
    clock.advance(1);
    await settled();
    expect(ended).toEqual([true, true, true]);
    expect(second.listenerCount('close')).toBe(0);
  });

  test('none waits when the relay stops', async () => {
    wait();
    late[Symbol.dispose]();
    wait();
    await settled();
    expect(ended).toEqual([true, true]);
  });
});

const burst = 20;
const limits = { addressRate: 1, addressBurst: burst, lateAnswers: 1 };

/** Makes requests until the next one is answered late. */
async function overdraw(relay: ServedRelay) {
  const http = relay.http();
  const ask = () => http.send({ verb: 'GET', path: '/no/method' });
  for (let count = 0; count < 1.9 * burst - 1; count += 1) await ask();
  return ask;
}

test('02 §18: above the limit an answer is not late, and its connection ends', async () => {
  await using relay = await ServedRelay.start({ limits });
  const ask = await overdraw(relay);
  const [late, atOnce] = [ask(), ask()];
  const first = await Promise.race([late, atOnce]);
  expect(first.headers.connection).toBe('close');
  relay.clock.advance(1);
  const answers = await Promise.all([late, atOnce]);
  const kept = answers.filter(({ headers }) => headers.connection !== 'close');
  expect(kept).toHaveLength(1);
  for (const { text } of answers) expect(text).toContain('method_not_found');
});

test('a relay that stops gives late answers at once', async () => {
  const relay = await ServedRelay.start({ limits });
  const ask = await overdraw(relay);
  const late = ask();
  // It waits: another one has no room.
  expect((await ask()).headers.connection).toBe('close');
  await relay.server[Symbol.asyncDispose]();
  expect((await late).text).toContain('method_not_found');
  await relay[Symbol.asyncDispose]();
});
