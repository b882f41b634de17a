import type { Socket } from 'node:net';
import { expect, test, vi } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { servedRelay } from '../support/served-relay.ts';

/** 02 §18: requests of a WebSocket start in their order. */

// Room for the answer of one page.
const relay = servedRelay({ limits: { sendBufferBytes: 1_048_576 } });
const ann = relay.person('ann');

/** Makes the next read take until the next turn of the event loop. */
function slowRead(): void {
  const { storage } = relay.server.context;
  const { read } = storage;
  storage.read = async (work) => {
    storage.read = read;
    const value = await read.call(storage, work);
    await new Promise((resolve) => setImmediate(resolve));
    return value as never;
  };
}

/** Sends a page and then others, which arrive in one piece; returns the IDs as they are answered. */
async function answered(pings: number): Promise<number[]> {
  using client = await relay.socket();
  await relay.bindDevice(client, ann.device());
  const { socket } = client;
  const request = (id: number, method: string) =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params: {} }));
  const ids: number[] = [];
  socket.on('message', (data) => ids.push(JSON.parse(String(data)).id));
  slowRead();
  const stream = (socket as unknown as { readonly _socket: Socket })._socket;
  stream.cork();
  request(100, 'message.timeline.sync');
  request(101, 'relay.info');
  // Turns pass before the others are read.
  for (let count = 0; count < pings; count += 1) socket.ping();
  const others = Array.from({ length: 40 }, (_, index) => 102 + index);
  for (const id of others) request(id, 'relay.info');
  stream.uncork();
  await Promise.all([100, 101, ...others].map((id) => client.answer(id)));
  return ids;
}

test('one that waited for room starts before those that are read later', async () => {
  for (const pings of [80, 85, 90, 95, 100, 105, 110]) {
    const ids = await answered(pings);
    expect(ids).toHaveLength(42);
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
  }
});

test('one that waited for room takes a turn of its own when it starts', async () => {
  using client = await relay.socket();
  await relay.bindDevice(client, ann.device());
  const { socket } = client;
  const stream = (socket as unknown as { readonly _socket: Socket })._socket;
  /** Sends two requests in one piece; returns the turns that the account took for them. */
  const turnsOf = async (first: string, second: string) => {
    const take = vi.spyOn(CallTurns.prototype, 'take');
    stream.cork();
    for (const [id, method] of [first, second].entries()) {
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params: {} }));
    }
    stream.uncork();
    await Promise.all([client.answer(0), client.answer(1)]);
    const owners = take.mock.calls.map(([owner]) => owner);
    take.mockRestore();
    return owners.filter((owner) => owner === `account ${ann.account}`).length;
  };
  // Each is read in a turn, and begins in it.
  expect(await turnsOf('relay.info', 'relay.info')).toBe(2);
  slowRead();
  expect(await turnsOf('message.timeline.sync', 'relay.info')).toBe(3);
});

test('02 §18: a page counts in the turns of its account as the calls that its price is', async () => {
  const session = ann.session();
  const pages = async (limit?: number) => {
    const pageMade = vi.spyOn(CallTurns.prototype, 'pageMade');
    await relay.call('message.timeline.sync', limit === undefined ? {} : { limit }, { session });
    const { calls } = pageMade.mock;
    pageMade.mockRestore();
    expect(calls.map(([payer]) => payer)).toEqual([`account ${ann.account}`]);
    return calls[0]?.[1];
  };
  expect(await pages()).toBe(1);
  for (let count = 0; count < 20; count += 1) {
    await relay.call('message.send', ann.message(ann), { session });
  }
  // One for the call, one for 20 rows, and those of its bytes.
  expect(await pages()).toBeGreaterThan(2);
  expect(await pages(1)).toBe(1);
});
