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
