/** A hundred messages over five outages, with the program ended in between. */
import { expect, test } from 'vitest';
import { OfflineProgram } from '../support/offline-program.ts';
import { befriend, relayWithClients, texts } from '../support/relay-with-clients.ts';
import { lostAnswer } from '../support/steered-transport.ts';

const world = relayWithClients();

test('04 §15.1: 100 messages over 5 outages, states up to a month old, arrive once and in order', async () => {
  const program = await OfflineProgram.start(world);
  const bob = await world.person();
  await befriend(program.account, bob);
  const written = Array.from({ length: 100 }, (_, n) => String(n));
  for (let outage = 0; outage < 5; outage += 1) {
    const part = written.slice(outage * 20, outage * 20 + 20);
    program.offline();
    await program.again();
    for (const text of part.slice(0, 10)) await program.account.messages.post(bob.id, { text });
    world.clock.advance((outage + 1) * 6 * 86_400);
    await program.again();
    for (const text of part.slice(10, 15)) await program.account.messages.post(bob.id, { text });
    program.online();
    // The relay carries requests out, and the answers are lost.
    program.rule(['message.send'], lostAnswer);
    await expect(program.account.sync()).rejects.toMatchObject({ code: 'relay_unreachable' });
    await program.again();
    for (const text of part.slice(15)) await program.account.messages.post(bob.id, { text });
    program.online();
    await program.account.sync();
    await bob.sync();
  }
  await (await program.again()).sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(written);
  expect((await program.account.status()).outbox).toBe(0);
}, 300_000);
