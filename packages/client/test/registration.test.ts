/** 02 §9.4, 03 §4.3: a relay that takes new accounts by invite, as an app and a person meet it. */
import { nodeRandom } from '@posthouse/protocol/node';
import { expect, test } from 'vitest';
import { insertInvite, newInviteCode } from '../../relay/src/registration/index.ts';
import { MemoryStore } from '../src/index.ts';
import { Person } from './support/courier.ts';
import { relayWithClients } from './support/relay-with-clients.ts';

const world = relayWithClients({ registration: 'invite' });

async function invite(): Promise<string> {
  const { id, code, digest } = newInviteCode(nodeRandom);
  const { clock, storage } = world.relay.context;
  const times = { createdAt: clock.now(), expiresAt: clock.now() + 1_000 };
  const stored = { id, digest, uses: 1, used: 0, note: '', ...times };
  await storage.write('registration', (tx) => insertInvite(tx, stored, 1_000));
  return code;
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

test('courier setup --invite', async () => {
  const ann = new Person(world, 'ann');
  const { exit, error } = await ann.run(['setup', ...ann.network]);
  expect(exit).toBe(7);
  expect(error).toContain('pass an invite code of its operator');
  const { relay } = await ann.json('setup', '--invite', await invite(), ...ann.network);
  expect(relay).toBe(world.relay.relayId);
});
