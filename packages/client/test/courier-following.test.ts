/** Commands that run on: slow readers, several programs on one folder, and what counts as read. */
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { AccountSession } from '../src/courier/client-session.ts';
import { followAfter, type ListedMessages } from '../src/courier/follow-messages.ts';
import { streamDrained } from '../src/courier/output.ts';
import type { AccountEvent } from '../src/events.ts';
import type { Message } from '../src/messages/message.ts';
import { contactsOfCourier, Person } from './support/courier.ts';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients();

/** A reader of output that takes nothing more until it goes on. */
class SlowReader {
  #gate = Promise.withResolvers<void>();
  #waits = 0;

  readonly drained = async () => {
    this.#waits += 1;
    await this.#gate.promise;
  };

  /** How often the command waited for this reader. */
  get waits(): number {
    return this.#waits;
  }

  goOn(): void {
    this.#gate.resolve();
  }
}

const textsOf = (objects: readonly { message?: { text?: string } }[]) =>
  objects.flatMap(({ message }) => message?.text ?? []);

test('a followed inbox writes no more while its reader is slow, and leaves nothing out', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  await bob.json('send', 'ann', 'listed');
  const reader = new SlowReader();
  const inbox = ann.start(['inbox', '--follow', '--json'], reader);
  await expect.poll(() => reader.waits).toBe(1);
  // Another program of the folder reads what arrives, and has finished with it.
  for (const text of ['one', 'two', 'three']) await bob.json('send', 'ann', text);
  expect((await ann.json('inbox', '--keep-unread')).messages).toHaveLength(4);
  expect(textsOf(inbox.objects())).toEqual(['listed']);
  reader.goOn();
  await expect.poll(() => textsOf(inbox.objects())).toEqual(['listed', 'one', 'two', 'three']);
  await bob.json('send', 'ann', 'four');
  await expect.poll(() => textsOf(inbox.objects())).toHaveLength(5);
  const unread = inbox.objects().flatMap(({ message }) => message?.unread ?? []);
  expect(unread).toEqual([true, true, true, true, true]);
  inbox.stop();
  expect(await inbox.exit).toBe(0);
  // What was shown is read, also what another program had read from the relay.
  const { messages } = await ann.json('inbox');
  expect(messages.some((each: object) => 'unread' in each)).toBe(false);
});

test('serve reads no request while the reader of its answers is slow', async () => {
  const [ann] = await contactsOfCourier(world);
  const reader = new SlowReader();
  const served = ann.start(['serve', '--stdio'], reader);
  for (const id of [1, 2, 3]) {
    served.input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method: 'whoami' })}\n`);
  }
  const answered = () => served.objects().flatMap(({ id }) => id ?? []);
  await expect.poll(answered).toEqual([1]);
  await expect.poll(() => reader.waits).toBeGreaterThan(1);
  expect(answered()).toEqual([1]);
  reader.goOn();
  await expect.poll(answered).toEqual([1, 2, 3]);
  served.input.end();
  expect(await served.exit).toBe(0);
});

test('a stream is waited for until it has room, is closed or fails, or the signal aborts', async () => {
  const never = new AbortController().signal;
  const full = () => {
    const stream = new PassThrough({ highWaterMark: 1 });
    stream.on('error', () => {}).write('longer');
    return stream;
  };
  await streamDrained(new PassThrough(), never);
  const [read, closed, failed, aborted] = [full(), full(), full(), full()];
  const stop = new AbortController();
  const waits = [
    ...[read, closed, failed].map((stream) => streamDrained(stream, never)),
    streamDrained(aborted, stop.signal),
  ];
  let isEarly = true;
  const all = Promise.all(waits).then(() => isEarly);
  read.resume();
  closed.destroy();
  failed.destroy(new Error('gone'));
  await Promise.all(waits.slice(0, 3));
  isEarly = false;
  stop.abort();
  expect(await all).toBe(false);
  expect([read, aborted].map((stream) => stream.listenerCount('drain'))).toEqual([
    new PassThrough().listenerCount('drain'),
    new PassThrough().listenerCount('drain'),
  ]);
});

test('a message of the list whose event comes later is not shown twice; its own are left out', async () => {
  const message = (messageId: string, order: number, fromDeviceId = 'other') =>
    ({ from: 'bob', messageId, order, fromDeviceId }) as Message;
  const [a, b, c, mine] = [
    message('a', 1),
    message('b', 2),
    message('c', 3),
    message('mine', 4, 'own'),
  ];
  const events = [
    { kind: 'connection', state: 'connected', transport: 'http' },
    ...[a, c, message('d', 5)].map((each) => ({ kind: 'message', message: each })),
  ] as AccountEvent[];
  const account = {
    deviceId: 'own',
    async *follow() {
      yield* events;
    },
    messages: {
      list: async ({ after }: { after: number }) =>
        [a, b, c, mine].filter(({ order }) => order > after),
    },
  };
  const session = { account, signal: new AbortController().signal } as unknown as AccountSession;
  const listed: ListedMessages = { shown: [a], peer: undefined, through: 1 };
  const shown: string[] = [];
  for await (const event of followAfter(session, listed)) {
    shown.push(event.kind === 'message' ? event.message.messageId : event.kind);
  }
  expect(shown).toEqual(['b', 'c', 'connection', 'd']);
});

test('chat marks nothing as read while older unread messages are not shown, and says so', async () => {
  const [ann, bob] = await contactsOfCourier(world);
  for (const text of ['one', 'two', 'three']) await bob.json('send', 'ann', text);
  const chat = ann.start(['chat', 'bob', '--limit', '1']);
  await expect.poll(() => chat.written.error).toContain('2 older unread messages are not shown');
  expect(chat.written.out).toContain('three');
  await bob.json('send', 'ann', 'four');
  await expect.poll(() => chat.written.out).toContain('four');
  chat.input.end();
  expect(await chat.exit).toBe(0);
  const inbox = async (limit: string) => {
    const { messages } = await ann.json('inbox', '--with', 'bob', '--limit', limit);
    return messages.map(({ unread = false }: { unread?: boolean }) => unread);
  };
  expect(await inbox('3')).toEqual([true, true, true]);
  expect(await inbox('4')).toEqual([true, true, true, true]);
  expect(await inbox('4')).toEqual([false, false, false, false]);
});

test('03 §14: accept takes the document of another client; chat tells of a request it reads first', async () => {
  const [ann] = await contactsOfCourier(world);
  const carl = new Person(world, 'carl');
  await carl.json('setup', ...carl.network);
  const { document } = await ann.json('invite');
  expect(JSON.parse((await ann.run(['invite', '--document'])).out)).toMatchObject({
    $type: 'svc.contact.invite',
    inviter: document.inviter,
  });
  const asked = await carl.run(['accept', `\n${JSON.stringify(document, null, 2)}`]);
  expect(asked).toMatchObject({ exit: 0, out: expect.stringContaining('waiting for the answer') });
  const chat = ann.start(['chat', 'bob']);
  chat.input.end();
  expect(await chat.exit).toBe(0);
  expect(chat.written.error).toContain('asks to be a contact');
});
