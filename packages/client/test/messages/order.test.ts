/** Messages written while the relay cannot be reached: kept, in order, sent once. */
import { describe, expect, test, vi } from 'vitest';
import { patience } from '../../../relay/test/support/patience.ts';
import { timelines } from '../../src/accounts/account-rows.ts';
import type { Account, AccountEvent, Message, MessageKey } from '../../src/index.ts';
import { enqueueTask } from '../../src/sync/tasks.ts';
import { OfflineProgram, refused, refusedOnce } from '../support/offline-program.ts';
import { befriend, relayWithClients, texts } from '../support/relay-with-clients.ts';
import { lostAnswer, lostRequest, type Rule } from '../support/steered-transport.ts';

const world = relayWithClients();
const eight = ['0', '1', '2', '3', '4', '5', '6', '7'];

/** Ann's program, and two contacts of hers. */
async function setScene() {
  const program = await OfflineProgram.start(world);
  const [bob, eve] = [await world.person(), await world.person()];
  await befriend(program.account, bob);
  await befriend(program.account, eve);
  await program.account.sync();
  return { program, ann: program.account, bob, eve };
}

test('04 §15.1: eight messages written offline arrive in the order of writing', async () => {
  const { program, ann, bob } = await setScene();
  program.offline();
  const posted = await Promise.all(eight.map((text) => ann.messages.post(bob.id, { text })));
  expect(posted.map(({ status }) => status)).toEqual(eight.map(() => 'waiting'));
  program.online();
  await (await program.again()).sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(eight);
});

test('04 §15.1: a lost answer and a restart change neither order nor number', async () => {
  const { program, ann, bob } = await setScene();
  const before = program.steered.bodies('message.send').length;
  program.rule(['message.send'], lostAnswer);
  await expect(ann.messages.send(bob.id, { text: '0' })).rejects.toMatchObject({
    code: 'relay_unreachable',
    kept: true,
  });
  program.offline();
  const restarted = await program.again();
  for (const text of eight.slice(1)) await restarted.messages.post(bob.id, { text });
  program.online();
  await restarted.sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(eight);
  const sent = program.steered.bodies('message.send').slice(before);
  expect(sent).toHaveLength(9);
  expect(sent[1]).toBe(sent[0]);
});

test("a message is stored while the recipient's devices cannot be asked, however old their state", async () => {
  const { program, ann, bob } = await setScene();
  world.clock.advance(30 * 86_400);
  program.offline();
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
  program.online();
  await (await program.again()).sync();
  expect((await ann.status()).outbox).toBe(0);
  await bob.sync();
  expect(await texts(bob)).toEqual(['kept', 'also']);
});

test('the order is that of the calls, also if references of an earlier body are checked', async () => {
  const { program, ann, bob } = await setScene();
  program.offline();
  const markdown = {
    text: '[a](ni:///sha-256;x)',
    contentType: 'text/markdown; variant=CommonMark',
  };
  const calls = [
    ann.messages.post(bob.id, { text: '`ni:` one', contentType: markdown.contentType }),
    ann.messages.post(bob.id, markdown).catch((error: unknown) => error),
    ann.messages.post(bob.id, { text: 'two' }),
  ];
  expect(await Promise.all(calls)).toMatchObject([
    { status: 'waiting' },
    { code: 'invalid_input' },
    { status: 'waiting' },
  ]);
  program.online();
  await ann.sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(['`ni:` one', 'two']);
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
  const { program, ann, bob } = await setScene();
  program.offline();
  const [one, two, three] = (await Promise.all(
    ['one', 'two', 'three'].map((text) => ann.messages.post(bob.id, { text })),
  )) as [Message, Message, Message];
  expect(await ann.messages.cancel(two)).toMatchObject({ status: 'cancelled' });
  expect(await ann.messages.cancel(two)).toMatchObject({ status: 'cancelled' });
  expect(await ann.messages.settled(two)).toMatchObject({ status: 'cancelled' });
  expect(await texts(ann)).toEqual(['one', 'three']);
  program.online();
  program.rule(['message.send'], lostRequest);
  await expect(ann.messages.settled(one)).rejects.toMatchObject({ kept: true });
  expect(await ann.messages.get(one)).toMatchObject({ status: 'sending' });
  const refused = { code: 'already_sent' };
  await expect(ann.messages.cancel(one)).rejects.toMatchObject(refused);
  expect(await ann.messages.cancel(three)).toMatchObject({ status: 'cancelled' });
  program.online();
  const restarted = await program.again();
  expect(await restarted.messages.settled(one)).toMatchObject({ status: 'target_accepted' });
  await expect(restarted.messages.cancel(one)).rejects.toMatchObject(refused);
  const unknown = { from: bob.id, messageId: one.messageId };
  await expect(ann.messages.cancel(unknown)).rejects.toMatchObject({ code: 'invalid_input' });
  await bob.sync();
  expect(await texts(bob)).toEqual(['one']);
});

test('a message that is stuck delays nothing that arrives while following', async () => {
  const { program, ann, bob, eve } = await setScene();
  const [held, stop] = [Promise.withResolvers<void>(), new AbortController()];
  program.rule(['message.send'], async (send) => {
    await held.promise;
    return await send();
  });
  const stuck = await ann.messages.post(eve.id, { text: 'stuck' });
  await bob.messages.send(ann.id, { text: 'first' });
  const arrived: (string | undefined)[] = [];
  for await (const event of ann.follow({ signal: stop.signal, pollInterval: 50 })) {
    if (event.kind !== 'message') continue;
    arrived.push(event.message.body?.text);
    if (arrived.length === 2) break;
    await bob.messages.send(ann.id, { text: 'second' });
  }
  expect(arrived).toEqual(['first', 'second']);
  expect(await ann.messages.get(stuck)).toMatchObject({ status: 'sending' });
  held.resolve();
  expect(await ann.messages.settled(stuck)).toMatchObject({ status: 'target_accepted' });
});

test('a relay that takes no session of the device rejects no message of it', async () => {
  const { program, ann, bob } = await setScene();
  const body = new TextEncoder().encode(JSON.stringify({ code: 'unauthorized', message: 'x' }));
  program.rule(['message.send'], async () => ({
    status: 401,
    contentType: 'application/json',
    body,
  }));
  const [first, second] = [
    await ann.messages.post(bob.id, { text: 'first' }),
    await ann.messages.post(bob.id, { text: 'second' }),
  ];
  for (const key of [first, second]) {
    await expect(ann.messages.settled(key)).rejects.toMatchObject({
      error: 'unauthorized',
      kept: true,
    });
  }
  program.online();
  await ann.sync();
  await bob.sync();
  expect(await texts(bob)).toEqual(['first', 'second']);
});

test('a contact whose devices cannot be read delays nothing that arrives while following', async () => {
  const { program, ann, bob, eve } = await setScene();
  await program.store.write((tx) => enqueueTask(tx, { kind: 'refresh-state', account: bob.id }));
  const held = Promise.withResolvers<void>();
  let hasBegun = false;
  program.rule(['device.state.resolve'], async (send) => {
    const { url, body } = program.steered.made.at(-1) ?? {};
    if (`${url}${body}`.includes(bob.id)) {
      hasBegun = true;
      await held.promise;
    }
    return await send();
  });
  await eve.messages.send(ann.id, { text: 'first' });
  const arrived: (string | undefined)[] = [];
  const { signal } = new AbortController();
  for await (const event of ann.follow({ signal, pollInterval: 50 })) {
    if (event.kind !== 'message') continue;
    arrived.push(event.message.body?.text);
    if (arrived.length === 2) break;
    await vi.waitFor(() => expect(hasBegun).toBe(true), patience);
    await eve.messages.send(ann.id, { text: 'second' });
  }
  expect(arrived).toEqual(['first', 'second']);
  held.resolve();
});

/** Ann's statuses of one message, by the events of a sync. */
function statusesOf(events: readonly AccountEvent[], { messageId }: MessageKey): string[] {
  return events.flatMap((event) =>
    event.kind === 'message-status' && event.messageId === messageId ? [event.status] : [],
  );
}

describe('04 §15.2, §16.3: a message repeated after the age limit of the relay', () => {
  const expired = refusedOnce(400, 'message_expired');
  const days = 8 * 86_400;

  async function posted(program: OfflineProgram, to: Account, rule: Rule): Promise<MessageKey> {
    program.rule(['message.send'], rule);
    const message = await program.account.messages.post(to.id, { text: 'late' });
    await expect(program.account.messages.settled(message)).rejects.toMatchObject({ kept: true });
    return message;
  }

  test('is sealed anew if the relay never accepted it, and arrives once', async () => {
    const { program, bob } = await setScene();
    const message = await posted(program, bob, lostRequest);
    world.clock.advance(days);
    program.online();
    const ann = await program.again();
    const events = await ann.sync();
    expect(statusesOf(events, message)).toEqual(['waiting', 'sending', 'target_accepted']);
    expect(await ann.messages.settled(message)).toMatchObject({ status: 'target_accepted' });
    await bob.sync();
    expect(await texts(bob)).toEqual(['late']);
  });

  test.each([
    { when: 'not read yet', isRead: false },
    { when: 'read before', isRead: true },
  ])('is failed if the timeline, $when, has it: never sent twice', async ({ isRead }) => {
    const { program, bob } = await setScene();
    const message = await posted(program, bob, lostAnswer);
    const before = program.steered.bodies('message.send').length;
    world.clock.advance(days);
    program.rule(['message.send'], lostRequest);
    let ann = await program.again();
    if (isRead) await expect(ann.sync()).rejects.toMatchObject({ code: 'relay_unreachable' });
    program.rule(['message.send'], refusedOnce(400, 'message_expired'));
    ann = await program.again();
    expect(await ann.messages.settled(message)).toMatchObject({
      messageId: message.messageId,
      status: 'failed',
      error: { code: 'message_expired' },
    });
    const sent = program.steered.bodies('message.send').slice(before);
    expect(new Set(sent).size).toBe(1);
    await bob.sync();
    expect(await texts(bob)).toEqual(['late']);
  });

  test('is rejected if the timeline has a gap, in which it may be', async () => {
    const { program, bob } = await setScene();
    const message = await posted(program, bob, lostRequest);
    const relayId = world.relay.relayId;
    await program.store.write(async (tx) => {
      const known = await timelines.get(tx, relayId);
      await timelines.put(tx, relayId, { position: -1, ...known, gap: true });
    });
    program.rule(['message.send'], expired);
    const ann = await program.again();
    expect(await ann.messages.settled(message)).toMatchObject({ status: 'rejected' });
  });
});

const week = 7 * 86_400;
const conditions = ['invalid_state', 'method_not_found'];

test.each(conditions)(
  'a refusal with %s, which says nothing of the message, ends none of those that wait',
  async (code) => {
    const { program, bob } = await setScene();
    program.offline();
    for (const text of ['one', 'two']) await program.account.messages.post(bob.id, { text });
    program.online();
    program.rule(['message.send'], refusedOnce(400, code));
    const ann = await program.again();
    // Reading goes on; the error is that of the message.
    await ann.sync();
    expect((await ann.status()).outbox).toBe(2);
    await ann.sync();
    await bob.sync();
    expect(await texts(bob)).toEqual(['one', 'two']);
  },
);

test.each(conditions)(
  'a sealed message that is refused with %s for a week is rejected, and the next one goes on',
  async (code) => {
    const { program, bob } = await setScene();
    program.offline();
    const posted = [];
    for (const text of ['one', 'two'])
      posted.push(await program.account.messages.post(bob.id, { text }));
    program.online();
    program.rule(['message.send'], refused(code));
    const ann = await program.again();
    const [one, two] = posted;
    await ann.sync();
    world.clock.advance(week - 60);
    await ann.sync();
    expect(await ann.messages.get(one!)).toMatchObject({ status: 'sending' });
    await expect(ann.messages.cancel(one!)).rejects.toMatchObject({ code: 'already_sent' });
    world.clock.advance(120);
    await ann.sync();
    expect(await ann.messages.settled(one!)).toMatchObject({ status: 'rejected', error: { code } });
    program.rule(['message.send'], (send) => send());
    expect(await ann.messages.settled(two!)).toMatchObject({ status: 'target_accepted' });
  },
);

test.each(conditions)(
  '04 §14.3: a message whose answer was lost is not rejected if %s follows for a week',
  async (code) => {
    const { program, bob } = await setScene();
    program.rule(['message.send'], lostAnswer);
    const posted = await program.account.messages.post(bob.id, { text: 'once' });
    await expect(program.account.messages.settled(posted)).rejects.toMatchObject({ kept: true });
    program.rule(['message.send'], refused(code));
    const ann = await program.again();
    await ann.sync();
    world.clock.advance(week + 60);
    // A relay that is away, or takes no more calls for a while, leaves it open.
    program.rule(['message.delivery.status'], refused('temporarily_unavailable'));
    await expect(ann.sync()).rejects.toMatchObject({ error: 'temporarily_unavailable' });
    expect(await ann.messages.get(posted)).toMatchObject({ status: 'sending' });
    program.rule(['message.delivery.status'], (send) => send());
    expect(await ann.messages.settled(posted)).toMatchObject({ status: 'target_accepted' });
    await bob.sync();
    expect(await texts(bob)).toEqual(['once']);
  },
);

test('04 §14.3: if the relay does not say either, a message that came back in the timeline is failed', async () => {
  const { program, bob } = await setScene();
  program.rule(['message.send'], lostAnswer);
  const posted = await program.account.messages.post(bob.id, { text: 'once' });
  await expect(program.account.messages.settled(posted)).rejects.toMatchObject({ kept: true });
  program.rule(['message.send', 'message.delivery.status'], refused('invalid_state'));
  const ann = await program.again();
  await ann.sync();
  world.clock.advance(week + 60);
  await ann.sync();
  expect(await ann.messages.settled(posted)).toMatchObject({ status: 'failed' });
});

test.each(conditions)(
  "%s for a contact's devices ends no message to that contact",
  async (code) => {
    const { program, bob } = await setScene();
    world.clock.advance(2 * 3_600);
    const body = new TextEncoder().encode(JSON.stringify({ code, message: 'of the test' }));
    program.rule(['device.state.resolve'], async (send) => {
      const made = program.steered.made.at(-1);
      if (!`${made?.url}${made?.body}`.includes(bob.id)) return await send();
      return { status: 400, contentType: 'application/json', body };
    });
    const ann = await program.again();
    await expect(ann.messages.send(bob.id, { text: 'one' })).rejects.toMatchObject({
      error: code,
      kept: true,
    });
    await ann.messages.post(bob.id, { text: 'two' });
    await ann.sync();
    program.online();
    await ann.sync();
    await bob.sync();
    expect(await texts(bob)).toEqual(['one', 'two']);
  },
);

test('a conversation that is stuck delays no other', async () => {
  const { program, ann, bob, eve } = await setScene();
  world.clock.advance(2 * 3_600);
  // Bob's devices cannot be asked; eve's were, a moment ago.
  await ann.messages.send(eve.id, { text: 'first' });
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  program.rule(['device.state.resolve'], async (send) => {
    await released;
    return await send();
  });
  const stuck = await ann.messages.post(bob.id, { text: 'later' });
  const second = await ann.messages.send(eve.id, { text: 'second' });
  expect(second).toMatchObject({ status: 'target_accepted' });
  expect(await ann.messages.get(stuck)).toMatchObject({ status: 'waiting' });
  release();
  expect(await ann.messages.settled(stuck)).toMatchObject({ status: 'target_accepted' });
  await Promise.all([bob.sync(), eve.sync()]);
  expect([await texts(bob), await texts(eve)]).toEqual([['later'], ['first', 'second']]);
});

test('04 §15.1: a message sealed again keeps its place, and is found by its old ID', async () => {
  const { program, ann, bob } = await setScene();
  program.offline();
  const one = await ann.messages.post(bob.id, { text: 'one' });
  const two = await ann.messages.post(bob.id, { text: 'two', replyTo: one });
  program.online();
  program.rule(['message.send'], refusedOnce(409, 'device_unknown'));
  const restarted = await program.again();
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
  const { program, ann, bob } = await setScene();
  program.offline();
  const [bad, good] = (await Promise.all(
    ['bad', 'good'].map((text) => ann.messages.post(bob.id, { text })),
  )) as [Message, Message];
  program.online();
  program.rule(['message.send'], refusedOnce(400, 'bad_request'));
  await ann.sync();
  expect(await ann.messages.settled(bad)).toMatchObject({
    status: 'rejected',
    error: { code: 'bad_request' },
  });
  expect(await ann.messages.settled(good)).toMatchObject({ status: 'target_accepted' });
  await expect(ann.messages.send(bob.id, { text: 'last' })).resolves.toBeDefined();
  await bob.sync();
  expect(await texts(bob)).toEqual(['good', 'last']);
});

test('messages that an earlier version left in its outbox keep their order', async () => {
  const { program, ann, bob } = await setScene();
  program.rule(['message.send'], lostRequest);
  const texts8 = eight.slice(0, 4);
  for (const text of texts8) {
    await expect(ann.messages.send(bob.id, { text })).rejects.toMatchObject({ kept: true });
    // The earlier version sealed each message at once, and had no queue.
    await program.store.write(async (tx) => {
      for (const [key] of await tx.list('message-queue')) await tx.delete('message-queue', key);
      for (const [key, row] of await tx.list('outbox')) {
        const { place: _new, ...old } = JSON.parse(row);
        await tx.put('outbox', key, JSON.stringify(old));
      }
    });
  }
  await program.store.write((tx) => tx.delete('message-queue-adopted', 'outbox'));
  program.offline();
  await (await program.again()).messages.post(bob.id, { text: '4' });
  program.online();
  await (await program.again()).sync();
  await bob.sync();
  expect(await texts(bob)).toEqual([...texts8, '4']);
});
