/** 02 §18: what clients of a whole relay notice of blocks, and how soon. */
import { expect, test, vi } from 'vitest';
import { storeBlock } from '../../src/blocks/block-store.ts';
import { addressToBlock, blockAccount, unblock } from '../../src/blocks/index.ts';
import { codeOf } from '../support/http.ts';
import { patience } from '../support/patience.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';
import { WebSocketClient } from '../support/websocket.ts';

// The tests come from loopback, which is a proxy here: the header names the client.
const limits = { addressBytes: 1_000, addressBytesBurst: 100_000 };
const relay = servedRelay({ trustedProxies: ['127.0.0.1'], limits });
const ann = relay.person('ann');
const ben = relay.person('ben');

/** Lets two seconds pass: by then every process knows what the operator changed. */
const twoSeconds = () => relay.clock.advance(2);
const blockAddress = (text: string) => {
  const { clock, context } = { clock: relay.clock, context: relay.server.context };
  const block = {
    kind: 'address',
    id: addressToBlock(text, [], []),
    reason: '',
    endsAt: undefined,
  };
  return context.storage.write('blocks', (tx) =>
    storeBlock(tx, block as never, { now: clock.now(), limit: 10 }),
  );
};

test('within two seconds the connections of a blocked account have no session, and it gets none', async () => {
  const socket = await relay.socket();
  await relay.bindDevice(socket, ann.device());
  const { token } = await relay.logInDevice(ann);
  const bens = await relay.socket();
  await relay.bindDevice(bens, ben.device());
  const http = relay.http();
  const read = { after: -1, limit: 10 };
  const overHttp = async () => codeOf(await http.call('message.timeline.sync', read, { token }));
  const code = async (client: WebSocketClient) => {
    const { error } = await client.call('message.timeline.sync', read);
    return error?.code ?? 'ok';
  };
  expect([await overHttp(), await code(socket)]).toEqual(['ok', 'ok']);
  const { context } = relay.server;
  const now = relay.clock.now();
  const { limits } = context;
  const block = { id: ann.account, reason: 'spam', endsAt: undefined };
  await blockAccount(context.storage, block, { now, limits });
  twoSeconds();
  await expect.poll(overHttp).toBe('unauthorized');
  expect([await code(socket), await code(bens)]).toEqual([-32001, 'ok']);
  await expect(relay.logInDevice(ann)).rejects.toThrow('forbidden');
  await unblock(context.storage, { kind: 'account', id: ann.account }, relay.clock.now());
  twoSeconds();
  await expect
    .poll(async () => {
      const again = await relay.logInDevice(ann);
      return codeOf(await http.call('message.timeline.sync', read, again));
    })
    .toBe('ok');
});

test('a blocked address that a trusted proxy names is refused, whatever it forges; its neighbours are not', async () => {
  const http = relay.http();
  const from = async (forwarded: string) => {
    const headers = { 'x-forwarded-for': forwarded };
    const answer = await http.send({ verb: 'GET', path: '/relay/info', headers });
    return answer.status;
  };
  const url = relay.server.wss[0] as string;
  const open = (forwarded: string) =>
    WebSocketClient.open(url, relay.ca, { 'x-forwarded-for': forwarded });
  using before = await open('192.0.2.7');
  using neighbour = await open('192.0.3.7');
  expect(await from('192.0.2.7')).toBe(200);
  await blockAddress('192.0.2.0/24');
  await blockAddress('2001:db8:1:2::9');
  twoSeconds();
  await expect.poll(() => from('192.0.2.7')).toBe(403);
  await before.closed;
  expect((await neighbour.call('relay.info', {})).error).toBeUndefined();
  // What a client wrote itself stands before what the proxy saw.
  expect([
    await from('203.0.113.1, 192.0.2.99'),
    await from('192.0.2.99, 203.0.113.1'),
    await from('2001:db8:1:2:ffff::1'),
    await from('2001:db8:1:3::1'),
    await from('192.0.3.7'),
  ]).toEqual([403, 200, 403, 200, 200]);
  await expect(open('192.0.2.7')).rejects.toThrow('403');
  const page = await http.send({
    ...{ verb: 'GET', path: '//', headers: { 'x-forwarded-for': '192.0.2.7' } },
  });
  expect(page.status).toBe(403);
});

test('02 §18: a blocked address is refused for any path, and never late, whatever it owes', async () => {
  const http = relay.http();
  const headers = { 'x-forwarded-for': '192.0.2.8', 'x-filler': 'x'.repeat(8_000) };
  const ask = (path: string) => http.send({ verb: 'GET', path, headers });
  await blockAddress('192.0.2.0/24');
  twoSeconds();
  await expect.poll(async () => (await ask('/relay/info')).status).toBe(403);
  // More than its bytes allow, and the clock of the relay stands still.
  for (let count = 0; count < 20; count += 1) await ask('/no/method');
  for (const path of ['/no/method', '//%', '//']) {
    const { status, headers: own } = await ask(path);
    expect([status, own.connection]).toEqual([403, 'close']);
  }
});

test('a connection of a blocked address is closed before its handshake; a forged header changes nothing', async () => {
  await using relay = await ServedRelay.start();
  const { clock } = relay;
  const { storage } = relay.server.context;
  using before = await relay.socket();
  await storage.write('blocks', (tx) =>
    storeBlock(
      tx,
      { kind: 'address', id: '127.0.0.1', reason: '', endsAt: clock.now() + 60 },
      { now: clock.now(), limit: 10 },
    ),
  );
  clock.advance(2);
  await before.closed;
  const headers = { 'x-forwarded-for': '203.0.113.1' };
  const get = () => relay.http().send({ verb: 'GET', path: '/relay/info', headers });
  await expect(get()).rejects.toMatchObject({ code: 'ECONNRESET' });
  clock.advance(60);
  await vi.waitFor(async () => expect((await get()).status).toBe(200), patience);
});
