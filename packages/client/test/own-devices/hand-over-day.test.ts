/** A hand-over during everything else that an account does (decision 0039). */
import { expect, test, vi } from 'vitest';
import { type Account, type HandOverEvent, MemoryStore } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { anotherDevice, exchange } from '../groups/support.ts';
import { befriend, relayWithClients } from '../support/relay-with-clients.ts';
import { answeredBy, SteeredTransport } from '../support/steered-transport.ts';

const day = 86_400;
const world = relayWithClients({ limits: { accountDailyBytes: 700_000 } });
const patience = { timeout: 20_000 };

/** Bytes that a device hands over in a day. */
const budget = 8 * 2 ** 20;

/** A phone with stored messages of 100,000 bytes, a day ago, and another device. */
async function devices(count: number) {
  const store = new MemoryStore();
  const transport = new SteeredTransport(new NodeTransport({ ca: world.ca }));
  const retry = { attempts: 1, base: 1, cap: 1 };
  const phone = await world.person({ store, transport, retry });
  for (let index = 0; index < count; index += 1) {
    if (index % 4 === 3) world.clock.advance(day);
    await phone.messages.send(phone.id, { text: `${index} ${'x'.repeat(100_000)}` });
  }
  world.clock.advance(day);
  const laptop = await anotherDevice(world, phone);
  await exchange(phone, laptop);
  return { store, transport, phone, laptop, deviceId: laptop.deviceId };
}

/** Holds the next message back until it is released. */
function holdNext(transport: SteeredTransport) {
  const held = Promise.withResolvers<void>();
  const { promise, resolve: release } = Promise.withResolvers<void>();
  transport.rules.set('message.send', async (send) => {
    transport.rules.delete('message.send');
    held.resolve();
    await promise;
    return await send();
  });
  return { held: held.promise, release };
}

const handOver = (account: Account, id: string, progress?: (event: HandOverEvent) => void) =>
  account.devices.handOver(id, { ...(progress && { progress }) });

test('a day has room for a part of a hand-over, and the rest follows on the next days', async () => {
  const { store, phone, deviceId } = await devices(3);
  const today = Math.floor(world.clock.now() / day);
  const spent = { day: today, bytes: budget - 1, most: budget };
  await store.write((tx) => tx.put('hand-over-day', 'own', JSON.stringify(spent)));
  expect(await handOver(phone, deviceId)).toMatchObject({ sent: 1, total: 3, isComplete: false });
  await phone.sync();
  expect(await handOver(phone, deviceId)).toMatchObject({ sent: 1, isComplete: false });
  world.clock.advance(day);
  const events = await phone.sync();
  expect(events.at(-1)).toMatchObject({ kind: 'hand-over', sent: 3, isComplete: true });
});

test('02 §18: a hand-over that used up the day leaves room for what people write on the next ones', async () => {
  const { phone, deviceId } = await devices(11);
  const first = await handOver(phone, deviceId);
  expect(first).toMatchObject({ total: 11, isComplete: false });
  expect(first.sent).toBeGreaterThan(3);
  await phone.sync();
  world.clock.advance(day);
  await phone.sync();
  const second = await handOver(phone, deviceId);
  expect(second.sent).toBeGreaterThan(first.sent);
  expect(second.sent - first.sent).toBeLessThan(first.sent / 2);
  await phone.messages.send(phone.id, { text: 'important' });
});

test('sync waits neither for a hand-over under way nor for a relay that asks to wait', async () => {
  const { transport, phone, deviceId } = await devices(2);
  const { held, release } = holdNext(transport);
  let isOver = false;
  const handing = handOver(phone, deviceId).finally(() => {
    isOver = true;
  });
  await held;
  await phone.sync();
  expect(isOver).toBe(false);
  release();
  expect(await handing).toMatchObject({ sent: 2, isComplete: true });
  const stop = new AbortController();
  const aborted = phone.devices.handOver(deviceId, {
    signal: stop.signal,
    progress: () => stop.abort(new Error('stopped')),
  });
  await expect(aborted).rejects.toThrow('stopped');
  transport.rules.set('message.send', async () => {
    const error = { code: 'rate_limited', message: 'slow down', data: { retry_after: 50 } };
    const body = new TextEncoder().encode(JSON.stringify(error));
    return { status: 429, contentType: 'application/json', body };
  });
  const before = transport.bodies('message.send').length;
  await phone.sync();
  expect(transport.bodies('message.send')).toHaveLength(before + 1);
});

test('02 §10.5: a session that ended does not end a hand-over', async () => {
  const { transport, phone, deviceId } = await devices(2);
  transport.rules.set('message.send', answeredBy(401, 'unauthorized'));
  await expect(handOver(phone, deviceId)).rejects.toMatchObject({ error: 'unauthorized' });
  transport.rules.clear();
  const events = await phone.sync();
  expect(events.at(-1)).toMatchObject({ kind: 'hand-over', sent: 2, isComplete: true });
});

test('a second call shares the run under way: its progress, its end, and its own signal', async () => {
  const { transport, phone, deviceId } = await devices(2);
  const { held, release } = holdNext(transport);
  const first = handOver(phone, deviceId);
  await held;
  const stop = new AbortController();
  const aborted = phone.devices.handOver(deviceId, { signal: stop.signal });
  const seen: number[] = [];
  const second = handOver(phone, deviceId, ({ sent }) => void seen.push(sent));
  // Both wait by now for the run under way.
  for (let turn = 0; turn < 50; turn += 1) await new Promise((go) => setImmediate(go));
  stop.abort(new Error('stopped'));
  await expect(aborted).rejects.toThrow('stopped');
  release();
  const whole = { sent: 2, total: 2, isComplete: true };
  expect(await first).toMatchObject(whole);
  expect(await second).toMatchObject(whole);
  expect(seen).toEqual([1, 2]);
});

test('while a hand-over waits, what was read is shared with the other devices', async () => {
  const { transport, phone, deviceId } = await devices(2);
  const bob = await world.person();
  await befriend(phone, bob);
  const stop = new AbortController();
  const aborted = phone.devices.handOver(deviceId, {
    signal: stop.signal,
    progress: () => stop.abort(new Error('stopped')),
  });
  await expect(aborted).rejects.toThrow('stopped');
  const { held, release } = holdNext(transport);
  const end = new AbortController();
  const following = (async () => {
    for await (const _event of phone.follow({ signal: end.signal }));
  })();
  await held;
  const conversation = { kind: 'person', id: bob.id } as const;
  await bob.messages.send(phone.id, { text: 'hi' });
  await vi.waitFor(async () => {
    world.clock.advance(61);
    expect(await phone.conversations.get(conversation)).toMatchObject({ unread: 1 });
  }, patience);
  const before = transport.bodies('message.send').length;
  await phone.conversations.markRead(conversation);
  await vi.waitFor(() => {
    world.clock.advance(61);
    expect(transport.bodies('message.send').length).toBeGreaterThan(before);
  }, patience);
  release();
  end.abort();
  await following.catch(() => undefined);
});
