/** What `courier` says of a message that a relay refuses for now. */
import { EventEmitter, once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { contactsOfCourier } from './support/courier.ts';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients({ limits: { accountDailyBytes: 100_000 } });

test('a refused message that is kept is said to be stored, to people and to programs', async () => {
  const [ann] = await contactsOfCourier(world);
  const send = (text: string, ...flags: string[]) => ann.run(['send', 'bob', text, ...flags]);
  expect(await send('x'.repeat(90_000))).toMatchObject({ exit: 0 });
  const refused = await send('once');
  expect(refused.exit).not.toBe(0);
  expect(refused.error).toMatch(/stored; the next command that reaches the relay sends it\.\n$/);
  const { error } = await send('once more', '--json');
  expect(JSON.parse(error)).toMatchObject({ error: { code: 'relay_refused', kept: true } });
  const unknown = await ann.run(['send', 'carol', 'never', '--json']);
  expect(JSON.parse(unknown.error).error).not.toHaveProperty('kept');
});

test('a message is said to be stored if its command is interrupted before the relay answers', async () => {
  const [ann] = await contactsOfCourier(world);
  const { port, hostname } = new URL(world.relay.https[0] ?? '');
  await world.stopRelay();
  // A machine that takes connections and never says anything.
  const connections: Socket[] = [];
  const asked = new EventEmitter();
  const silent = createServer((socket) => {
    connections.push(socket);
    asked.emit('connection');
  }).listen(Number(port), hostname);
  await once(silent, 'listening');
  for (const flags of [[], ['--json']]) {
    const connected = once(asked, 'connection');
    const sending = ann.start(['send', 'bob', 'later', ...flags]);
    await connected;
    sending.stop();
    expect(await sending.exit).toBe(130);
    expect(sending.written.out).toBe('');
    const { error } = sending.written;
    if (flags.length === 0) expect(error).toMatch(/^Interrupted\. .* stored; the next command/);
    else expect(JSON.parse(error)).toMatchObject({ error: { code: 'interrupted', kept: true } });
  }
  for (const socket of connections) socket.destroy();
  silent.close();
});
