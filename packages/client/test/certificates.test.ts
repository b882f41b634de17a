/** A device's certificate before its end: renewed with the stored account key, else announced. */
import { accountSigner } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { describe, expect, test } from 'vitest';
import { type Account, MemoryStore } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { network, relayWithClients } from './support/relay-with-clients.ts';
import { SteeredTransport } from './support/steered-transport.ts';

const world = relayWithClients();
const day = 86_400;

/** Days until the certificate of this device ends, as the relay has it. */
async function daysLeft(account: Account): Promise<number> {
  const device = (await account.devices.list()).find(({ isThisDevice }) => isThisDevice);
  return Math.ceil(((device?.expiresAt ?? 0) - world.clock.now()) / day);
}

/** Lets time pass until the certificate ends in so many days, and synchronizes. */
async function syncAt(account: Account, days: number) {
  world.clock.advance(((await daysLeft(account)) - days) * day);
  return await account.sync();
}

/** A device whose account key is not stored. */
async function bot(store = new MemoryStore()) {
  const accountKey = nodeRandom(32);
  const client = await world.client({ store });
  return { store, accountKey, account: await client.setUp({ accountKey }) };
}

describe('01 §8: where the account key is stored', () => {
  test('the certificate is renewed in its last 30 days, and not before', async () => {
    const account = await world.person();
    expect(await syncAt(account, 31)).toEqual([]);
    expect(await daysLeft(account)).toBe(31);
    expect(await syncAt(account, 30)).toEqual([]);
    expect(await daysLeft(account)).toBeGreaterThan(350);
    await account.messages.send(account.id, { text: 'still here' });
  });

  test('a device that was off until after the end renews it and goes on', async () => {
    const account = await world.person();
    world.clock.advance(400 * day);
    expect(await account.sync()).toEqual([]);
    expect(await daysLeft(account)).toBeGreaterThan(350);
  });

  test('after a failure it is tried again a day later, and the end is announced', async () => {
    const transport = new SteeredTransport(new NodeTransport({ ca: world.ca }));
    const account = await world.person({ prefer: 'http', transport });
    const tries = () => transport.bodies('device.state.publish').length;
    await syncAt(account, 31);
    transport.rules.set('device.state.publish', async () => {
      const body = new TextEncoder().encode('{"code":"state_conflict","message":"of the test"}');
      return { status: 409, contentType: 'application/json', body };
    });
    const before = tries();
    expect(await syncAt(account, 30)).toMatchObject([{ kind: 'device-expires', days: 30 }]);
    expect(tries()).toBe(before + 1);
    world.clock.advance(day - 60);
    expect(await account.sync()).toEqual([]);
    expect(tries()).toBe(before + 1);
    transport.rules.clear();
    world.clock.advance(60);
    expect(await account.sync()).toEqual([]);
    expect(await daysLeft(account)).toBeGreaterThan(350);
  });

  test('03 §4: a device that was removed meanwhile is not added again', async () => {
    const accountKey = nodeRandom(32);
    const phone = await world.person({ accountKey, keepKey: true });
    const laptop = await world.person({ accountKey, keepKey: true });
    await laptop.devices.remove(phone.deviceId);
    world.clock.advance(340 * day);
    await laptop.sync();
    await expect(phone.sync()).rejects.toMatchObject({ error: 'device_unknown' });
    expect((await laptop.devices.list()).map(({ deviceId }) => deviceId)).toEqual([
      laptop.deviceId,
    ]);
  });
});

describe('where the account key is not stored', () => {
  test('the end is announced 30, 7 and 1 days before, each once, also over restarts', async () => {
    const { account, store, accountKey } = await bot();
    const again = async () => await (await world.client({ store })).account();
    expect(await syncAt(account, 31)).toEqual([]);
    for (const [days, due] of [
      [30, 30],
      [29, undefined],
      [8, undefined],
      [7, 7],
      [2, undefined],
      [1, 1],
    ]) {
      const events = await syncAt(await again(), days as number);
      expect(events.map((event) => ('days' in event ? event.days : event))).toEqual(
        due === undefined ? [] : [due],
      );
      expect(await (await again()).sync()).toEqual([]);
    }
    const last = await again();
    await last.devices.renew({ accountKey: accountSigner(network, accountKey) });
    expect(await last.sync()).toEqual([]);
    // The next certificate is announced anew.
    expect(await syncAt(last, 30)).toMatchObject([{ kind: 'device-expires', days: 30 }]);
  });

  test('a device that was off for weeks gets the latest warning only', async () => {
    const { account } = await bot();
    expect(await syncAt(account, 5)).toMatchObject([{ kind: 'device-expires', days: 7 }]);
    expect(await syncAt(account, 4)).toEqual([]);
  });

  test('following announces it too', async () => {
    const { account } = await bot();
    world.clock.advance(((await daysLeft(account)) - 6) * day);
    for await (const event of account.follow()) {
      if (event.kind !== 'device-expires') continue;
      expect(event.days).toBe(7);
      expect(Math.ceil((event.expiresAt - world.clock.now()) / day)).toBe(6);
      break;
    }
  });
});
