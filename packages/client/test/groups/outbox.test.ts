/** Pending messages: none is lost, none arrives twice, and their order stays. */
import type { ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { MemoryStore } from '../../src/index.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { block, impatient, RestartableClient, unreachable } from '../support/restartable-client.ts';
import { admit, club, groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

/** Ann owns a group, Bob is a member; both can restart. */
async function setScene() {
  const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
  const id = await club(ann.account, [bob.account]);
  const waiting = async () => (await bob.account.status()).outbox;
  return { ann, bob, id, waiting };
}

test('05 §13.28: messages written while the host is unreachable are sent later, in order', async () => {
  const { ann, bob, id } = await setScene();
  const texts = ['one', 'two', 'three', 'four', 'five'];
  // A program without a connection that cannot get one.
  for (const method of ['relay.descriptor', 'relay.info', 'auth.challenge', 'group.message.send']) {
    block(relay, method);
  }
  await bob.again();
  for (const text of texts) {
    await expect(bob.account.groups.send(id, { text })).rejects.toMatchObject(unreachable);
  }
  relay.behave();
  await (await bob.again()).sync();
  await ann.account.sync();
  expect(await groupTexts(ann.account, id)).toEqual(texts);
});

function takesNoMoreToday(response: ServerResponse): void {
  response.writeHead(429, { 'content-type': 'application/json' });
  const data = { retry_after: 50_000 };
  response.end(JSON.stringify({ code: 'rate_limited', message: 'tomorrow', data }));
}

test('02 §18: a message that the host takes only tomorrow waits, and its group and others are read', async () => {
  const { ann, bob, id, waiting } = await setScene();
  const other = await club(ann.account, [bob.account]);
  relay.overHttp.set('group.message.send', takesNoMoreToday);
  for (const each of [id, other]) {
    const sending = bob.account.groups.send(each, { text: 'late' });
    await expect(sending).rejects.toMatchObject({ error: 'rate_limited' });
  }
  relay.overHttp.clear();
  for (const each of [id, other]) await ann.account.groups.send(each, { text: 'news' });
  relay.overHttp.set('group.message.send', takesNoMoreToday);
  await bob.account.sync();
  for (const each of [id, other]) expect(await groupTexts(bob.account, each)).toContain('news');
  expect(await waiting()).toBe(2);
  relay.behave();
  await bob.account.sync();
  await ann.account.sync();
  expect(await groupTexts(ann.account, id)).toEqual(['news', 'late']);
});

test('a later message does not overtake a pending one', async () => {
  const { ann, bob, id, waiting } = await setScene();
  block(relay, 'group.message.send');
  const sending = bob.account.groups.send(id, { text: 'one' });
  await expect(sending).rejects.toMatchObject(unreachable);
  relay.behave();
  await (await bob.again()).groups.send(id, { text: 'two' });
  await ann.account.sync();
  expect(await groupTexts(ann.account, id)).toEqual(['one', 'two']);
  expect(await waiting()).toBe(0);
});

test('05 §14.1: a message that cannot be sealed again yet stays pending', async () => {
  const { ann, bob, id, waiting } = await setScene();
  await ann.account.groups.rotate(id);
  block(relay, 'group.sync');
  const sending = bob.account.groups.send(id, { text: 'between two epochs' });
  await expect(sending).rejects.toMatchObject(unreachable);
  relay.behave();
  // The same in the background: refused for its epoch, then no answer comes.
  block(relay, 'group.key.sync');
  await expect((await bob.again()).sync()).rejects.toMatchObject(unreachable);
  expect(await waiting()).toBe(1);
  relay.behave();
  await (await bob.again()).sync();
  await ann.account.sync();
  expect(await groupTexts(ann.account, id)).toEqual(['between two epochs']);
  expect(await waiting()).toBe(0);
});

test('a pending message waits if the current secret does not verify', async () => {
  const { ann, bob, id } = await setScene();
  block(relay, 'group.message.send');
  const sending = bob.account.groups.send(id, { text: 'patient' });
  await expect(sending).rejects.toMatchObject(unreachable);
  relay.behave();
  await ann.account.groups.rotate(id);
  relay.lie('group.key.sync', ({ keys, ...page }) => ({
    ...page,
    keys: keys.map(({ relay_secret_box: box, ...entry }: { relay_secret_box: object }) => ({
      ...entry,
      relay_secret_box: { ...box, sealed_secret: 'A'.repeat(80) },
    })),
  }));
  const told = await (await bob.again()).sync();
  expect(told).not.toContainEqual(expect.objectContaining({ status: 'failed' }));
  relay.behave();
  await bob.account.sync();
  await ann.account.sync();
  expect(await groupTexts(ann.account, id)).toEqual(['patient']);
});

test('05 §13.28: programs that send and sync concurrently send each message once', async () => {
  const store = new MemoryStore();
  const ann = await RestartableClient.begin(relay);
  const bob = await RestartableClient.begin(relay, store);
  const id = await club(ann.account, [bob.account]);
  const other = await (await relay.world.client({ store, ...impatient })).account();
  for (const text of ['one', 'two', 'three']) {
    // Each finds its epoch over, while both programs flush the outbox.
    await ann.account.groups.rotate(id);
    await Promise.all([
      bob.account.groups.send(id, { text }).catch((error: unknown) => {
        expect(error).toMatchObject(unreachable);
      }),
      other.groups.sync(id),
      bob.account.groups.sync(id),
      other.groups.sync(id),
    ]);
  }
  await bob.account.sync();
  await ann.account.sync();
  expect(await groupTexts(ann.account, id)).toEqual(['one', 'two', 'three']);
});

test('two programs that both find a pending message outdated send it once', async () => {
  const { ann, bob, id } = await setScene();
  const other = await (await relay.world.client({ store: bob.store, ...impatient })).account();
  for (const text of ['one', 'two']) {
    block(relay, 'group.message.send');
    await expect(bob.account.groups.send(id, { text })).rejects.toMatchObject(unreachable);
    relay.behave();
  }
  await ann.account.groups.rotate(id);
  await Promise.all([bob.account, other, bob.account, other].map((each) => each.groups.sync(id)));
  await ann.account.sync();
  expect(await groupTexts(ann.account, id)).toEqual(['one', 'two']);
});

const ends = {
  'the group closed': {
    end: (ann: RestartableClient, id: string) => ann.account.groups.close(id),
    code: 'not_permitted',
    message: /closed$/,
  },
  'the account was removed': {
    end: (ann: RestartableClient, id: string, bob: RestartableClient) =>
      ann.account.groups.remove(id, [bob.account.id]),
    code: 'not_a_member',
    message: /is not known$/,
  },
};

test.each(Object.entries(ends))(
  'a pending message is told as failed once %s, whichever program read that',
  async (_, { end, code, message: pattern }) => {
    const message = expect.stringMatching(pattern);
    const { ann, bob, id, waiting } = await setScene();
    block(relay, 'group.message.send');
    const sending = bob.account.groups.send(id, { text: 'too late' });
    await expect(sending).rejects.toMatchObject(unreachable);
    relay.behave();
    await end(ann, id, bob);
    // Another call reads the group, and the program ends before it flushes the outbox.
    await expect(bob.account.groups.update(id, { name: 'Mine' })).rejects.toMatchObject({
      code: expect.any(String),
    });
    expect(await waiting()).toBe(1);
    // It is told once; the error says whether the message may have arrived.
    const ends = (await (await bob.again()).sync()).filter(
      (event) => event.kind === 'message-status' && event.status === 'failed',
    );
    expect(ends).toMatchObject([{ conversation: { kind: 'group', id }, error: { code, message } }]);
    expect(await (await bob.again()).sync()).toEqual([]);
    expect(await waiting()).toBe(0);
    if (!(await ann.account.groups.get(id)).state?.members.has(bob.account.id)) {
      await admit(ann.account, id, [bob.account]);
      await bob.account.sync();
      await ann.account.sync();
    }
    expect(await groupTexts(ann.account, id)).toEqual([]);
  },
);
