import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { CallTurns } from '../../src/dispatch/call-turns.ts';
import { defaultLimits } from '../../src/limits.ts';
import { ByteAccounts } from '../../src/transport/byte-accounts.ts';
import type { ClientAddresses } from '../../src/transport/client-addresses.ts';
import { PipelinedRequests } from '../../src/transport/pipelined-requests.ts';
import { ManualClock } from '../support/clock.ts';

/** 0019: HTTP requests are handled in turns of the event loop, of their addresses. */

class FakeResponse extends EventEmitter {
  closed = false;

  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

/** Requests that take a millisecond each; every one is of a connection of its own. */
function arriving() {
  const clock = new ManualClock();
  const handled: string[] = [];
  const turns = new CallTurns({ monotonic: () => handled.length });
  const context = { limits: defaultLimits, clock };
  const requests = new PipelinedRequests({
    ...{ context, bytes: new ByteAccounts(context), turns },
    clients: { of: ({ url }: IncomingMessage) => String(url) } as unknown as ClientAddresses,
    handle: ({ url }) => handled.push(String(url)),
  });
  const add = (address: string) => {
    const response = new FakeResponse();
    const request = { url: address, socket: new EventEmitter() };
    requests.add(request as unknown as IncomingMessage, response as unknown as ServerResponse);
    return response;
  };
  return { add, handled, turns };
}

const turn = () => new Promise<void>((go) => setImmediate(go));

test('those of one address that arrive together are divided over turns; another waits for one', async () => {
  const { add, handled } = arriving();
  for (let count = 0; count < 20; count += 1) add('192.0.2.1');
  await turn();
  const first = handled.length;
  expect(first).toBeLessThanOrEqual(2);
  add('192.0.2.2');
  while (!handled.includes('192.0.2.2')) await turn();
  expect(handled.length - first).toBeLessThanOrEqual(2);
  while (handled.length < 21) await turn();
});

test('a call of the same address takes its own turn before those requests that wait', async () => {
  const { add, handled, turns } = arriving();
  for (let count = 0; count < 20; count += 1) add('192.0.2.1');
  await turn();
  let before = Number.NaN;
  void turns.take('address 192.0.2.1').then(() => {
    before = handled.length;
  });
  while (handled.length < 20) await turn();
  expect(before).toBeLessThanOrEqual(4);
});

test('one whose connection ends while it waits is not handled', async () => {
  const { add, handled } = arriving();
  add('192.0.2.1');
  add('192.0.2.1');
  add('192.0.2.3').close();
  for (let count = 0; count < 5; count += 1) await turn();
  expect(handled).toEqual(['192.0.2.1', '192.0.2.1']);
});
