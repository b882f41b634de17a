/** What a client does when a relay says that it was restored (02 §11.2). */
import { expect, test } from 'vitest';
import type { Account, AccountEvent, MessageKey } from '../src/index.ts';
import { enqueueTask, pendingTasks } from '../src/sync/tasks.ts';
import { club, groupTexts } from './groups/support.ts';
import { OfflineProgram, refusedOnce } from './support/offline-program.ts';
import { befriend, relayWithClients, texts } from './support/relay-with-clients.ts';
import { lostAnswer, lostRequest, type Rule } from './support/steered-transport.ts';

const world = relayWithClients({ host: { groups: true } });

/** Ann's program and a contact; Ann's relay has been read, and says it was never restored. */
async function setScene() {
  const program = await OfflineProgram.start(world);
  const bob = await world.person({ prefer: 'http' });
  await befriend(program.account, bob);
  await program.account.sync();
  return { program, bob };
}

/** The relay says that it was restored at a time. */
function saysRestored(program: OfflineProgram, restoredAt: () => number): void {
  program.rule(['relay.info'], async (send) => {
    const { body, ...response } = await send();
    const info = JSON.parse(new TextDecoder().decode(body));
    const told = JSON.stringify({ ...info, restored_at: restoredAt() });
    return { ...response, body: new TextEncoder().encode(told) };
  });
}

/** The relay refuses every request. */
const refused =
  (status: number, code: string): Rule =>
  async (send) =>
    await refusedOnce(status, code)(send);

const rollbacks = (events: readonly AccountEvent[]) =>
  events.filter((event) => event.kind === 'timeline-gap' && event.cause === 'rollback').length;

const tasks = async ({ store }: OfflineProgram) =>
  (await store.read((tx) => pendingTasks.list(tx))).map(({ value }) => value.kind);

test('a relay that refuses the profile after a restore delays no message', async () => {
  const { program, bob } = await setScene();
  await program.account.profiles.publish({ nickname: 'Ann', public_discovery: true });
  const restoredAt = world.clock.now();
  saysRestored(program, () => restoredAt);
  // As if it had lost the profile.
  program.rule(['account.profile.resolve', 'profile.resolve'], refused(404, 'not_found'));
  program.rule(['profile.publish'], refused(429, 'rate_limited'));
  const ann = await program.again();
  await bob.messages.send(ann.id, { text: 'one' });
  expect(rollbacks(await ann.sync())).toBe(1);
  expect(await texts(ann)).toEqual(['one']);
  expect(await tasks(program)).toEqual(['publish-profile']);
  program.rule(['profile.publish'], refused(403, 'forbidden'));
  await bob.messages.send(ann.id, { text: 'two' });
  await ann.sync();
  expect(await texts(ann)).toEqual(['one', 'two']);
  expect(await tasks(program)).toEqual([]);
});

test('a relay that says another time at each connection is read again at most once an hour', async () => {
  const { program } = await setScene();
  let restoredAt = world.clock.now() - 1_000;
  saysRestored(program, () => {
    restoredAt += 1;
    return restoredAt;
  });
  const reread = async () => rollbacks(await (await program.again()).sync());
  const positions = async () => {
    const { length } = program.steered.made;
    await (await program.again()).sync();
    return program.steered.made.slice(length).map(({ url }) => url);
  };
  expect(await reread()).toBe(1);
  expect(await positions()).not.toContainEqual(expect.stringContaining('after=-1'));
  world.clock.advance(3_601);
  expect(await positions()).toContainEqual(expect.stringContaining('after=-1'));
  expect(await positions()).not.toContainEqual(expect.stringContaining('after=-1'));
});

test('a time after the clock of the relay is ignored', async () => {
  const { program } = await setScene();
  saysRestored(program, () => world.clock.now() + 400);
  expect(rollbacks(await (await program.again()).sync())).toBe(0);
});

/** Writes a message whose answer is lost, and has the relay say that it was restored since. */
async function restoredSince(program: OfflineProgram, bob: Account): Promise<MessageKey> {
  program.rule(['message.send'], lostAnswer);
  const message = await program.account.messages.post(bob.id, { text: 'late' });
  await expect(program.account.messages.settled(message)).rejects.toMatchObject({ kept: true });
  const restoredAt = world.clock.now();
  saysRestored(program, () => restoredAt);
  // As if it had lost the record, which no later one replaced yet.
  const { position } = await program.account.status();
  program.steered.rules.set('message.timeline.sync', async (send) => {
    const { url = '' } = program.steered.made.at(-1) ?? {};
    if (!url.includes(`after=${position}&`) && !url.endsWith(`after=${position}`))
      return await send();
    const body = new TextEncoder().encode('{"items":[],"certificates":[],"has_more":false}');
    return { status: 200, contentType: 'application/json', body };
  });
  return message;
}

test.each([
  ['message_expired', 'settled'],
  ['device_unknown', 'settled'],
  ['clock_skew', 'sync'],
])(
  '04 §16.3: a message refused with %s by a restored relay is not sealed again, by %s',
  async (code, call) => {
    const { program, bob } = await setScene();
    const message = await restoredSince(program, bob);
    const before = program.steered.bodies('message.send').length;
    program.rule(['message.send'], refusedOnce(400, code));
    const ann = await program.again();
    if (call === 'sync') await ann.sync();
    expect(await ann.messages.settled(message)).toMatchObject({
      status: 'rejected',
      error: { code },
    });
    expect(program.steered.bodies('message.send')).toHaveLength(before + 1);
    await bob.sync();
    expect(await texts(bob)).toEqual(['late']);
  },
);

test('04 §15.1, §16.3: a message sealed again that the relay accepted is failed, not rejected, when it is too old', async () => {
  const { program, bob } = await setScene();
  const skewed = refusedOnce(400, 'clock_skew');
  let count = 0;
  program.rule(['message.send'], async (send) => {
    count += 1;
    return count === 1 ? await skewed(send) : await lostAnswer(send);
  });
  const message = await program.account.messages.post(bob.id, { text: 'late' });
  await expect(program.account.messages.settled(message)).rejects.toMatchObject({ kept: true });
  program.rule(['message.send'], refusedOnce(400, 'message_expired'));
  const before = program.steered.bodies('message.send').length;
  const ann = await program.again();
  expect(await ann.messages.settled(message)).toMatchObject({ status: 'failed' });
  expect(program.steered.bodies('message.send')).toHaveLength(before + 1);
});

test('04 §16.3: a task whose message is too old and not for this device is done again by a new one', async () => {
  const { program } = await setScene();
  const { store } = program;
  await (await world.client()).requestDevice(program.account.publicKey).then(async (request) => {
    await program.account.devices.approve(request);
  });
  await program.account.sync();
  await store.write((tx) => enqueueTask(tx, { kind: 'send-snapshot' }));
  program.rule(['message.send'], lostAnswer);
  await program.account.sync().catch(() => undefined);
  program.online();
  program.rule(['message.send'], refusedOnce(400, 'message_expired'));
  const ann = await program.again();
  await ann.sync().catch(() => undefined);
  program.online();
  await ann.sync();
  expect((await ann.status()).outbox).toBe(0);
  expect(await tasks(program)).toEqual([]);
});

/** How a host loses a message that it accepted, and whether Ann's next one may be sealed again. */
const hosts = {
  'that was restored': {
    status: 'rejected',
    lose: (program: OfflineProgram) => {
      const restoredAt = world.clock.now();
      saysRestored(program, () => restoredAt);
    },
  },
  'whose retention has passed': {
    status: 'rejected',
    lose: () => world.clock.advance(31 * 86_400),
  },
  'that was put back and does not say so': {
    status: 'rejected',
    lose: (program: OfflineProgram) =>
      program.rule(['group.sync'], refusedOnce(400, 'bad_request')),
  },
  'that lost nothing': { status: 'target_accepted', lose: () => {} },
};

test.each(Object.entries(hosts))(
  '05 §11.2, §13.28: a message repeated to a group of a host %s is sealed again only if it is surely new',
  async (_, { status, lose }) => {
    const { program, bob } = await setScene();
    const groupId = await club(bob, [program.account]);
    await bob.groups.send(groupId, { text: 'one' });
    await program.account.sync();
    program.rule(['group.message.send'], lostRequest);
    const message = await program.account.groups.post(groupId, { text: 'late' });
    await expect(program.account.groups.settled(message)).rejects.toMatchObject({ kept: true });
    lose(program);
    program.rule(['group.message.send'], refusedOnce(400, 'clock_skew'));
    const ann = await program.again();
    expect(await ann.groups.settled(message)).toMatchObject({ status });
    await bob.sync();
    expect((await groupTexts(bob, groupId)).includes('late')).toBe(status !== 'rejected');
  },
);
