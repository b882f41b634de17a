/** Changing the home relay: two relays of one registry (03 §12). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { staticRegistry } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { Relay } from '@posthouse/relay';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RelayData } from '../../relay/test/support/engine.ts';
import { NodeTransport } from '../src/node.ts';
import { network, relayWithClients, texts, withoutStatus } from './support/relay-with-clients.ts';

const world = relayWithClients();
let data: RelayData;
let second: Relay;
beforeAll(async () => {
  data = await RelayData.empty();
  second = await Relay.start(
    {
      ...data.config,
      network: network.context,
      dev: true,
      registry: join(world.folder, 'relay', 'registry.json'),
      listen: '127.0.0.1:0',
      federation: { listen: '' },
      log: 'silent',
    },
    { clock: world.clock },
  );
});
afterAll(async () => {
  await second[Symbol.asyncDispose]();
  await data[Symbol.asyncDispose]();
});

/** An account with its home on the first relay, which can reach both. */
async function reachingBoth() {
  const ca = readFileSync(join(data.path, 'tls', 'ca.pem'), 'utf8') + world.ca;
  const file = readFileSync(join(world.folder, 'relay', 'registry.json'), 'utf8');
  const registry = staticRegistry(network, parseJson(file));
  const transport = new NodeTransport({ ca });
  return { registry, transport };
}

async function person(options: { accountKey?: Uint8Array } = {}) {
  const both = await reachingBoth();
  return await world.person({ ...both, ...options, relayId: world.relay.relayId });
}

test('03 §11.2: a relay that does not know an account costs it no devices', async () => {
  const accountKey = nodeRandom(32);
  const phone = await person({ accountKey });
  const laptop = await world.client(await reachingBoth());
  const account = await laptop.setUp({ accountKey, relayId: second.relayId });
  expect(await account.status()).toMatchObject({ homeRelay: world.relay.relayId });
  const devices = await phone.devices.list();
  expect(devices.map(({ deviceId }) => deviceId).sort()).toEqual(
    [phone.deviceId, account.deviceId].sort(),
  );
});

test('03 §12.1: device, profile and new messages go to the new relay', async () => {
  const ann = await person();
  await ann.profiles.publish({ nickname: 'Ann', public_discovery: true });
  await ann.messages.send(ann.id, { text: 'on the old relay' });
  await ann.home.move(second.relayId);
  expect(await ann.status()).toMatchObject({ homeRelay: second.relayId, position: -1 });
  expect(await ann.devices.list()).toMatchObject([{ deviceId: ann.deviceId, isValidNow: true }]);
  expect(await ann.profiles.resolve(ann.id)).toMatchObject({ nickname: 'Ann' });
  await ann.messages.send(ann.id, { text: 'on the new relay' });
  await ann.sync();
  expect(await texts(ann)).toEqual(['on the old relay', 'on the new relay']);
});

test('03 §12.2: what stayed on the old relay can still be read, and nothing twice', async () => {
  const ann = await person();
  await ann.messages.send(ann.id, { text: 'one' });
  await ann.sync();
  await ann.messages.send(ann.id, { text: 'two' });
  await ann.home.move(second.relayId);
  expect(withoutStatus(await ann.sync({ formerRelays: true }))).toEqual([]);
  expect(await texts(ann)).toEqual(['one', 'two']);
});

test('03 §12.2: moving back goes on where the timeline was', async () => {
  const ann = await person();
  await ann.messages.send(ann.id, { text: 'before' });
  await ann.sync();
  const { position } = await ann.status();
  await ann.home.move(second.relayId);
  await ann.home.move(world.relay.relayId);
  await ann.messages.send(ann.id, { text: 'after' });
  await ann.sync();
  expect((await ann.status()).position).toBeGreaterThan(position);
  expect(await texts(ann)).toEqual(['before', 'after']);
});

test('04 §18.3: a former relay that went back changes nothing at the home relay', async () => {
  const ann = await person();
  await ann.messages.send(ann.id, { text: 'before' });
  await ann.sync();
  await ann.home.move(second.relayId);
  await ann.messages.send(ann.id, { text: 'after' });
  await ann.sync();
  const { position } = await ann.status();
  const { relayId } = world.relay;
  // The storage of the former relay forgets the account's timeline.
  await world.relay.context.storage.write(`account:${ann.id}`, async (tx) => {
    await tx.run('DELETE FROM timeline_records WHERE account = ?', ann.id);
    await tx.run('DELETE FROM timeline_boxes WHERE account = ?', ann.id);
    await tx.run('UPDATE timeline_heads SET head = -1 WHERE account = ?', ann.id);
  });
  const gap = { kind: 'timeline-gap', relayId, cause: 'rollback' };
  expect(await ann.sync()).toEqual([gap]);
  expect(await ann.sync()).toEqual([]);
  expect(await ann.sync({ formerRelays: true })).toEqual([]);
  expect(await ann.status()).toMatchObject({ position, hasGap: false });
  expect(await texts(ann)).toEqual(['before', 'after']);
});

test('moving to where one is, or to no relay, changes nothing', async () => {
  const ann = await person();
  await expect(ann.home.move(world.relay.relayId)).rejects.toMatchObject({ code: 'invalid_input' });
  await expect(ann.home.move(`0x${'77'.repeat(20)}`)).rejects.toMatchObject({ code: 'no_relay' });
  expect((await ann.status()).homeRelay).toBe(world.relay.relayId);
});
