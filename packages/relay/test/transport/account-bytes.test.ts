import { expect, test } from 'vitest';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

const relay = servedRelay({ limits: { accountBytes: 100_000, accountBytesBurst: 100_000 } });
const ann = relay.person('ann');
const ben = relay.person('ben');

test('02 §18: above its bytes an account waits on every connection, and its neighbours do not', async () => {
  const tokens = [];
  for (const person of [ann, ben]) tokens.push((await relay.logInDevice(person)).token);
  const [token = '', neighbour = ''] = tokens;
  const post = (by: string, length: number) =>
    relay.http().send({
      ...{ verb: 'POST', path: '/message/send', body: 'x'.repeat(length) },
      headers: { 'content-type': 'application/json', 'x-svc-session': by },
    });
  const sync = (by: string) => relay.http().call('message.timeline.sync', {}, { token: by });
  expect(codeOf(await sync(token))).toBe('ok');
  expect(codeOf(await sync(neighbour))).toBe('ok');
  // What the allowance has is read at once, although it is no JSON.
  expect(codeOf(await post(token, 90_000))).toBe('bad_request');
  const late = post(token, 290_000);
  let refused = await post(token, 10);
  while (codeOf(refused) !== 'rate_limited') refused = await post(token, 10);
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  expect(codeOf(await post(neighbour, 10))).toBe('bad_request');
  let isAnswered = false;
  void late.then(() => {
    isAnswered = true;
  });
  while (!isAnswered) {
    relay.clock.advance(1);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((go) => setImmediate(go));
  }
  relay.clock.advance(5);
  expect(codeOf(await post(token, 10))).toBe('bad_request');
});
