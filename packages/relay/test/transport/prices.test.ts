/** What calls without a session cost, and whom. */
import { expect, test } from 'vitest';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

/** Logging in needs three calls: registration, challenge, proof. */
const burst = 12;
const relay = servedRelay({
  limits: { addressRate: 1, addressBurst: burst, accountRate: 1, accountBurst: 5 },
});
const ann = relay.person('ann');

/** Makes calls until one is refused; returns how many were answered. */
async function untilRefused(call: () => Promise<string>): Promise<number> {
  for (let answered = 0; ; answered += 1) {
    if ((await call()) === 'rate_limited') return answered;
  }
}

test('03 §10: account.route.resolve costs an address a quarter of another call', async () => {
  relay.clock.advance(burst);
  const http = relay.http();
  const resolve = async () =>
    codeOf(await http.call('account.route.resolve', { account: ann.account }));
  expect(await untilRefused(resolve)).toBe(4 * burst);
  relay.clock.advance(1);
  expect(await untilRefused(resolve)).toBe(4);
});

test('02 §5: a call that carries a session is charged to its account', async () => {
  const socket = await relay.socket();
  await relay.bindDevice(socket, ann.device());
  const { token } = await relay.logInDevice(ann);
  const http = relay.http();
  const info = (options = {}) => http.call('relay.info', {}, options).then(codeOf);
  await http.call('message.timeline.sync', {}, { token });
  relay.clock.advance(3);
  // Neighbours with the same address.
  await untilRefused(() => info());
  const onSocket = async () => {
    const { error } = await socket.call('relay.info');
    return error === undefined ? 'ok' : 'rate_limited';
  };
  expect(await untilRefused(onSocket)).toBe(5);
  expect(await info({ token })).toBe('rate_limited');
  relay.clock.advance(1);
  expect([await info(), await info({ token })]).toEqual(['ok', 'ok']);
  expect([await info(), await info({ token })]).toEqual(['rate_limited', 'rate_limited']);
});

test('02 §18: a session seen for the first time is found though a neighbour used up the address', async () => {
  const { token } = await relay.logInDevice(ann);
  const http = relay.http();
  const sync = (text: string) =>
    http.call('message.timeline.sync', {}, { token: text }).then(codeOf);
  relay.clock.advance(3);
  await untilRefused(() => http.call('relay.info', {}).then(codeOf));
  expect([await sync(token), await sync('guessed'), await sync(token)]).toEqual([
    ...['ok', 'rate_limited', 'ok'],
  ]);
});
