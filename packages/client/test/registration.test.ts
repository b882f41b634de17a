/** 02 §9.4, 03 §4.3: a relay that takes new accounts by invite, as an app and a person meet it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeRandom } from '@posthouse/protocol/node';
import { Relay } from '@posthouse/relay';
import { expect, test } from 'vitest';
import { insertInvite, newInviteCode } from '../../relay/src/registration/index.ts';
import { temporaryFolder } from '../../relay/test/support/folder.ts';
import { MemoryStore } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { Person } from './support/courier.ts';
import { network, relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients({ registration: 'invite' });

async function invite(): Promise<string> {
  const { id, code, digest } = newInviteCode(nodeRandom);
  const { clock, storage } = world.relay.context;
  const times = { createdAt: clock.now(), expiresAt: clock.now() + 1_000 };
  const stored = { id, digest, uses: 1, used: 0, note: '', ...times };
  await storage.write('registration', (tx) => insertInvite(tx, stored, 1_000));
  return code;
}

/** A second relay, which takes every account, of the same registry. */
async function openRelay() {
  await using parts = new AsyncDisposableStack();
  const { path } = parts.use(temporaryFolder());
  const relay = parts.use(
    await Relay.start(
      {
        ...{ network: network.context, dev: true, data: path, log: 'silent' },
        registry: join(world.folder, 'relay', 'registry.json'),
        ...{ listen: '127.0.0.1:0', federation: { listen: '' } },
      },
      { clock: world.clock },
    ),
  );
  const ca = readFileSync(join(path, 'tls', 'ca.pem'), 'utf8') + world.ca;
  const transport = parts.use(new NodeTransport({ ca }));
  const kept = parts.move();
  const end = () => kept.disposeAsync();
  const { registry } = world;
  return { relayId: relay.relayId, registry, transport, [Symbol.asyncDispose]: end };
}

test('setUp without a code, or with a wrong one, says what to do, and goes on with a good one', async () => {
  const store = new MemoryStore();
  const client = await world.client({ store });
  const refused = {
    code: 'registration_refused',
    message: expect.stringMatching(
      /^the relay does not take this account: .*ask the operator of this relay .*pass an invite code/,
    ) as string,
  };
  await expect(client.setUp()).rejects.toMatchObject(refused);
  await expect(client.setUp({ inviteCode: 'wrong' })).rejects.toMatchObject(refused);
  const inviteCode = await invite();
  const ann = await client.setUp({ inviteCode });
  // The code is used up; the account's other devices and sessions need none.
  await expect((await world.client()).setUp({ inviteCode })).rejects.toMatchObject(refused);
  await ann.profiles.publish({ nickname: 'Ann', public_discovery: false });
  await ann.sync();
});

test('after a refusal another relay can be chosen', async () => {
  const client = await world.client();
  await expect(client.setUp()).rejects.toMatchObject({ code: 'registration_refused' });
  await expect(client.setUp({ relayId: `0x${'9'.repeat(40)}` })).rejects.toMatchObject({
    code: 'no_relay',
  });
});

test('03 §11.2: a key kept by a refused set-up is no new one: its account keeps its devices', async () => {
  await using other = await openRelay();
  const { registry, transport, relayId } = other;
  const accountKey = nodeRandom(32);
  const mia = await (await world.client({ registry, transport })).setUp({ accountKey, relayId });
  const client = await world.client({ registry, transport });
  const recovery = { accountKey, keepKey: true, recover: true, relayId: world.relay.relayId };
  await expect(client.setUp(recovery)).rejects.toMatchObject({ code: 'registration_refused' });
  expect((await client.setUp()).id).toBe(mia.id);
  expect(await mia.devices.list()).toMatchObject([{ isThisDevice: true }, { isThisDevice: false }]);
});

test('courier setup --invite', async () => {
  const ann = new Person(world, 'ann');
  const { exit, error } = await ann.run(['setup', ...ann.network]);
  expect(exit).toBe(7);
  expect(error).toContain('pass an invite code of its operator');
  const { relay } = await ann.json('setup', '--invite', await invite(), ...ann.network);
  expect(relay).toBe(world.relay.relayId);
});

test('03 §12.1: a move to a relay that takes accounts by invite needs a code, and uses it', async () => {
  await using open = await openRelay();
  const { registry, transport } = open;
  const store = new MemoryStore();
  await using client = await world.client({ registry, transport, store });
  const ann = await client.setUp({ relayId: open.relayId });
  const to = world.relay.relayId;
  const inviteCode = await invite();
  for (const code of [{}, { inviteCode: 'wrong' }]) {
    await expect(ann.home.move(to, code)).rejects.toMatchObject({ code: 'registration_refused' });
    expect(await ann.status()).toMatchObject({ homeRelay: open.relayId });
  }
  await ann.home.move(to, { inviteCode });
  expect(await ann.status()).toMatchObject({ homeRelay: to });
  await expect((await world.client()).setUp({ inviteCode })).rejects.toMatchObject({
    code: 'registration_refused',
  });
});
