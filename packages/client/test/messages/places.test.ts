/** Places in the outboxes: each is given out once, to one message. */
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../relay/test/support/folder.ts';
import { type Account, RelayMisbehaviour, RelayRefused } from '../../src/index.ts';
import { NodeTransport, SqliteStore } from '../../src/node.ts';
import { postTexts } from '../channels/support.ts';
import { club, groupTexts } from '../groups/support.ts';
import { OfflineProgram } from '../support/offline-program.ts';
import { befriend, relayWithClients, texts } from '../support/relay-with-clients.ts';
import { impatient } from '../support/restartable-client.ts';
import { lostRequest, type Rule, SteeredTransport } from '../support/steered-transport.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });

/** Makes every connection of a program wait. @returns what ends it */
function heldConnections(program: OfflineProgram): () => void {
  const gate = Promise.withResolvers<void>();
  program.rule(['relay.descriptor', 'relay.info', 'auth.challenge'], async (send) => {
    await gate.promise;
    return await send();
  });
  return gate.resolve;
}

interface Conversation {
  readonly post: (ann: Account, text: string) => Promise<{ readonly messageId: string }>;
  readonly send: (ann: Account, text: string) => Promise<unknown>;
  readonly cancel: (ann: Account, messageId: string) => Promise<{ readonly status?: string }>;
  readonly texts: (ann: Account) => Promise<string[]>;
}

const kinds: Record<string, (ann: Account) => Promise<Conversation>> = {
  person: async (ann) => {
    const bob = await world.person();
    await befriend(ann, bob);
    await ann.sync();
    return {
      post: (of, text) => of.messages.post(bob.id, { text }),
      send: (of, text) => of.messages.send(bob.id, { text }),
      cancel: (of, messageId) => of.messages.cancel({ from: of.id, messageId }),
      texts: async () => {
        await bob.sync();
        return await texts(bob);
      },
    };
  },
  group: async (ann) => {
    const groupId = await club(ann);
    return {
      post: (of, text) => of.groups.post(groupId, { text }),
      send: (of, text) => of.groups.send(groupId, { text }),
      cancel: (of, messageId) => of.groups.cancel({ groupId, messageId }),
      texts: (of) => groupTexts(of, groupId),
    };
  },
  channel: async (ann) => {
    const { id: channelId } = await ann.channels.create({ name: 'News' });
    return {
      post: (of, text) => of.channels.post(channelId, { text }),
      send: (of, text) => of.channels.send(channelId, { text }),
      cancel: (of, messageId) => of.channels.cancel({ channelId, messageId }),
      texts: (of) => postTexts(of, channelId),
    };
  },
};

test.each(Object.entries(kinds))(
  'a message to a %s cancelled while the relay is reached is not sent in place of the next one',
  async (_, begin) => {
    const program = await OfflineProgram.start(world);
    const conversation = await begin(program.account);
    const ann = await program.again();
    const release = heldConnections(program);
    const { messageId } = await conversation.post(ann, 'wrong');
    // Its turn has begun, and waits for the connection.
    await setImmediate();
    expect(await conversation.cancel(ann, messageId)).toMatchObject({ status: 'cancelled' });
    await conversation.post(ann, 'right');
    const later = conversation.send(ann, 'later');
    release();
    await later;
    program.online();
    await ann.sync();
    expect(await conversation.texts(ann)).toEqual(['right', 'later']);
    expect((await ann.status()).outbox).toBe(0);
  },
);

test('an error of send says whether the message is kept', async () => {
  const program = await OfflineProgram.start(world);
  const ann = program.account;
  const bob = await world.person();
  await befriend(ann, bob);
  await ann.sync();
  program.rule(['message.send'], answer(429, 'rate_limited', { retry_after: 3600 }));
  const limited = await ann.messages.send(bob.id, { text: 'one' }).catch((error) => error);
  expect(limited).toBeInstanceOf(RelayRefused);
  expect(limited).toMatchObject({ error: 'rate_limited', retryAfter: 3600, kept: true });
  program.rule(['message.send'], answer(200, 'not an answer'));
  const joined = await ann.messages.send(bob.id, { text: 'two' }).catch((error) => error);
  expect(joined).toBeInstanceOf(RelayMisbehaviour);
  expect(joined).toMatchObject({ kept: true });
  program.rule(['message.send'], answer(403, 'forbidden'));
  const refused = ann.messages.send(bob.id, { text: 'three' });
  await expect(refused).rejects.toMatchObject({ error: 'forbidden', kept: false });
  expect((await ann.status()).outbox).toBe(0);
});

function answer(status: number, code: string, data?: object): Rule {
  const body = new TextEncoder().encode(JSON.stringify({ code, message: 'of the test', data }));
  return async () => ({ status, contentType: 'application/json', body });
}

test('a message that another program ended is told as that program told it', async () => {
  const program = await OfflineProgram.start(world);
  const ann = program.account;
  const bob = await world.person();
  await befriend(ann, bob);
  const groupId = await club(ann);
  const { store } = program;
  const ends = {
    'message.send': (of: Account) => of.messages.send(bob.id, { text: 'one' }),
    'group.message.send': (of: Account) => of.groups.send(groupId, { text: 'one' }),
  };
  const transport = new SteeredTransport(new NodeTransport({ ca: world.ca }));
  const other = await (await world.client({ store, transport, ...impatient })).account();
  for (const [method, send] of Object.entries(ends)) {
    transport.rules.set(method, answer(403, 'forbidden'));
    const again = await program.again();
    const release = heldConnections(program);
    const sending = send(again);
    await setImmediate();
    await other.sync();
    release();
    await expect(sending).rejects.toMatchObject({ method, error: 'forbidden', kept: false });
    program.online();
  }
});

test('04 §15.1: a late answer for another program ends no message written meanwhile', async () => {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const program = async () => {
    const steered = new SteeredTransport(new NodeTransport({ ca: world.ca }));
    const store = SqliteStore.open(join(folder.path, 'ann.sqlite'));
    const client = await world.client({ store, transport: steered, ...impatient });
    return { rules: steered.rules, client };
  };
  const one = await program();
  const ann = await one.client.setUp();
  const bob = await world.person();
  await befriend(ann, bob);
  await ann.sync();
  const two = await program();
  const again = await two.client.account();

  one.rules.set('message.send', lostRequest);
  const first = await ann.messages.post(bob.id, { text: 'first' });
  await expect(ann.messages.settled(first)).rejects.toMatchObject({ kept: true });
  const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  two.rules.set('message.send', async (send) => {
    const answer = await send();
    reached.resolve();
    await gate.promise;
    return answer;
  });
  const late = again.messages.settled(first);
  await reached.promise;
  one.rules.clear();
  expect(await ann.messages.settled(first)).toMatchObject({ status: 'target_accepted' });
  one.rules.set('message.send', lostRequest);
  const second = await ann.messages.post(bob.id, { text: 'second' });
  await expect(ann.messages.settled(second)).rejects.toMatchObject({ kept: true });
  two.rules.clear();
  gate.resolve();
  await late;
  one.rules.clear();
  expect(await ann.messages.settled(second)).toMatchObject({ status: 'target_accepted' });
  await bob.sync();
  expect(await texts(bob)).toEqual(['first', 'second']);
  expect((await ann.status()).outbox).toBe(0);
});
