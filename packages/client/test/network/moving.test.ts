/** Moving to another relay: answers that get lost, several devices, former relays (03 §12, 07 §B12). */
import { accountSigner } from '@posthouse/protocol';
import { canonicalJson, parseJson } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { type ClientOptions, RelayUnreachable } from '../../src/index.ts';
import { exchange } from '../groups/support.ts';
import { network, texts } from '../support/relay-with-clients.ts';
import { impatient, unreachable } from '../support/restartable-client.ts';
import {
  answeredBy,
  lostAnswer,
  lostRequest,
  SteeredTransport,
} from '../support/steered-transport.ts';
import { relaysWithClients } from './relays-with-clients.ts';

const world = relaysWithClients();
const publish = 'account.route.publish';

/** A person at A whose requests the test steers. */
async function steered() {
  const transport = new SteeredTransport(world.transport());
  const account = await world.person('a', { transport, ...impatient });
  transport.made.length = 0;
  return { account, transport };
}

/** The routes that a client sent, each content once. */
function routesOf(transport: SteeredTransport): string[] {
  const texts = transport.bodies(publish).map((body) => canonicalJson(parseJson(body)));
  return [...new Set(texts)];
}

/** An account at A with two devices that never retry, and its key. */
async function twoDevices(tabletOptions: Partial<ClientOptions> = impatient) {
  const key = nodeRandom(32);
  const options = { accountKey: key, keepKey: true, relayId: world.relayId('a') };
  const phone = await (await world.client(impatient)).setUp(options);
  const client = await world.client(tabletOptions);
  const request = await client.requestDevice(phone.publicKey);
  const approval = await phone.devices.approve(request);
  const tablet = await client.completeDevice(approval, { accountPublicKey: phone.publicKey });
  await exchange(tablet, phone);
  return { phone, tablet, accountKey: accountSigner(network, key) };
}

test('07 §B11: a route whose request was lost is sent again with the same bytes', async () => {
  const { account, transport } = await steered();
  const to = world.relayId('b');
  transport.rules.set(publish, lostRequest);
  for (let run = 0; run < 2; run += 1) {
    await expect(account.home.move(to)).rejects.toMatchObject(unreachable);
    expect(await account.home.unfinishedMove()).toMatchObject({
      step: 'publish',
      canCancel: false,
    });
    expect(await account.home.relayId()).toBe(world.relayId('a'));
  }
  transport.rules.clear();
  await account.home.move(to);
  expect(await account.home.relayId()).toBe(to);
  expect(transport.bodies(publish)).toHaveLength(3);
  expect(routesOf(transport)).toHaveLength(1);
});

test('03 §9: after a lost answer the relay is asked, and the move goes on', async () => {
  const { account, transport } = await steered();
  transport.rules.set(publish, lostAnswer);
  const asked = () => transport.made.map(({ method }) => method);
  // The route is in force, but the answer that enough relays store it is missing.
  await expect(account.home.move(world.relayId('b'))).rejects.toMatchObject(unreachable);
  expect(asked().indexOf('account.route.resolve')).toBeGreaterThan(asked().indexOf(publish));
  expect(await account.home.relayId()).toBe(world.relayId('b'));
  expect(await account.home.unfinishedMove()).toMatchObject({ step: 'replicate' });
  transport.rules.clear();
  await account.home.move(world.relayId('b'));
  expect(await account.home.unfinishedMove()).toBeUndefined();
  expect(routesOf(transport)).toHaveLength(1);
});

test('07 §B13: too few replicas do not undo the move; the same route is published again', async () => {
  const { account, transport } = await steered();
  await account.profiles.publish({ nickname: 'Ann', public_discovery: true });
  transport.rules.set(publish, answeredBy(503, 'temporarily_unavailable'));
  const refused = { code: 'relay_refused', error: 'temporarily_unavailable' };
  await expect(account.home.move(world.relayId('b'))).rejects.toMatchObject(refused);
  expect(await account.home.relayId()).toBe(world.relayId('b'));
  expect(await account.profiles.resolve(account.id)).toMatchObject({ nickname: 'Ann' });
  await account.messages.send(account.id, { text: 'at home already' });
  await expect(account.home.move(world.relayId('b'))).rejects.toMatchObject(refused);
  transport.rules.clear();
  await account.home.move(world.relayId('b'));
  expect(await account.home.unfinishedMove()).toBeUndefined();
  expect(routesOf(transport)).toHaveLength(1);
});

test('03 §4.2: a staged state that ran out is staged again, with a route of higher revision', async () => {
  const { account, transport } = await steered();
  transport.rules.set(publish, lostRequest);
  await expect(account.home.move(world.relayId('b'))).rejects.toMatchObject(unreachable);
  transport.rules.clear();
  world.clock.advance(86_401);
  await account.home.move(world.relayId('b'));
  expect(await account.home.relayId()).toBe(world.relayId('b'));
  expect(await account.devices.list()).toMatchObject([{ isValidNow: true }]);
});

test('a move can be cancelled until its route was sent', async () => {
  const { account, transport } = await steered();
  await expect(account.home.cancelMove()).rejects.toMatchObject({ code: 'invalid_input' });
  transport.rules.set('device.state.publish', lostRequest);
  await expect(account.home.move(world.relayId('b'))).rejects.toMatchObject(unreachable);
  expect(await account.home.unfinishedMove()).toMatchObject({
    from: world.relayId('a'),
    to: world.relayId('b'),
    step: 'stage',
    canCancel: true,
  });
  await account.home.cancelMove();
  expect(await account.home.unfinishedMove()).toBeUndefined();
  expect(await account.home.relayId()).toBe(world.relayId('a'));
  transport.rules.clear();
  transport.rules.set(publish, lostRequest);
  await expect(account.home.move(world.relayId('b'))).rejects.toMatchObject(unreachable);
  await expect(account.home.cancelMove()).rejects.toMatchObject({ code: 'move_conflict' });
});

test('one move at a time: another target is refused, or replaces the first', async () => {
  const { account, transport } = await steered();
  transport.rules.set(publish, lostAnswer);
  transport.rules.set('account.route.resolve', lostRequest);
  await expect(account.home.move(world.relayId('b'))).rejects.toMatchObject(unreachable);
  transport.rules.clear();
  const conflict = { code: 'move_conflict' };
  await expect(account.home.move(world.relayId('c'))).rejects.toMatchObject(conflict);
  // B is the home without this device's knowledge.
  transport.made.length = 0;
  await account.home.move(world.relayId('c'), { replace: true });
  expect(await account.home.relayId()).toBe(world.relayId('c'));
  expect(await account.home.unfinishedMove()).toBeUndefined();
  await account.messages.send(account.id, { text: 'at C' });
  await account.sync();
  expect(await texts(account)).toEqual(['at C']);
  const read = transport.made.filter(({ method }) => method === 'message.timeline.sync');
  expect(read.some(({ url }) => url.startsWith(world.endpoint('b')))).toBe(true);
});

test.each([
  ['never arrived', lostRequest],
  ['is in force without this device knowing', lostAnswer],
])('07 §B11: a move whose route %s is replaced by one back to the home', async (_case, rule) => {
  const { account, transport } = await steered();
  const [old, to] = [world.relayId('a'), world.relayId('b')];
  transport.rules.set(publish, rule);
  transport.rules.set('account.route.resolve', lostRequest);
  await expect(account.home.move(to)).rejects.toThrow();
  transport.rules.clear();
  await expect(account.home.move(old)).rejects.toMatchObject({ code: 'move_conflict' });
  expect((await account.home.preview(old)).problems).toEqual([`a move to ${to} is not finished`]);
  await account.home.move(old, { replace: true });
  expect(await account.home.unfinishedMove()).toBeUndefined();
  expect(await account.home.relayId()).toBe(old);
  const [sent, back] = routesOf(transport).map((text) => JSON.parse(text));
  expect(back).toMatchObject({ relay_id: old });
  expect(back.revision).toBeGreaterThan(sent.revision);
  await account.messages.send(account.id, { text: 'still here' });
  await account.sync();
  expect(await texts(account)).toEqual(['still here']);
  // Nothing keeps the account there when it moves again.
  await account.home.move(to);
  expect(await account.home.relayId()).toBe(to);
});

test('07 §B11: a second device that moves elsewhere learns of the first move, and may move on', async () => {
  const { phone, tablet, accountKey } = await twoDevices();
  await phone.home.move(world.relayId('b'));
  await expect(tablet.home.move(world.relayId('c'), { accountKey })).rejects.toMatchObject({
    code: 'move_conflict',
  });
  expect(await tablet.home.relayId()).toBe(world.relayId('b'));
  expect(await tablet.home.unfinishedMove()).toBeUndefined();
  await tablet.home.move(world.relayId('c'), { accountKey });
  await phone.sync();
  expect(await phone.home.relayId()).toBe(world.relayId('c'));
});

test('07 §B11: a second device that moves to the same relay joins, and publishes nothing', async () => {
  const { phone, tablet, accountKey } = await twoDevices();
  await phone.home.move(world.relayId('b'));
  const steps: string[] = [];
  await tablet.home.move(world.relayId('b'), {
    accountKey,
    progress: ({ step }) => steps.push(step),
  });
  expect(steps).toEqual(['last-sync']);
  expect(await tablet.home.relayId()).toBe(world.relayId('b'));
});

test('07 §B11: two devices that move at once end at one home, without a conflict', async () => {
  const { phone, tablet, accountKey } = await twoDevices();
  await Promise.allSettled([
    phone.home.move(world.relayId('b')),
    tablet.home.move(world.relayId('c'), { accountKey }),
  ]);
  for (const device of [phone, tablet]) {
    const begun = await device.home.unfinishedMove();
    if (begun !== undefined) {
      await device.home.move(begun.to, { accountKey }).catch(() => undefined);
    }
  }
  await exchange(phone, tablet);
  expect(await phone.home.relayId()).toBe(await tablet.home.relayId());
  expect(await phone.home.unfinishedMove()).toBeUndefined();
  expect(await tablet.home.unfinishedMove()).toBeUndefined();
  await phone.messages.send(phone.id, { text: 'to both' });
  await tablet.sync();
  expect(await texts(tablet)).toEqual(['to both']);
});

test('03 §12.1: a relay that is away prevents no move, and is read when it is back', async () => {
  const { phone: ann, tablet } = await twoDevices();
  await tablet.messages.send(ann.id, { text: 'at A, not read yet' });
  const gone = world.network.relay('a');
  await gone.stop();
  await ann.home.move(world.relayId('b'));
  await ann.messages.send(ann.id, { text: 'at B' });
  await ann.sync();
  expect(await texts(ann)).toEqual(['at B']);
  await gone.start();
  world.clock.advance(3_600);
  await ann.sync();
  expect((await texts(ann)).sort()).toEqual(['at A, not read yet', 'at B']);
});

test('03 §12: a device finds the new home also if the old relay is gone', async () => {
  const { phone, tablet } = await twoDevices();
  const gone = world.network.relay('a');
  await gone.stop();
  await expect(tablet.sync()).rejects.toMatchObject(unreachable);
  await phone.home.move(world.relayId('b'));
  await phone.messages.send(phone.id, { text: 'at B' });
  await tablet.sync();
  expect(await tablet.home.relayId()).toBe(world.relayId('b'));
  expect(await texts(tablet)).toEqual(['at B']);
  await gone.start();
});

test('03 §12: following goes on at the new home when the old relay is gone', async () => {
  const { phone, tablet } = await twoDevices();
  const stop = new AbortController();
  const events = tablet.follow({ signal: stop.signal });
  const seen = (async () => {
    for await (const event of events) if (event.kind === 'message') return;
  })();
  const gone = world.network.relay('a');
  await gone.stop();
  await phone.home.move(world.relayId('b'));
  await phone.messages.send(phone.id, { text: 'at B' });
  await seen;
  expect(await tablet.home.relayId()).toBe(world.relayId('b'));
  stop.abort();
  await gone.start();
});

test('03 §12.2: a former relay is read until it has nothing more, and not asked after that', async () => {
  const { account, transport } = await steered();
  await account.messages.send(account.id, { text: 'at A' });
  await account.home.move(world.relayId('b'));
  await account.sync();
  await account.sync();
  transport.made.length = 0;
  await account.sync();
  const atA = transport.made.filter(({ url }) => url.startsWith(world.endpoint('a')));
  expect(atA).toEqual([]);
});

test('03 §12.2: a message that the old relay never got is submitted at the new one, once', async () => {
  const { account, transport } = await steered();
  transport.rules.set('message.send', lostRequest);
  await expect(account.messages.send(account.id, { text: 'one' })).rejects.toMatchObject(
    unreachable,
  );
  transport.rules.set('message.send', lostAnswer);
  await expect(account.messages.send(account.id, { text: 'two' })).rejects.toMatchObject(
    unreachable,
  );
  // The last synchronization at A would send them again.
  transport.rules.set('message.send', lostRequest);
  await account.home.move(world.relayId('b')).catch(() => undefined);
  transport.rules.clear();
  await account.home.move(world.relayId('b')).catch(() => undefined);
  await account.sync();
  await account.sync();
  expect((await account.status()).outbox).toBe(0);
  expect((await texts(account)).sort()).toEqual(['one', 'two']);
  const statuses = (await account.messages.list()).map(({ status }) => status);
  expect(statuses).toEqual(['target_accepted', 'target_accepted']);
  const ids = transport.bodies('message.send').map((body) => JSON.parse(body).envelope.message_id);
  expect(new Set(ids).size).toBe(2);
});

test('03 §12.1: a device that does not know of the move sends at the new home at once', async () => {
  const { phone, tablet } = await twoDevices();
  await phone.home.move(world.relayId('b'));
  const sent = await tablet.messages.send(tablet.id, { text: 'one' });
  expect(sent.status).toBe('target_accepted');
  expect(await tablet.home.relayId()).toBe(world.relayId('b'));
  await phone.sync();
  expect(await texts(phone)).toEqual(['one']);
  expect((await tablet.status()).outbox).toBe(0);
});

test('03 §12.2: a message that the old relay accepted before the move is not taken for refused', async () => {
  const transport = new SteeredTransport(world.transport());
  const { phone, tablet } = await twoDevices({ transport, prefer: 'http' });
  transport.made.length = 0;
  transport.rules.set('message.send', async (send) => {
    transport.rules.clear();
    await send();
    await phone.home.move(world.relayId('b'));
    throw new RelayUnreachable('lost by the test', { outcomeUnknown: true });
  });
  const sent = await tablet.messages.send(tablet.id, { text: 'once' });
  expect(sent.status).toBe('target_accepted');
  expect(transport.bodies('message.send')).toHaveLength(2);
  for (const device of [phone, tablet]) {
    await device.sync();
    expect(await texts(device)).toEqual(['once']);
  }
});

test('03 §12.2: what the old relay refused waits while neither relay answers', async () => {
  const transport = new SteeredTransport(world.transport());
  const { phone, tablet } = await twoDevices({ ...impatient, transport });
  await phone.home.move(world.relayId('b'));
  transport.rules.set('message.delivery.status', lostRequest);
  await expect(tablet.messages.send(tablet.id, { text: 'later' })).rejects.toMatchObject(
    unreachable,
  );
  expect(await tablet.messages.list()).toMatchObject([{ status: 'sending' }]);
  transport.rules.clear();
  await tablet.sync();
  await tablet.sync();
  expect(await tablet.messages.list()).toMatchObject([{ status: 'target_accepted' }]);
});

test('what the preview says is what a move does, and the preview changes nothing', async () => {
  const { account, transport } = await steered();
  const preview = await account.home.preview(world.relayId('b'));
  expect(preview).toMatchObject({
    from: { relayId: world.relayId('a'), answers: true },
    to: { relayId: world.relayId('b'), clockAhead: expect.any(Number) },
    moves: { devices: 1, contacts: 0, profile: false },
    outbox: 0,
    problems: [],
  });
  expect(transport.made.map(({ method }) => method).filter((one) => /publish/.test(one))).toEqual(
    [],
  );
  expect((await account.home.preview(world.relayId('a'))).problems).toEqual([
    'that relay is the home relay already',
  ]);
  await expect(account.home.preview(`0x${'77'.repeat(20)}`)).rejects.toMatchObject({
    code: 'no_relay',
  });
});
