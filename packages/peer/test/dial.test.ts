import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { dialSocket } from '../src/dial.ts';
import { PeerError } from '../src/index.ts';
import { anyPort, hostOf } from './support/hosts.ts';

test('07 §B4: a connection that a deadline has passed meanwhile is destroyed', async () => {
  await using stack = new AsyncDisposableStack();
  const server = stack.adopt(createServer(), (one) => void one.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  const controller = new AbortController();
  const options = { host: '127.0.0.1', port, mayDial: () => true };
  const socket = await dialSocket(options, controller.signal);
  expect(socket.destroyed).toBe(false);
  controller.abort(new PeerError('timeout', 'too late'));
  expect(socket.destroyed).toBe(true);
});

test('07 §B2: a host that is stopped while it begins to listen does not listen', async () => {
  const host = hostOf(1);
  const listening = host.listen(anyPort);
  const stopped = host[Symbol.asyncDispose]();
  await expect(listening).rejects.toMatchObject({ code: 'closed' });
  await stopped;
});
