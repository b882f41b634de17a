/** 02 §18: refusals that are answered late, to callers that go on. */
import { ServerResponse } from 'node:http';
import { expect, test, vi } from 'vitest';
import { refusalPause } from '../../src/dispatch/allowances.ts';
import { fullTurns } from '../support/full-turns.ts';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

const burst = 20;
const relay = servedRelay({
  limits: { addressRate: 1, addressBurst: burst, accountRate: 1, accountBurst: burst },
});
const ann = relay.person('ann');

const page = { origin: 'https://page.example', 'access-control-request-method': 'POST' };

test.each([
  ['a path that no method has', { verb: 'GET', path: '/no/method' }, 400],
  ['a path that cannot be decoded', { verb: 'GET', path: '//%' }, 400],
  ['what a page asks first', { verb: 'OPTIONS', path: '/relay/info', headers: page }, 204],
  ['a page without HTML', { verb: 'GET', path: '//' }, 400],
])('02 §18: %s is answered a second later to a caller that goes on', async (_, message, status) => {
  relay.clock.advance(3 * burst);
  const http = relay.http();
  const ask = () => http.send(message).then((answer) => answer.status);
  for (let count = 0; count < 1.9 * burst - 1; count += 1) expect(await ask()).toBe(status);
  const after = vi.spyOn(relay.clock, 'after');
  using _after = { [Symbol.dispose]: () => after.mockRestore() };
  let isAnswered = false;
  const late = ask().finally(() => {
    isAnswered = true;
  });
  while (!after.mock.calls.some(([pause]) => pause === refusalPause)) {
    expect(isAnswered).toBe(false);
    await new Promise((go) => setImmediate(go));
  }
  expect(isAnswered).toBe(false);
  relay.clock.advance(refusalPause / 1_000);
  expect(await late).toBe(status);
});

test("0019: many late refusals of one owner do not delay another one's", async () => {
  relay.clock.advance(3 * burst);
  const { token } = await relay.logInDevice(ann);
  relay.clock.advance(3 * burst);
  const http = relay.http();
  const call = (options = {}) => http.call('relay.info', {}, options);
  // The next refusal of each is late.
  for (const options of [{ token }, {}]) {
    for (let count = 0; count < 1.9 * burst - 1; count += 1) await call(options);
  }
  const after = vi.spyOn(relay.clock, 'after');
  using _after = { [Symbol.dispose]: () => after.mockRestore() };
  const held = () => after.mock.calls.filter(([pause]) => pause === refusalPause).length;
  const late: ReturnType<typeof call>[] = [];
  const add = async (options = {}) => {
    late.push(call(options));
    while (held() < late.length) await new Promise((go) => setImmediate(go));
  };
  for (let count = 0; count < 10; count += 1) await add();
  await add({ token });
  const writeHead = vi.spyOn(ServerResponse.prototype, 'writeHead');
  using _writeHead = { [Symbol.dispose]: () => writeHead.mockRestore() };
  using _full = fullTurns();
  relay.clock.advance(refusalPause / 1_000);
  const codes = (await Promise.all(late)).map(codeOf);
  const isAccount = ({ req }: ServerResponse) => req.headers['x-svc-session'] === token;
  const owners = (writeHead.mock.contexts as ServerResponse[]).map((answer) =>
    isAccount(answer) ? 'account' : 'address',
  );
  expect(codes).toEqual(Array.from({ length: 11 }, () => 'rate_limited'));
  expect(owners).toEqual(['address', 'account', ...Array.from({ length: 9 }, () => 'address')]);
});
