/** Programs that die while they share with other own devices (decision 0039). */
import { expect, test } from 'vitest';
import { type Account, MemoryStore } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { exchange } from '../groups/support.ts';
import { MortalProgram, ProgramDied } from '../support/mortal-program.ts';
import { relayWithClients } from '../support/relay-with-clients.ts';

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
