/** What calls cost, and whom, over sockets. */
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { codeOf } from '../support/http.ts';
import { servedRelay } from '../support/served-relay.ts';

const burst = 20;
const relay = servedRelay({
  limits: { addressRate: 1, addressBurst: burst, accountRate: 1, accountBurst: 5 },
});
const ann = relay.person('ann');

/** A length of a body that is above the limit. */
const tooLong = { 'content-type': 'application/json', 'content-length': '10000000' };

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
  // One for the refusal.
  relay.clock.advance(2);
  expect(await untilRefused(resolve)).toBe(4);
});

test('02 §5: a call that carries a session is charged to its account', async () => {
  relay.clock.advance(2 * burst);
  const socket = await relay.socket();
  await relay.bindDevice(socket, ann.device());
  const { token } = await relay.logInDevice(ann);
  const http = relay.http();
  const info = (options = {}) => http.call('relay.info', {}, options).then(codeOf);
  relay.clock.advance(2 * burst);
  // The relay knows the token from now on.
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
  // One for each refusal.
  relay.clock.advance(3);
  expect([await info(), await info({ token })]).toEqual(['ok', 'ok']);
  expect([await info(), await info({ token })]).toEqual(['ok', 'rate_limited']);
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

/** Fills the address's allowance, makes requests, and returns the calls that are left. */
async function leftAfter(work: () => Promise<unknown>): Promise<number> {
  relay.clock.advance(2 * burst);
  await work();
  return await untilRefused(async () => codeOf(await relay.http().call('relay.info', {})));
}

test('02 §18: what is refused before it is a call costs as much as a call', async () => {
  const http = relay.http();
  using socket = await relay.socket();
  const json = { 'content-type': 'application/json' };
  const send = (verb: string, path: string, body = '') =>
    http.send({ verb, path, headers: json, body }).then(codeOf);
  const left = await leftAfter(async () => {
    expect(await send('POST', '/auth/challenge', '{')).toBe('bad_request');
    expect(await send('POST', '/auth/challenge', 'x'.repeat(8_192))).toBe('bad_request');
    expect(await send('GET', '/no/method')).toBe('method_not_found');
    expect(await socket.send('{')).toHaveProperty('error.code', -32700);
    expect(await socket.send('[]')).toHaveProperty('error.code', -32600);
    expect(await socket.send(`{${' '.repeat(4_096)}}`)).toHaveProperty('error.code', -32600);
  });
  expect(left).toBe(burst - 1 - 3 - 1 - 1 - 1 - 2);
});

test('02 §18: the parameters of a GET cost a unit for each 4 KiB, as those of a body do', async () => {
  const http = relay.http();
  const info = (length: number) =>
    http.send({ verb: 'GET', path: `/relay/info?${'x'.repeat(length)}` });
  expect(await leftAfter(() => info(4_000))).toBe(burst - 1);
  expect(await leftAfter(() => info(8_200))).toBe(burst - 3);
  // Refused before its parameters are read.
  const body = 'x'.repeat(10);
  const path = `/auth/challenge?${'x'.repeat(8_200)}`;
  const refused = () => http.send({ verb: 'POST', path, headers: tooLong, body });
  expect(await leftAfter(refused)).toBe(burst - 3);
});

test('02 §18: the documents for programs cost what their bytes cost, and are refused above the rate', async () => {
  relay.clock.advance(2 * burst);
  const http = relay.http();
  const ask = () => http.send({ verb: 'GET', path: '//openapi.json' });
  const { text } = await ask();
  const price = 1 + Math.floor(text.length / 16 / 4_096);
  expect(price).toBeGreaterThan(1);
  relay.clock.advance(2 * burst);
  for (let left = burst; left >= 1; left -= price) expect((await ask()).status).toBe(200);
  expect(codeOf(await ask())).toBe('rate_limited');
});

test('02 §18: a caller that goes on although it owes nearly a burst is not read, or answered late', async () => {
  relay.clock.advance(3 * burst);
  using socket = await relay.socket();
  const refused = [];
  for (let count = 0; count < 1.9 * burst; count += 1) {
    refused.push((await socket.call('relay.info')).error?.code);
  }
  expect(refused).toEqual([
    ...Array.from({ length: burst }, () => undefined),
    ...Array.from({ length: 0.9 * burst }, () => -32030),
  ]);
  let answers = 0;
  const late = Promise.all([
    socket.call('relay.info').then(() => (answers += 1)),
    relay
      .http()
      .call('relay.info', {})
      .then(() => (answers += 1)),
  ]);
  // A ping of another connection is answered: what came before it has arrived.
  using other = await relay.socket();
  for (let turn = 0; turn < 3; turn += 1) {
    const pong = once(other.socket, 'pong');
    other.socket.ping();
    await pong;
  }
  expect(answers).toBe(0);
  relay.clock.advance(1);
  await late;
  relay.clock.advance(3 * burst);
  expect(await socket.call('relay.info')).toHaveProperty('result');
});
