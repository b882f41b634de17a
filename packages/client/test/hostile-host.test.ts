/**
 * Whole lives at a relay that keeps every rule and does nothing the way ours does: what a client
 * takes from chapters 02 to 06 must not be what it happens to know of our relay.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  accountSigner,
  type DeviceCertificate,
  decodeBase64url,
  descriptorSigningInput,
  encodeBase64url,
  type RelayDescriptor,
} from '@posthouse/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Account, AccountEvent } from '../src/index.ts';
import { postTexts } from './channels/support.ts';
import { accompliceOf } from './groups/lying-group.ts';
import { admit, anotherDevice, exchange, groupTexts } from './groups/support.ts';
import { isConnected } from './support/connection-events.ts';
import { HostileHost, type Manipulation, manipulations } from './support/hostile-host.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { befriend, network, texts } from './support/relay-with-clients.ts';
import { WatchedStore } from './support/watched-store.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true, channels: true } }, '/a/b.c');
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

type Prefer = 'http' | 'websocket';
const patient = { retry: { attempts: 6, base: 1, cap: 4 } };

/** An account whose device has two valid certificates. */
async function person(odd: HostileHost, prefer: Prefer): Promise<Account> {
  const store = new WatchedStore();
  const account = await relay.world.person({ ...patient, store, prefer });
  const known = async (): Promise<DeviceCertificate> =>
    (await accompliceOf(account, store)).certificate;
  const first = await known();
  relay.world.clock.advance(1);
  await account.devices.renew();
  odd.versions.set(account.deviceId, [first, await known()]);
  return account;
}

async function people(odd: HostileHost, prefer: Prefer): Promise<[Account, Account, Account]> {
  relay.odd = odd;
  return [await person(odd, prefer), await person(odd, prefer), await person(odd, prefer)];
}

/** Synchronizes until nothing failed, as a person would: what a host refuses for now passes. */
async function settled(account: Account): Promise<AccountEvent[]> {
  const events: AccountEvent[] = [];
  for (let tries = 0; tries < 5; tries += 1) {
    const found = await account.sync();
    events.push(...found);
    if (!found.some(({ kind }) => kind.endsWith('-failed'))) return events;
  }
  throw new Error('does not settle', { cause: events });
}

async function talk(odd: HostileHost, prefer: Prefer): Promise<void> {
  const [ann, bob] = await people(odd, prefer);
  await befriend(ann, bob);
  for (const text of ['one', 'two', 'three']) await ann.messages.send(bob.id, { text });
  await bob.messages.send(ann.id, { text: 'four' });
  await settled(bob);
  await settled(ann);
  expect((await texts(bob)).sort()).toEqual(['four', 'one', 'three', 'two']);
  expect((await texts(ann)).sort()).toEqual(['four', 'one', 'three', 'two']);
  await ann.profiles.publish({ nickname: 'Ann', public_discovery: true });
  expect(await bob.profiles.resolve(ann.id)).toMatchObject({ nickname: 'Ann' });
  const tablet = await anotherDevice(relay.world, bob, { ...patient, prefer });
  await settled(bob);
  await settled(ann);
  await ann.messages.send(bob.id, { text: 'to both' });
  await exchange(bob, tablet);
  expect(await texts(tablet)).toContain('to both');
}

async function group(odd: HostileHost, prefer: Prefer): Promise<void> {
  const [ann, bob, carl] = await people(odd, prefer);
  const { id } = await ann.groups.create({ name: 'Club' });
  const { text } = await ann.groups.invite(id);
  expect(await bob.groups.preview(text)).toMatchObject({ name: 'Club' });
  await admit(ann, id, [bob, carl]);
  expect(await ann.groups.listInvites(id)).toHaveLength(2);
  const { sequence } = await bob.groups.send(id, { text: 'hello' });
  await settled(ann);
  await ann.groups.send(id, { text: 'welcome', replyTo: sequence });
  await bob.groups.setNickname(id, 'Bobby');
  await ann.groups.setRole(id, { account: bob.id, role: 'administrator' });
  await ann.groups.rotate(id, { newOwnerKey: true });
  await settled(bob);
  await bob.groups.update(id, { name: 'Society' }).catch(() => undefined);
  await bob.groups.requestRecovery(id);
  expect(await ann.groups.listRecoveries(id)).toHaveLength(1);
  await ann.groups.approveRecovery(id, [bob.id]);
  await settled(bob);
  await bob.groups.remove(id, [carl.id]);
  await bob.groups.send(id, { text: 'without Carl' });
  expect(await settled(carl)).toContainEqual({ kind: 'group-ended', groupId: id });
  for (const reader of [ann, bob]) {
    await settled(reader);
    expect(await groupTexts(reader, id)).toEqual(['hello', 'welcome', 'without Carl']);
    const [hello, welcome] = await reader.groups.listMessages(id);
    expect(await reader.groups.getReplyTarget(welcome!)).toEqual(hello);
    expect((await reader.groups.listMembers(id)).map(({ nickname }) => nickname)).toContain(
      'Bobby',
    );
  }
  await ann.groups.close(id);
  await settled(bob);
  expect(await bob.groups.get(id)).toMatchObject({ state: { status: 'closed' } });
}

async function channel(odd: HostileHost, prefer: Prefer): Promise<void> {
  const [ann, bob, carl] = await people(odd, prefer);
  const { id, link } = await ann.channels.create({ name: 'News', moderators: [bob.id] });
  await bob.channels.follow(link, { from: 'creation' });
  const places: number[] = [];
  for (const text of ['one', 'two', 'three']) {
    places.push((await ann.channels.send(id, { text })).sequence);
  }
  const [one = 0, two = 0] = places;
  await carl.channels.follow(link);
  await bob.channels.edit(id, one, { text: 'one, corrected' });
  await bob.channels.delete(id, two, { reason: 'a mistake' });
  await ann.channels.update(id, { description: 'of the day' });
  await carl.channels.report(id, one, { reason: 'dull' });
  for (const reader of [bob, carl]) {
    await settled(reader);
    for (let more = true; more; ) more = await reader.channels.readOlder(id);
    expect(await postTexts(reader, id)).toEqual(['one, corrected', 'three']);
    expect((await reader.channels.get(id)).span?.first).toBe(0);
  }
  const { entries } = await carl.channels.preview(link, { after: -1 });
  expect(entries[0]).toMatchObject({ kind: 'change', sequence: 0 });
  await ann.channels.close(id);
  await settled(carl);
  expect((await carl.channels.get(id)).descriptor.status).toBe('closed');
}

async function followed(odd: HostileHost, prefer: Prefer): Promise<void> {
  const [ann, bob] = await people(odd, prefer);
  await befriend(ann, bob);
  const { id } = await ann.groups.create({ name: 'Club' });
  await admit(ann, id, [bob]);
  const news = await ann.channels.create({ name: 'News' });
  await bob.channels.follow(news.link);
  const stop = new AbortController();
  const wanted = new Set(['message', 'group-message', 'channel-post']);
  const pollInterval = 20;
  for await (const event of bob.follow({ signal: stop.signal, pollInterval })) {
    if (isConnected(event)) {
      await ann.messages.send(bob.id, { text: 'mail' });
      await ann.groups.send(id, { text: 'talk' });
      await ann.channels.send(news.id, { text: 'news' });
      relay.world.clock.advance(61);
    }
    wanted.delete(event.kind);
    if (wanted.size === 0) stop.abort();
  }
  expect(wanted.size).toBe(0);
}

const lives = { talk, group, channel, followed };

/** A failure is looked into with fewer of them. */
const without = (...off: readonly Manipulation[]) =>
  manipulations.filter((each) => !off.includes(each));
const ways: Record<string, readonly Manipulation[]> = {
  'all of it': manipulations,
  'pages of many records, one session': without('pages', 'refusals', 'sessions', 'ends'),
};

describe.each(['http', 'websocket'] as const)('over %s', (prefer) => {
  describe.each(Object.entries(ways))('%s', (_, on) => {
    test.each(Object.entries(lives))('%s', async (_name, life) => {
      await life(new HostileHost(on), prefer);
    });
  });
});

describe('01 §13.2, 02 §11.1: a descriptor', () => {
  /** The relay's own, with something else in it, signed by it. */
  async function lie(change: (honest: RelayDescriptor) => object): Promise<void> {
    const path = join(relay.world.folder, 'relay', 'keys', 'relay.key');
    const key = decodeBase64url(readFileSync(path, 'utf8').trim()) as Uint8Array;
    const { relay_signature: _, ...honest } = relay.honest.get('relay.descriptor');
    const facts = { ...honest, ...change(honest) };
    const signature = await accountSigner(network, key).sign(
      descriptorSigningInput(network, facts),
    );
    const told = { ...facts, relay_signature: encodeBase64url(signature) };
    relay.lie('relay.descriptor', () => told);
  }
  afterEach(() => relay.behave());

  test('names unknown services, transports and addresses, and some dead ones', async () => {
    relay.odd = undefined;
    await relay.world.person(patient);
    await lie(({ endpoints, capabilities = [] }) => ({
      endpoints: [
        ...['quic://127.0.0.1:1/x', 'https://127.0.0.1:1/dead', 'wss://127.0.0.1:1/dead', 'x'],
        ...endpoints,
      ],
      capabilities: ['weather.v9', ...capabilities],
      relation: { of: ['a kind'] },
    }));
    for (const prefer of ['http', 'websocket'] as const) {
      const [ann, bob] = [
        await relay.world.person({ ...patient, prefer }),
        await person(new HostileHost([]), prefer),
      ];
      await befriend(ann, bob);
      await ann.messages.send(bob.id, { text: 'reached' });
      await bob.sync();
      expect(await texts(bob)).toEqual(['reached']);
    }
  });

  test('stops to name a WebSocket: what is followed is read at intervals', async () => {
    relay.odd = undefined;
    const [ann, bob] = [await relay.world.person(patient), await relay.world.person(patient)];
    await befriend(ann, bob);
    const transports: string[] = [];
    const stop = new AbortController();
    for await (const event of bob.follow({ signal: stop.signal, pollInterval: 20 })) {
      if (event.kind === 'message') stop.abort();
      if (!isConnected(event)) continue;
      transports.push(event.transport);
      if (event.transport === 'websocket') {
        await lie(({ endpoints }) => ({
          endpoints: endpoints.filter((each) => !each.startsWith('wss:')),
        }));
        relay.cut();
      } else await ann.messages.send(bob.id, { text: 'all the same' });
    }
    expect(transports).toEqual(['websocket', 'http']);
  });
});
