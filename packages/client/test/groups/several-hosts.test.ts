/** Groups on several hosts: the home relay, and another host that may fail or lie. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Registry, staticRegistry } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { Relay } from '@posthouse/relay';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { defaultRetry } from '../../src/connect/backoff.ts';
import { type Account, type AccountEvent, MemoryStore } from '../../src/index.ts';
import { NodeTransport } from '../../src/node.ts';
import { isConnected, isDisconnected } from '../support/connection-events.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import { admit, club, groupTexts } from './support.ts';

/** The former home relay of all accounts: it still hosts groups, and may lie. */
let away: LyingRelay;
/** The current home relay of all accounts. */
let home: Relay;
beforeAll(async () => {
  away = await LyingRelay.start({ host: { groups: true } });
  home = await Relay.start(
    {
      network: network.context,
      dev: true,
      data: join(away.world.folder, 'home'),
      registry: join(away.world.folder, 'relay', 'registry.json'),
      listen: '127.0.0.1:0',
      federation: { listen: '' },
      log: 'silent',
      host: { groups: true },
    },
    { clock: away.world.clock },
  );
});
afterEach(() => away.behave());
afterAll(async () => {
  await home[Symbol.asyncDispose]();
  await away[Symbol.asyncDispose]();
});

/** An account on the home relay that can connect to both relays. */
async function person(options: { store?: MemoryStore; registry?: Registry } = {}) {
  const ca = readFileSync(join(away.world.folder, 'home', 'tls', 'ca.pem'), 'utf8') + away.world.ca;
  const transport = new NodeTransport({ ca });
  const registry = bothRelays();
  const { relayId } = away.world.relay;
  return await away.world.person({ registry, transport, relayId, ...options });
}

function bothRelays(): Registry {
  const file = readFileSync(join(away.world.folder, 'relay', 'registry.json'), 'utf8');
  return staticRegistry(network, parseJson(file));
}

/** Ann and Bob, with a group at the former home relay and one at the current one. */
async function setScene(options: Parameters<typeof person>[0] = {}) {
  const [ann, bob] = [await person(), await person(options)];
  const far = await club(ann, [bob], 'Far');
  for (const each of [ann, bob]) await each.home.move(home.relayId);
  const near = await club(ann, [bob], 'Near');
  return { ann, bob, far, near };
}

/** Follows an account; returns its events so far, and waits for the next event of a kind. */
function followed(account: Account) {
  const stop = new AbortController();
  const seen: AccountEvent[] = [];
  const waiting = new Set<() => void>();
  const running = (async () => {
    for await (const event of account.follow({ signal: stop.signal })) {
      seen.push(event);
      for (const look of [...waiting]) look();
    }
  })();
  const until = async (isIt: (event: AccountEvent) => boolean) => {
    const { promise, resolve } = Promise.withResolvers<AccountEvent>();
    const look = () => {
      const found = seen.find(isIt);
      if (found !== undefined) resolve(found);
    };
    waiting.add(look);
    look();
    await Promise.race([promise, running.then(() => promise)]);
    waiting.delete(look);
  };
  const text = async (wanted: string) => until((event) => textOf(event) === wanted);
  const end = async () => {
    stop.abort();
    await running;
  };
  return { seen, until, text, end, running };
}

function textOf(event: AccountEvent): string | undefined {
  if (event.kind !== 'group-message') return undefined;
  return event.message.body?.text;
}

test('05 §17.1: groups of two hosts are read, written and followed by one account', async () => {
  const { ann, bob, far, near } = await setScene();
  expect((await bob.groups.get(far)).relayId).toBe(away.world.relay.relayId);
  expect((await bob.groups.get(near)).relayId).toBe(home.relayId);
  await ann.groups.send(far, { text: 'far' });
  await ann.groups.send(near, { text: 'near' });
  await bob.sync();
  expect([await groupTexts(bob, far), await groupTexts(bob, near)]).toEqual([['far'], ['near']]);
  const live = followed(bob);
  await live.until(isConnected);
  for (const [id, text] of [
    [far, 'one'],
    [near, 'two'],
    [far, 'three'],
  ] as const) {
    await ann.groups.send(id, { text });
    await live.text(text);
  }
  await live.end();
  expect(live.seen.filter(isDisconnected)).toEqual([]);
});

test('a group joined at a new host while following is followed', async () => {
  const { ann } = await setScene();
  const carl = await person();
  await carl.home.move(home.relayId);
  const live = followed(carl);
  await live.until(isConnected);
  // Carl's home relay was there once; nothing on it was followed.
  const { id } = await ann.groups.create({ name: 'New', relayId: away.world.relay.relayId });
  const { text } = await ann.groups.invite(id);
  await carl.groups.join(text);
  await ann.groups.approve(id, [carl.id]);
  await carl.groups.sync(id);
  while (!live.seen.some((event) => textOf(event) === 'heard')) {
    await ann.groups.send(id, { text: 'heard' });
    await new Promise((resolve) => setImmediate(resolve));
  }
  await live.end();
});

describe('02 §12.3: hints of a host that is not the home relay', () => {
  test('about timeline, device state and unsubscribed groups are ignored', async () => {
    const store = new MemoryStore();
    const { ann, bob, far, near } = await setScene({ store });
    const live = followed(bob);
    await live.until(isConnected);
    await ann.groups.send(far, { text: 'subscribed' });
    await live.text('subscribed');
    const most = Number.MAX_SAFE_INTEGER;
    const hints = {
      'device.state.changed': { revision: most },
      'message.timeline.changed': { head: most },
      'group.application.changed': { group_id: near },
      'group.member.recovery.changed': { group_id: `grp_${'A'.repeat(22)}` },
      'group.timeline.changed': { group_id: near, head: most },
    };
    for (const [method, params] of Object.entries(hints)) {
      away.push(JSON.stringify({ jsonrpc: '2.0', method, params }));
    }
    await ann.groups.send(far, { text: 'after the lies' });
    await live.text('after the lies');
    await live.end();
    expect(await store.read((tx) => tx.list('state-hints'))).toEqual([]);
    expect(live.seen.filter(({ kind }) => kind === 'group-applications')).toEqual([]);
    expect(live.seen.filter(({ kind }) => kind === 'group-recoveries')).toEqual([]);
  });
});

describe('05 §17.1: a failing host affects its own groups only:', () => {
  test('it ends every connection', async () => {
    const { ann, bob, far, near } = await setScene();
    away.when.set('group.subscribe', () => setImmediate(() => away.cut()));
    const live = followed(bob);
    await live.until(isConnected);
    await live.until(({ kind }) => kind === 'group-failed');
    for (const text of ['one', 'two', 'three']) {
      await ann.groups.send(near, { text });
      await live.text(text);
    }
    await ann.groups.send(far, { text: 'far' });
    away.behave();
    await live.text('far');
    await live.end();
    expect(live.seen.filter(isDisconnected)).toEqual([]);
  });

  test('it answers no request', async () => {
    const { ann, bob, far, near } = await setScene();
    const never = Promise.withResolvers<void>();
    for (const method of ['relay.descriptor', 'group.sync']) {
      away.overHttp.set(method, (response) => void never.promise.then(() => response.destroy()));
    }
    const live = followed(bob);
    await ann.groups.send(near, { text: 'meanwhile' });
    await live.text('meanwhile');
    away.behave();
    never.resolve();
    await live.end();
    expect(live.seen.map((event) => 'groupId' in event && event.groupId)).not.toContain(far);
  });

  test('it is removed from the registry', async () => {
    const both = bothRelays();
    const gone = new Set<string>();
    const registry: Registry = {
      getRelay: async (id) => (gone.has(id) ? undefined : await both.getRelay(id)),
      listRelays: () => both.listRelays(),
    };
    const { ann, bob, far, near } = await setScene({ registry });
    gone.add(away.world.relay.relayId);
    away.cut();
    const live = followed(bob);
    await live.until((event) => event.kind === 'group-failed' && event.groupId === far);
    await ann.groups.send(near, { text: 'home goes on' });
    await live.text('home goes on');
    await live.end();
  });

  test('it does not answer, and each sync asks it once', async () => {
    const { ann, bob, far } = await setScene();
    const second = await ann.groups.create({ name: 'Two', relayId: away.world.relay.relayId });
    await admit(ann, second.id, [bob]);
    away.cut();
    for (const method of ['relay.descriptor', 'relay.info', 'auth.challenge', 'group.sync']) {
      away.overHttp.set(method, (response) => response.destroy());
    }
    away.when.set('relay.info', () => away.cut());
    away.asked.clear();
    const failed = (await bob.sync()).filter(({ kind }) => kind === 'group-failed');
    expect(failed.map((event) => 'groupId' in event && event.groupId).sort()).toEqual(
      [far, second.id].sort(),
    );
    // As many attempts as for one call, not for each of its groups.
    expect(away.asked.get('relay.descriptor')).toBeLessThan(2 * defaultRetry.attempts);
  });
});

describe('02 §12.9: changes during a lost connection', () => {
  test('05 §17.4: a request rejected meanwhile is removed, on either host', async () => {
    const store = new MemoryStore();
    const { ann, bob, far, near } = await setScene({ store });
    for (const id of [far, near]) await bob.groups.requestRecovery(id);
    const live = followed(bob);
    await live.until(isConnected);
    away.cut();
    for (const id of [far, near]) await ann.groups.rejectRecovery(id, [bob.id]);
    const isOpen = async () => (await store.read((tx) => tx.list('group-recoveries'))).length > 0;
    while (await isOpen()) {
      await ann.groups.send(near, { text: 'tick' });
      await new Promise((resolve) => setImmediate(resolve));
    }
    await live.end();
  });

  test('the lists of a reconnected host are reported as changed', async () => {
    const { ann, bob, far } = await setScene();
    const live = followed(ann);
    await live.until(isConnected);
    await bob.groups.send(far, { text: 'subscribed' });
    await live.text('subscribed');
    away.overHttp.set('relay.descriptor', (response) => response.destroy());
    away.cut();
    await bob.groups.requestRecovery(far).catch(() => undefined);
    away.behave();
    await bob.groups.requestRecovery(far);
    await live.until((event) => event.kind === 'group-recoveries' && event.groupId === far);
    expect(await ann.groups.listRecoveries(far)).toMatchObject([{ request: { account: bob.id } }]);
    await live.end();
  });
});
