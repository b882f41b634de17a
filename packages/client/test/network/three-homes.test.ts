/** The story of an account that lives on three relays, as its contacts see it (03 §12, 07 §B12). */
import { expect, test } from 'vitest';
import type { Account, MoveStep } from '../../src/index.ts';
import { postTexts } from '../channels/support.ts';
import { admit, exchange, groupTexts } from '../groups/support.ts';
import { texts } from '../support/relay-with-clients.ts';
import { type RelayName, relaysWithClients } from './relays-with-clients.ts';

const world = relaysWithClients();

/** Syncs until something holds; what is to be tried again becomes due. */
async function syncUntil(account: Account, holds: () => Promise<boolean>): Promise<void> {
  const sync = async () => {
    await account.sync();
    if (await holds()) return true;
    world.clock.advance(2);
    return false;
  };
  await expect.poll(sync, { timeout: 30_000 }).toBe(true);
}

async function befriend(mia: Account, other: Account): Promise<void> {
  await other.contacts.join((await mia.contacts.invite()).text);
  const isAsked = async () => {
    const events = await mia.sync();
    return events.some((event) => event.kind === 'contact-request' && event.account === other.id);
  };
  await expect.poll(isAsked, { timeout: 20_000 }).toBe(true);
  await mia.contacts.approve(other.id);
  const isContact = async () => (await other.contacts.get(mia.id)).status === 'active';
  await syncUntil(other, isContact);
}

/** A contact of Mia, with all that was said between the two. */
class Contact {
  readonly name: string;
  readonly account: Account;
  readonly said: string[] = [];

  constructor(name: string, account: Account) {
    this.name = name;
    this.account = account;
  }

  /** Writes to Mia, whose relay may be another one by now. */
  async write(mia: Account, when: string): Promise<void> {
    const text = `${this.name} to Mia, ${when}`;
    this.said.push(text);
    await this.account.messages.send(mia.id, { text });
  }

  /** Waits for an answer, and returns what is seen of Mia. */
  async look(mia: Account): Promise<string> {
    const { account, said } = this;
    await syncUntil(account, async () => {
      const isComplete = (await texts(account)).length >= said.length;
      return isComplete && (await account.status()).outbox === 0;
    });
    // Each message once, in the order in which it was said.
    expect(await texts(account)).toEqual(said);
    const statuses = (await account.messages.list())
      .filter(({ from }) => from === account.id)
      .map(({ status }) => status);
    const { nickname } = (await account.profiles.resolve(mia.id)) ?? {};
    const delivered = [...new Set(statuses)].join(' and ');
    const received = said.length - statuses.length;
    return `${this.name}: ${statuses.length} sent, ${delivered}; ${received} received; ${nickname}`;
  }
}

test('03 §12: an account lives on A, B, C and on A again, and its contacts miss nothing', async () => {
  const mia = await world.person('a');
  const tablet = await pair(mia);
  const [ada, ben, cem] = [
    new Contact('Ada at A', await world.person('a')),
    new Contact('Ben at B', await world.person('b')),
    new Contact('Cem at C', await world.person('c')),
  ] as const;
  const contacts = [ada, ben, cem];
  await mia.profiles.publish({ nickname: 'Mia', public_discovery: false });
  for (const { account } of contacts) await befriend(mia, account);
  const club = await ben.account.groups.create({ name: 'Club', relayId: world.relayId('b') });
  await admit(ben.account, club.id, [mia, cem.account]);
  const news = await mia.channels.create({ name: 'News', relayId: world.relayId('a') });
  for (const { account } of contacts) await account.channels.follow(news.link);

  const story: string[] = [];
  const published: string[] = [];

  /** Everyone writes, Mia answers, and everyone looks. */
  const talk = async (home: RelayName, when: string) => {
    for (const contact of contacts) {
      await contact.write(mia, when);
      const count = contacts.flatMap(({ said }) => said).length;
      await syncUntil(mia, async () => (await texts(mia)).length === count);
      const text = `Mia to ${contact.name}, ${when}`;
      await mia.messages.send(contact.account.id, { text });
      contact.said.push(text);
    }
    await mia.groups.send(club.id, { text: when });
    await mia.channels.send(news.id, { text: when });
    published.push(when);
    story.push(`Mia lives at ${home.toUpperCase()}`);
    for (const contact of contacts) story.push(await contact.look(mia));
    for (const { account } of contacts) {
      expect(await postTexts(account, news.id)).toEqual(published);
    }
    for (const { account } of [ben, cem]) {
      expect(await groupTexts(account, club.id)).toEqual(published);
    }
    // Her other device found the new home by itself, and has the same conversations.
    const count = contacts.flatMap(({ said }) => said).length;
    await syncUntil(tablet, async () => (await texts(tablet)).length === count);
    expect((await texts(tablet)).sort()).toEqual((await texts(mia)).sort());
    for (const device of [mia, tablet]) {
      await syncUntil(device, async () => (await device.status()).outbox === 0);
      expect(await device.home.relayId()).toBe(world.relayId(home));
      const listed = (await device.devices.list()).filter(({ isValidNow }) => isValidNow);
      expect(listed.map(({ deviceId }) => deviceId).sort()).toEqual(
        [mia.deviceId, tablet.deviceId].sort(),
      );
    }
  };

  /** Moves; at three steps of it a contact writes. */
  const move = async (home: RelayName) => {
    const writing: Promise<void>[] = [];
    const writers: Partial<Record<MoveStep, Contact>> = {
      'last-sync': ada,
      publish: ben,
      profile: cem,
    };
    await mia.home.move(world.relayId(home), {
      progress: ({ step }) => {
        const writer = writers[step];
        if (writer !== undefined) writing.push(writer.write(mia, `while she moves (${step})`));
      },
    });
    await Promise.all(writing);
    story.push(`Mia moves to ${home.toUpperCase()}, and all three write meanwhile`);
  };

  await talk('a', 'the first time');
  for (const home of ['b', 'c', 'a'] as const) {
    await move(home);
    await talk(home, `at ${home.toUpperCase()}`);
  }
  const all = contacts.flatMap(({ said }) => said);
  expect((await texts(mia)).sort()).toEqual(all.sort());
  expect(await groupTexts(mia, club.id)).toEqual(published);
  expect(story).toEqual([
    'Mia lives at A',
    'Ada at A: 1 sent, target_accepted; 1 received; Mia',
    'Ben at B: 1 sent, target_accepted; 1 received; Mia',
    'Cem at C: 1 sent, target_accepted; 1 received; Mia',
    'Mia moves to B, and all three write meanwhile',
    'Mia lives at B',
    'Ada at A: 3 sent, target_accepted; 2 received; Mia',
    'Ben at B: 3 sent, target_accepted; 2 received; Mia',
    'Cem at C: 3 sent, target_accepted; 2 received; Mia',
    'Mia moves to C, and all three write meanwhile',
    'Mia lives at C',
    'Ada at A: 5 sent, target_accepted; 3 received; Mia',
    'Ben at B: 5 sent, target_accepted; 3 received; Mia',
    'Cem at C: 5 sent, target_accepted; 3 received; Mia',
    'Mia moves to A, and all three write meanwhile',
    'Mia lives at A',
    'Ada at A: 7 sent, target_accepted; 4 received; Mia',
    'Ben at B: 7 sent, target_accepted; 4 received; Mia',
    'Cem at C: 7 sent, target_accepted; 4 received; Mia',
  ]);
});

/** Adds a device to an account. */
async function pair(account: Account): Promise<Account> {
  const client = await world.client();
  const request = await client.requestDevice(account.publicKey);
  const approval = await account.devices.approve(request);
  const device = await client.completeDevice(approval, { accountPublicKey: account.publicKey });
  await exchange(device, account);
  return device;
}
