/** What people on different relays do with each other, with whole clients over both transports. */
import { describe, expect, test } from 'vitest';
import type { Account } from '../../src/index.ts';
import { postTexts } from '../channels/support.ts';
import { admit, groupTexts } from '../groups/support.ts';
import { texts } from '../support/relay-with-clients.ts';
import { relaysWithClients } from './relays-with-clients.ts';

const world = relaysWithClients();

/** Syncs until something holds: what comes from another relay comes a moment later. */
async function syncUntil(account: Account, holds: () => Promise<boolean>): Promise<void> {
  const sync = async () => {
    await account.sync();
    return await holds();
  };
  await expect.poll(sync, { timeout: 20_000 }).toBe(true);
}

const isContact = async (account: Account, other: Account) =>
  (await account.contacts.get(other.id)).status === 'active';

/** Makes two accounts contacts of each other. */
async function befriend(ann: Account, bob: Account): Promise<void> {
  await bob.contacts.join((await ann.contacts.invite()).text);
  await approve(ann, bob);
}

/** Approves a contact request that is on its way. */
async function approve(ann: Account, bob: Account): Promise<void> {
  const isAsked = async () => {
    const events = await ann.sync();
    return events.some((event) => event.kind === 'contact-request' && event.account === bob.id);
  };
  await expect.poll(isAsked, { timeout: 20_000 }).toBe(true);
  await ann.contacts.approve(bob.id);
  await syncUntil(bob, () => isContact(bob, ann));
}

/** Syncs until the account shows these texts. */
async function shows(account: Account, expected: readonly string[]): Promise<void> {
  await syncUntil(account, async () => (await texts(account)).length >= expected.length);
  expect(await texts(account)).toEqual(expected);
}

describe.each(['websocket', 'http'] as const)('over %s', (prefer) => {
  /** Three contacts, each at home on a relay of its own. */
  async function three(): Promise<readonly [Account, Account, Account]> {
    const people = [
      await world.person('a', { prefer }),
      await world.person('b', { prefer }),
      await world.person('c', { prefer }),
    ] as const;
    const [ann, bob, cem] = people;
    await befriend(ann, bob);
    await befriend(bob, cem);
    return people;
  }

  test('03 §13 to §15: an invite across relays, then messages both ways', async () => {
    const [ann, bob, cem] = await three();
    await ann.messages.send(bob.id, { text: 'hello Bob' });
    await shows(bob, ['hello Bob']);
    await bob.messages.send(ann.id, { text: 'hello Ann' });
    await shows(ann, ['hello Bob', 'hello Ann']);
    await cem.messages.send(bob.id, { text: 'hello from C' });
    await shows(bob, ['hello Bob', 'hello Ann', 'hello from C']);
  });

  test('03 §13.1: public discovery of an account on another relay', async () => {
    const [ann, bob] = [await world.person('a', { prefer }), await world.person('b', { prefer })];
    await expect(bob.contacts.request(ann.id)).rejects.toMatchObject({ error: 'forbidden' });
    await ann.profiles.publish({ nickname: 'Ann', public_discovery: true });
    expect(await bob.profiles.resolve(ann.id)).toMatchObject({ nickname: 'Ann' });
    await bob.contacts.request(ann.id);
    await approve(ann, bob);
    expect(await isContact(ann, bob)).toBe(true);
  });

  test('05: a group on a third relay, with members of all three', async () => {
    const [ann, bob, cem] = await three();
    const relayId = world.relayId('c');
    const { id } = await ann.groups.create({ name: 'Club', relayId });
    await admit(ann, id, [bob, cem]);
    await bob.groups.send(id, { text: 'from B' });
    await cem.groups.send(id, { text: 'from C' });
    await ann.groups.rotate(id);
    await bob.sync();
    await bob.groups.send(id, { text: 'after the rotation' });
    for (const reader of [ann, bob, cem]) {
      await reader.sync();
      expect((await groupTexts(reader, id)).slice(-1)).toEqual(['after the rotation']);
    }
    await ann.groups.remove(id, [bob.id]);
    expect(await bob.sync()).toContainEqual({ kind: 'group-ended', groupId: id });
  });

  test('06: a channel on a third relay, with a moderator of another', async () => {
    const [ann, bob, cem] = await three();
    const relayId = world.relayId('c');
    const { id, link } = await ann.channels.create({ name: 'News', relayId });
    await ann.channels.update(id, { moderators: [bob.id] });
    await bob.channels.follow(link);
    await cem.channels.follow(link);
    await ann.channels.send(id, { text: 'one' });
    await bob.channels.sync(id);
    await bob.channels.send(id, { text: 'two' });
    for (const reader of [ann, bob, cem]) {
      await reader.sync();
      expect(await postTexts(reader, id)).toEqual(['one', 'two']);
    }
  });

  test('03 §12: an account moves to another relay; its contacts go on as before', async () => {
    const [ann, bob] = await three();
    await ann.messages.send(bob.id, { text: 'before' });
    await shows(bob, ['before']);
    await bob.home.move(world.relayId('c'));
    expect(await bob.status()).toMatchObject({ homeRelay: world.relayId('c') });
    await ann.messages.send(bob.id, { text: 'after' });
    // The old relay says that it is not responsible; the next try is seconds later.
    await syncUntil(bob, async () => {
      world.clock.advance(2);
      return (await texts(bob)).length === 2;
    });
    await shows(bob, ['before', 'after']);
    await bob.messages.send(ann.id, { text: 'from my new home' });
    await shows(ann, ['before', 'after', 'from my new home']);
  });

  test('05 §16: a group that an own device shares is read at once at a followed host', async () => {
    const phone = await world.person('a');
    const client = await world.client();
    const approval = await phone.devices.approve(await client.requestDevice(phone.publicKey));
    const laptop = await client.completeDevice(approval, { accountPublicKey: phone.publicKey });
    const stop = new AbortController();
    const joined: string[] = [];
    const following = (async () => {
      for await (const event of laptop.follow({ signal: stop.signal })) {
        if (event.kind === 'group-joined') joined.push(event.groupId);
      }
    })();
    for (const name of ['makes the host followed', 'is at the same host']) {
      const { id } = await phone.groups.create({ name, relayId: world.relayId('b') });
      await phone.sync();
      await expect.poll(() => joined, { timeout: 30_000 }).toContain(id);
    }
    stop.abort();
    await following;
  });
});
