/** Programs that die while they share with other own devices (decision 0039). */
import { expect, test } from 'vitest';
import { type Account, MemoryStore, type Store } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { anotherDevice, exchange } from '../groups/support.ts';
import { MortalProgram, ProgramDied } from '../support/mortal-program.ts';
import { relayWithClients, texts } from '../support/relay-with-clients.ts';

const world = relayWithClients({ host: { channels: true } });

const followed = async (account: Account) =>
  (await account.channels.list())
    .filter(({ followState }) => followState === 'followed')
    .map(({ id }) => id);

async function syncOnce(options: Parameters<typeof world.client>[0]): Promise<void> {
  await using client = await world.client(options);
  await (await client.account()).sync();
}

test('killed at any write, the older device has told the new one in the end', async () => {
  const ann = await world.person();
  const { id, link } = await ann.channels.create({ name: 'Survives' });
  for (let dieAt = 1; ; dieAt += 1) {
    const store = new MemoryStore();
    const phone = await world.person({ store });
    await phone.channels.follow(link);
    const client = await world.client();
    const approval = await phone.devices.approve(await client.requestDevice(phone.publicKey));
    const accountPublicKey = phone.publicKey;
    const laptop = await client.completeDevice(approval, { accountPublicKey });
    using transport = new NodeTransport({ ca: world.ca });
    const program = new MortalProgram(store, transport, dieAt);
    const options = { store: program.store, transport: program.transport };
    const died = await syncOnce(options).then(
      () => false,
      (error) => error instanceof ProgramDied || program.isDead,
    );
    await (await (await world.client({ store })).account()).sync();
    await exchange(laptop);
    expect(await followed(laptop)).toEqual([id]);
    if (!died) break;
  }
}, 120_000);

/** Too long for more than four of them in one message. */
const long = (name: string) => `${name} ${'.'.repeat(30_000)}`;
const names = async (account: Account) =>
  (await texts(account)).map((text) => text.split(' ', 1)[0]);

async function storedAccount(store: Store): Promise<Account> {
  return await (await world.client({ store })).account();
}

test('killed at any point, a hand-over is complete in the end, and nothing is twice', async () => {
  for (let dieAt = 1; ; dieAt += 1) {
    const store = new MemoryStore();
    const phone = await world.person({ store });
    for (const name of ['1', '2', '3', '4', '5', '6']) {
      await phone.messages.send(phone.id, { text: long(name) });
    }
    const laptop = await anotherDevice(world, phone);
    using transport = new NodeTransport({ ca: world.ca });
    const program = new MortalProgram(store, transport, dieAt);
    const begin = async () => {
      const { store: dying, transport: over } = program;
      await using client = await world.client({ store: dying, transport: over });
      await (await client.account()).devices.handOver(laptop.deviceId);
    };
    const hasDied = await begin().then(
      () => false,
      () => true,
    );
    expect(hasDied).toBe(program.isDead);
    const again = await storedAccount(store);
    const left = await store.read((tx) => tx.list('hand-overs'));
    const isDone = (await store.read((tx) => tx.list('handed-over'))).length > 0;
    if (left.length === 0 && !isDone) await again.devices.handOver(laptop.deviceId);
    else await again.sync();
    await laptop.sync();
    expect(await names(laptop)).toEqual(['1', '2', '3', '4', '5', '6']);
    if (!hasDied) break;
  }
}, 120_000);
