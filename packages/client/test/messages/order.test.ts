/** Messages written while the relay cannot be reached: kept, in order, sent once. */
import { expect, test } from 'vitest';
import { MemoryStore, type Message } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { relayWithClients, texts } from '../support/relay-with-clients.ts';
import { impatient } from '../support/restartable-client.ts';
import {
  lostAnswer,
  lostRequest,
  type Rule,
  SteeredTransport,
} from '../support/steered-transport.ts';

const world = relayWithClients();
const eight = ['0', '1', '2', '3', '4', '5', '6', '7'];

/** Every call of a client without a network. */
const calls = ['relay.descriptor', 'relay.info', 'auth.challenge', 'message.send'];

/** Ann's program, which can go offline and restart, and two contacts of hers. */
async function setScene() {
  const steered = new SteeredTransport(new NodeTransport({ ca: world.ca }));
  const store = new MemoryStore();
  const options = { store, transport: steered, ...impatient };
  const first = await world.client(options);
  const ann = await first.setUp();
  const [bob, eve] = [await world.person(), await world.person()];
  for (const peer of [bob, eve]) {
    await peer.contacts.acceptInvite(await ann.contacts.invite());
    await ann.sync();
    await ann.contacts.approve(peer.id);
    await peer.sync();
  }
  await ann.sync();
  const rule = (given: Rule | undefined, methods: readonly string[]) => {
    for (const method of methods) {
      if (given === undefined) steered.rules.delete(method);
      else steered.rules.set(method, given);
    }
  };
  return {
    ann,
    bob,
    eve,
    store,
    steered,
    rule,
    offline: () => rule(lostRequest, calls),
    online: () => rule(undefined, calls),
    /** The same program started again. */
    again: async () => await (await world.client(options)).account(),
  };
}

test('04 §15.1: eight messages written offline arrive in the order of writing', async () => {
  const { ann, bob, again, offline, online } = await setScene();
  offline();
  const posted = await Promise.all(eight.map((text) => ann.messages.post(bob.id, { text })));
  expect(posted.map(({ status }) => status)).toEqual(eight.map(() => 'waiting'));
  online();
  await (await again()).sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(eight);
});

test('04 §15.1: a lost answer and a restart change neither order nor number', async () => {
  const { ann, bob, again, rule, offline, online, steered } = await setScene();
  const before = steered.bodies('message.send').length;
  rule(lostAnswer, ['message.send']);
  await expect(ann.messages.send(bob.id, { text: '0' })).rejects.toMatchObject({
    code: 'relay_unreachable',
    kept: true,
  });
  offline();
  const restarted = await again();
  for (const text of eight.slice(1)) await restarted.messages.post(bob.id, { text });
  online();
  await restarted.sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(eight);
  const sent = steered.bodies('message.send').slice(before);
  expect(sent).toHaveLength(9);
  expect(sent[1]).toBe(sent[0]);
});

test("a message is stored while the recipient's devices cannot be asked, however old their state", async () => {
  const { ann, bob, again, offline, online } = await setScene();
  world.clock.advance(30 * 86_400);
  offline();
  await expect(ann.messages.send(bob.id, { text: 'kept' })).rejects.toMatchObject({ kept: true });
  expect((await ann.messages.post(bob.id, { text: 'also' })).status).toBe('waiting');
  await expect(ann.messages.post(bob.id, {})).rejects.toMatchObject({ code: 'invalid_input' });
  await expect(ann.messages.post(bob.id, { text: 'x'.repeat(200_000) })).rejects.toMatchObject({
    code: 'invalid_input',
  });
  await expect(
    ann.messages.post('NNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNNN', { text: 'x' }),
  ).rejects.toMatchObject({ code: 'not_a_contact' });
  expect((await ann.status()).outbox).toBe(2);
  online();
  await (await again()).sync();
  expect((await ann.status()).outbox).toBe(0);
  await bob.sync();
  expect(await texts(bob)).toEqual(['kept', 'also']);
});

test('the order is that of the calls, also if references of an earlier body are checked', async () => {
  const { ann, bob, offline, online } = await setScene();
  offline();
  const markdown = {
    text: '[a](ni:///sha-256;x)',
    contentType: 'text/markdown; variant=CommonMark',
  };
  const calls = [
    ann.messages.post(bob.id, { text: '**one**', contentType: markdown.contentType }),
    ann.messages.post(bob.id, markdown).catch((error: unknown) => error),
    ann.messages.post(bob.id, { text: 'two' }),
  ];
  expect(await Promise.all(calls)).toMatchObject([
    { status: 'waiting' },
    { code: 'invalid_input' },
    { status: 'waiting' },
  ]);
  online();
  await ann.sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(['**one**', 'two']);
});

test('a message is sent by itself while online, and settled waits for the answer', async () => {
  const { ann, bob } = await setScene();
  const posted = await ann.messages.post(bob.id, { text: 'one' });
  await expect.poll(async () => (await ann.messages.get(posted))?.status).toBe('target_accepted');
  expect(await ann.messages.settled(posted)).toMatchObject({ status: 'target_accepted' });
  await expect(ann.messages.settled({ from: ann.id, messageId: 'msg_x' })).rejects.toMatchObject({
    code: 'invalid_input',
  });
});

test('a waiting message can be cancelled, a sealed or answered one cannot', async () => {
  const { ann, bob, again, offline, online, rule } = await setScene();
  offline();
  const [one, two, three] = (await Promise.all(
    ['one', 'two', 'three'].map((text) => ann.messages.post(bob.id, { text })),
  )) as [Message, Message, Message];
  expect(await ann.messages.cancel(two)).toMatchObject({ status: 'cancelled' });
  expect(await ann.messages.cancel(two)).toMatchObject({ status: 'cancelled' });
  expect(await ann.messages.settled(two)).toMatchObject({ status: 'cancelled' });
  expect(await texts(ann)).toEqual(['one', 'three']);
  online();
  rule(lostRequest, ['message.send']);
  await expect(ann.messages.settled(one)).rejects.toMatchObject({ kept: true });
  expect(await ann.messages.get(one)).toMatchObject({ status: 'sending' });
  const refused = { code: 'already_sent' };
  await expect(ann.messages.cancel(one)).rejects.toMatchObject(refused);
  expect(await ann.messages.cancel(three)).toMatchObject({ status: 'cancelled' });
  online();
  const restarted = await again();
  expect(await restarted.messages.settled(one)).toMatchObject({ status: 'target_accepted' });
  await expect(restarted.messages.cancel(one)).rejects.toMatchObject(refused);
  const unknown = { from: bob.id, messageId: one.messageId };
  await expect(ann.messages.cancel(unknown)).rejects.toMatchObject({ code: 'invalid_input' });
  await bob.sync();
  expect(await texts(bob)).toEqual(['one']);
});

test('a conversation that is stuck delays no other', async () => {
  const { ann, bob, eve, rule, online } = await setScene();
  world.clock.advance(2 * 3_600);
  // Bob's devices cannot be asked; eve's were, a moment ago.
  await ann.messages.send(eve.id, { text: 'first' });
  rule(lostRequest, ['device.state.resolve']);
  const stuck = await ann.messages.post(bob.id, { text: 'later' });
  await expect(ann.messages.settled(stuck)).rejects.toMatchObject({ kept: true });
  expect(await ann.messages.send(eve.id, { text: 'second' })).toMatchObject({
    status: 'target_accepted',
  });
  online();
  rule(undefined, ['device.state.resolve']);
  await ann.sync();
  await Promise.all([bob.sync(), eve.sync()]);
  expect([await texts(bob), await texts(eve)]).toEqual([['later'], ['first', 'second']]);
});

test('04 §15.1: a message sealed again keeps its place, and is found by its old ID', async () => {
  const { ann, bob, again, offline, online, rule } = await setScene();
  offline();
  const one = await ann.messages.post(bob.id, { text: 'one' });
  const two = await ann.messages.post(bob.id, { text: 'two', replyTo: one });
  online();
  // The request is refused before it is accepted, once.
  let refusals = 0;
  rule(
    async (send) => {
      if (refusals > 0) return await send();
      refusals += 1;
      const body = new TextEncoder().encode(
        JSON.stringify({ code: 'device_unknown', message: '' }),
      );
      return { status: 409, contentType: 'application/json', body };
    },
    ['message.send'],
  );
  const restarted = await again();
  const sent = await restarted.messages.settled(one);
  expect(sent).toMatchObject({ status: 'target_accepted', order: one.order });
  expect(sent.messageId).not.toBe(one.messageId);
  expect(await restarted.messages.get(one)).toEqual(sent);
  await restarted.messages.settled(two);
  await bob.sync();
  const [first, second] = await bob.messages.list();
  expect(first?.messageId).toBe(sent.messageId);
  expect(second?.content).toMatchObject({
    reply_to: { from: ann.id, message_id: sent.messageId },
  });
});

test('a message that is refused for good is rejected, and those after it are sent', async () => {
  const { ann, bob, offline, online, rule } = await setScene();
  offline();
  const [bad, good] = (await Promise.all(
    ['bad', 'good'].map((text) => ann.messages.post(bob.id, { text })),
  )) as [Message, Message];
  online();
  let refusals = 0;
  rule(
    async (send) => {
      refusals += 1;
      if (refusals > 1) return await send();
      const body = new TextEncoder().encode(JSON.stringify({ code: 'forbidden', message: 'no' }));
      return { status: 403, contentType: 'application/json', body };
    },
    ['message.send'],
  );
  await ann.sync();
  expect(await ann.messages.settled(bad)).toMatchObject({
    status: 'rejected',
    error: { code: 'forbidden' },
  });
  expect(await ann.messages.settled(good)).toMatchObject({ status: 'target_accepted' });
  await expect(ann.messages.send(bob.id, { text: 'last' })).resolves.toBeDefined();
  await bob.sync();
  expect(await texts(bob)).toEqual(['good', 'last']);
});

test('messages that an earlier version left in its outbox keep their order', async () => {
  const { ann, bob, store, again, rule, offline, online } = await setScene();
  rule(lostRequest, ['message.send']);
  const texts8 = eight.slice(0, 4);
  for (const text of texts8) {
    await expect(ann.messages.send(bob.id, { text })).rejects.toMatchObject({ kept: true });
    // The earlier version sealed each message at once, and had no queue.
    await store.write(async (tx) => {
      for (const [key] of await tx.list('message-queue')) await tx.delete('message-queue', key);
      for (const [key, row] of await tx.list('outbox')) {
        const { place: _new, ...old } = JSON.parse(row);
        await tx.put('outbox', key, JSON.stringify(old));
      }
    });
  }
  await store.write((tx) => tx.delete('message-queue-adopted', 'outbox'));
  offline();
  await (await again()).messages.post(bob.id, { text: '4' });
  online();
  await (await again()).sync();
  await bob.sync();
  expect(await texts(bob)).toEqual([...texts8, '4']);
});
