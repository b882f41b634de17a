/** Messages sent before a group closed can be read, in whatever order state and keys arrived. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { LyingRelay } from '../support/lying-relay.ts';
import { block, impatient, RestartableClient, unreachable } from '../support/restartable-client.ts';
import { anotherDevice, club, exchange, groupTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

describe('05 §11.3, §17.2: a closed group', () => {
  test('keys that were unavailable when its end was read are requested again', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    await ann.account.groups.rotate(id);
    await ann.account.groups.send(id, { text: 'the last word' });
    await ann.account.groups.close(id);
    block(relay, 'group.key.sync');
    await expect(bob.account.sync()).rejects.toMatchObject(unreachable);
    expect(await bob.account.groups.get(id)).toMatchObject({ state: { status: 'closed' } });
    relay.behave();
    await (await bob.again()).sync();
    expect(await groupTexts(bob.account, id)).toEqual(['the last word']);
  });

  test('boxes open when another own device sends their key later', async () => {
    const ann = await RestartableClient.begin(relay);
    const phone = ann.account;
    const tablet = await anotherDevice(relay.world, phone, impatient);
    const id = await club(phone);
    await exchange(phone, tablet);
    await phone.groups.rotate(id, { newOwnerKey: true });
    await phone.groups.send(id, { text: 'with the new key' });
    await phone.groups.close(id);
    await tablet.sync();
    expect(await tablet.groups.get(id)).toMatchObject({ state: { status: 'closed' } });
    await exchange(phone, tablet);
    await tablet.sync();
    expect(await groupTexts(tablet, id)).toEqual(['with the new key']);
  });

  test('pending messages are not sent to it', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    await ann.account.groups.close(id);
    relay.asked.clear();
    const late = { code: 'not_permitted' };
    await expect(ann.account.groups.send(id, { text: 'late' })).rejects.toMatchObject(late);
    expect(relay.asked.get('group.message.send')).toBeUndefined();
    await expect(bob.account.groups.send(id, { text: 'later' })).rejects.toMatchObject(late);
    expect(relay.asked.get('group.message.send')).toBe(1);
  });

  test('no request is made once nothing is missing', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    await ann.account.groups.close(id);
    await bob.account.sync();
    const before = [relay.asked.get('group.sync'), relay.asked.get('group.key.sync')];
    await bob.account.sync();
    expect([relay.asked.get('group.sync'), relay.asked.get('group.key.sync')]).toEqual(before);
  });
});
