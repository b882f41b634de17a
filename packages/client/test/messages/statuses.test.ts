/** Statuses of direct messages: each change is one event, until the one that is final. */
import { expect, test } from 'vitest';
import { contactRow, putContact } from '../../src/contacts/contact-rows.ts';
import { OfflineProgram, refusedOnce } from '../support/offline-program.ts';
import { befriend, relayWithClients } from '../support/relay-with-clients.ts';
import { statusesOf, statusLog } from '../support/status-log.ts';
import type { Rule } from '../support/steered-transport.ts';

const world = relayWithClients();

async function setScene() {
  const program = await OfflineProgram.start(world);
  const bob = await world.person();
  await befriend(program.account, bob);
  await program.account.sync();
  return { program, ann: program.account, bob };
}

/** The relay carries the request out and answers with this delivery status. */
function answersWith(status: object): Rule {
  const text = JSON.stringify({ accepted_at: world.clock.now(), ...status });
  return async (send) => ({ ...(await send()), status: 200, body: new TextEncoder().encode(text) });
}

const unknownDevice = { code: 'device_unknown', message: 'of the test' };

/** What a relay answers for a message that it is delivering, and the statuses after that. */
const ends = [
  { answer: { status: 'target_accepted' }, last: 'target_accepted' },
  { answer: { status: 'failed', error: unknownDevice }, last: 'failed' },
];

test.each(ends)('04 §14.2: delivering, then $last', async ({ answer, last }) => {
  const { program, ann, bob } = await setScene();
  program.rule(['message.send'], answersWith({ status: 'delivering' }));
  const { messageId } = await ann.messages.send(bob.id, { text: 'on its way' });
  expect(await statusesOf(program.store, messageId)).toEqual(['waiting', 'sending', 'delivering']);
  program.rule(['message.delivery.status'], answersWith({ status: 'delivering' }));
  await ann.sync();
  program.rule(['message.delivery.status'], answersWith(answer));
  // A repeated answer is no change.
  await ann.sync();
  await ann.sync();
  const statuses = ['waiting', 'sending', 'delivering', last];
  expect(await statusesOf(program.store, messageId)).toEqual(statuses);
  const told = (await statusLog(program.store)).at(-1);
  expect(told).toMatchObject({
    conversation: { kind: 'person', id: bob.id },
    messageId,
    ...(last === 'failed' && { error: unknownDevice }),
  });
  expect((await ann.status()).outbox).toBe(0);
});

test('target_accepted at once, rejected, failed and cancelled end a message, each once', async () => {
  const { program, ann, bob } = await setScene();
  const accepted = await ann.messages.send(bob.id, { text: 'one' });
  program.rule(['message.send'], refusedOnce(400, 'bad_request'));
  const rejected = await ann.messages.post(bob.id, { text: 'two' });
  expect(await ann.messages.settled(rejected)).toMatchObject({ status: 'rejected' });
  program.offline();
  const restarted = await program.again();
  const cancelled = await restarted.messages.post(bob.id, { text: 'three' });
  const failed = await restarted.messages.post(bob.id, { text: 'four' });
  await restarted.messages.cancel(cancelled);
  // As after its end on another device.
  await program.store.write(async (tx) => {
    const { record: _ended, ...row } = await contactRow(tx, bob.id);
    await putContact(tx, row);
  });
  program.online();
  const again = await program.again();
  await again.sync();
  await again.sync();
  const ended = {
    [accepted.messageId]: ['waiting', 'sending', 'target_accepted'],
    [rejected.messageId]: ['waiting', 'sending', 'rejected'],
    [cancelled.messageId]: ['waiting', 'cancelled'],
    [failed.messageId]: ['waiting', 'failed'],
  };
  for (const [messageId, statuses] of Object.entries(ended)) {
    expect(await statusesOf(program.store, messageId)).toEqual(statuses);
  }
  // Nothing else was told: neither of consents nor of tasks.
  const ids = new Set((await statusLog(program.store)).map(({ messageId }) => messageId));
  expect([...ids].sort()).toEqual(Object.keys(ended).sort());
});

test('a message that is sealed again is told with the ID that post returned', async () => {
  const { program, ann, bob } = await setScene();
  program.rule(['message.send'], refusedOnce(400, 'device_unknown'));
  const { messageId } = await ann.messages.post(bob.id, { text: 'again' });
  const settled = await ann.messages.settled({ from: ann.id, messageId });
  expect(settled.messageId).not.toBe(messageId);
  expect(await statusesOf(program.store, messageId)).toEqual([
    'waiting',
    'sending',
    'target_accepted',
  ]);
  expect(await statusesOf(program.store, settled.messageId)).toEqual([]);
});
