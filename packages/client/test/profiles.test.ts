/** Profiles: an older one that was signed honestly is not believed again (03 §7, §8). */
import { join } from 'node:path';
import { type DeviceSigner, deviceSigner, signProfile } from '@posthouse/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Account, MemoryStore, type Store } from '../src/index.ts';
import { SqliteStore } from '../src/node.ts';
import { Person } from './support/courier.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { network } from './support/relay-with-clients.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start();
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const method = 'profile.resolve';
const named = (nickname: string) => ({ nickname, public_discovery: true });

/** Publishes twice. @returns the relay's answer between the two */
async function publishedTwice(account: Account) {
  await account.profiles.publish(named('before'));
  await account.profiles.resolve(account.id);
  const older = relay.honest.get(method);
  await account.profiles.publish(named('after'));
  return older;
}

describe.each<[string, () => Store]>([
  ['a store in memory', () => new MemoryStore()],
  ['a store in a file', () => SqliteStore.open(join(relay.world.folder, 'profiles.sqlite'))],
])('03 §8: with %s', (_, open) => {
  test('an older profile is not believed, also after a restart', async () => {
    await using store = open();
    const ann = await relay.world.person();
    const bob = await relay.world.person({ store });
    const older = await publishedTwice(ann);
    expect(await bob.profiles.resolve(ann.id)).toMatchObject(named('after'));
    relay.lie(method, () => older);
    expect(await bob.profiles.resolve(ann.id)).toMatchObject(named('after'));
    const again = await (await relay.world.client({ store })).account();
    expect(await again.profiles.resolve(ann.id)).toMatchObject(named('after'));
    relay.behave();
    await ann.profiles.publish(named('at last'));
    expect(await again.profiles.resolve(ann.id)).toMatchObject(named('at last'));
  });
});

test('03 §8: an older profile of the own account is not believed', async () => {
  const ann = await relay.world.person();
  const older = await publishedTwice(ann);
  relay.lie(method, () => older);
  expect(await ann.profiles.resolve(ann.id)).toMatchObject(named('after'));
});

test('03 §8: a relay that has no profile any more does not lower what is known', async () => {
  const [ann, bob] = [await relay.world.person(), await relay.world.person({ prefer: 'http' })];
  const older = await publishedTwice(ann);
  await bob.profiles.resolve(ann.id);
  relay.overHttp.set(method, (answer) => {
    answer.writeHead(404, { 'content-type': 'application/json' });
    answer.end('{"code":"not_found","message":"no profile"}');
  });
  expect(await bob.profiles.resolve(ann.id)).toBeUndefined();
  relay.behave();
  relay.lie(method, () => older);
  expect(await bob.profiles.resolve(ann.id)).toMatchObject(named('after'));
});

test('03 §7: profiles published in one second have rising times', async () => {
  const ann = await relay.world.person();
  const times: number[] = [];
  for (const name of ['one', 'two', 'three']) {
    times.push((await ann.profiles.publish(named(name))).updated_at);
  }
  const [first = 0] = times;
  expect(times[1]).toBeGreaterThan(first);
  expect(times[2]).toBeGreaterThan(times[1] as number);
});

test('03 §7: courier changes one member of the newest profile, not of an older one', async () => {
  const ann = new Person(relay.world, 'ann');
  await ann.run(['setup', ...ann.network]);
  await ann.run(['profile', '--nickname', 'before']);
  await ann.run(['profile']);
  const older = relay.honest.get(method);
  await ann.run(['profile', '--nickname', 'after']);
  relay.lie(method, () => older);
  const { profile } = await ann.json('profile', '--bio', 'new');
  expect(profile).toMatchObject({ nickname: 'after', bio: 'new' });
  relay.behave();
  expect((await ann.json('profile')).profile).toEqual(profile);
});

test('03 §8: a profile from the far future does not hide later ones', async () => {
  const store = new MemoryStore();
  const [ann, bob] = [await relay.world.person({ store }), await relay.world.person()];
  await ann.profiles.publish(named('now'));
  await bob.profiles.resolve(ann.id);
  const honest = relay.honest.get(method);
  const future = signProfile(network, await deviceOf(store), {
    ...named('future'),
    account: ann.id,
    updated_at: Number.MAX_SAFE_INTEGER,
  });
  relay.lie(method, () => ({ ...honest, profile: future }));
  await bob.profiles.resolve(ann.id);
  relay.behave();
  expect(await bob.profiles.resolve(ann.id)).toMatchObject(named('now'));
});

async function deviceOf(store: Store): Promise<DeviceSigner> {
  const text = await store.read((tx) => tx.get('device-keys', 'device'));
  const { signingSeed, encryptionKey } = JSON.parse(text as string);
  return deviceSigner(network, {
    signingSeed: Buffer.from(signingSeed, 'base64url'),
    encryptionKey: Buffer.from(encryptionKey, 'base64url'),
  });
}
