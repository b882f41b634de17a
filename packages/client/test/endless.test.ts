/**
 * Hosts that come to no end, or to no answer: what they have is read as far as one synchronization
 * goes, the rest the next time, and other hosts are read concurrently.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type GroupEvent, staticRegistry } from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { Relay } from '@posthouse/relay';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Account, AccountEvent, ClientOptions, ReadingLimits, Store } from '../src/index.ts';
import { NodeTransport } from '../src/node.ts';
import { event, post, setScene as setChannelScene } from './channels/lying-channel.ts';
import { postTexts } from './channels/support.ts';
import { setScene as setGroupScene, signed } from './groups/lying-group.ts';
import { club, groupTexts } from './groups/support.ts';
import { LyingRelay } from './support/lying-relay.ts';
import { befriend, network, texts } from './support/relay-with-clients.ts';

/** May lie; everybody's home at first. */
let away: LyingRelay;
/** Honest, and hosts as well. */
let other: Relay;
beforeAll(async () => {
  away = await LyingRelay.start({ host: { groups: true, channels: true } });
  other = await Relay.start(
    {
      network: network.context,
      dev: true,
      data: join(away.world.folder, 'other'),
      registry: join(away.world.folder, 'relay', 'registry.json'),
      listen: '127.0.0.1:0',
      federation: { listen: '' },
      log: 'silent',
      host: { groups: true, channels: true },
    },
    { clock: away.world.clock },
  );
});
afterEach(() => away.behave());
afterAll(async () => {
  await other[Symbol.asyncDispose]();
  await away[Symbol.asyncDispose]();
});

/** An account that can reach both relays. */
async function person(relayId: string, options: Partial<ClientOptions> = {}): Promise<Account> {
  const folder = away.world.folder;
  const ca = readFileSync(join(folder, 'other', 'tls', 'ca.pem'), 'utf8') + away.world.ca;
  const registry = staticRegistry(
    network,
    parseJson(readFileSync(join(folder, 'relay', 'registry.json'), 'utf8')),
  );
  const transport = new NodeTransport({ ca });
  return await away.world.person({ registry, transport, relayId, prefer: 'http', ...options });
}

const isIncomplete = ({ kind }: AccountEvent) =>
  kind === 'group-incomplete' || kind === 'channel-incomplete';

/** Pages of invented events without end, and of every page the same number of events. */
function endless<E extends object>(make: (at: number) => E, first: number, perPage = 2) {
  let at = first;
  return (page: object) => {
    const events = Array.from({ length: perPage }, () => {
      at += 1;
      return make(at);
    });
    return { ...page, events, has_more: true };
  };
}

/** The host sends no requests, and returns no keys. */
function inventing(after: number): void {
  away.ask('group.sync', (params) => ({ ...params, after }));
  away.ask('group.key.sync', ({ group_id }) => ({ group_id }));
  away.lie('group.key.sync', () => ({ keys: [], has_more: false }));
}

/** Bob opened again, reading no more than that in one go. */
async function again(store: Store, reading: Partial<ReadingLimits>): Promise<Account> {
  return await (await away.world.client({ store, reading })).account();
}

describe('05 §13.4: a group whose host invents events without end', () => {
  const inventions: Record<string, (scene: Awaited<ReturnType<typeof setGroupScene>>) => object> = {
    'rotations of its own': ({ state }) =>
      endless(
        (at): GroupEvent => ({
          sequence: at,
          epoch: state.epoch + at - state.sequence,
          accepted_at: 1_700_000_000,
          payload: { $type: network.type('group.key.rotated') },
        }),
        state.sequence,
      ),
    'messages without a valid signature': (scene) =>
      endless((sequence) => {
        const message = signed(scene.outsider, scene, { $type: network.type('group.message') });
        return { ...message, sequence };
      }, scene.state.sequence),
  };

  test.each(Object.entries(inventions))('%s', async (_, invent) => {
    const scene = await setGroupScene(away);
    const certificates = [scene.outsider.certificate];
    const lie = invent(scene) as (page: object) => object;
    inventing(scene.state.sequence);
    away.lie('group.sync', (page) => lie({ ...page, certificates }));
    const bob = await again(scene.store, { pages: 3 });
    away.asked.clear();
    expect((await bob.groups.sync(scene.id)).filter(isIncomplete)).toEqual([
      { kind: 'group-incomplete', groupId: scene.id },
    ]);
    expect(away.asked.get('group.sync')).toBe(3);
    expect((await bob.groups.get(scene.id)).position).toBe(scene.state.sequence + 6);
    // The rest the next time.
    expect((await bob.sync()).filter(isIncomplete)).toHaveLength(1);
    expect((await bob.groups.get(scene.id)).position).toBe(scene.state.sequence + 12);
    const counted = await again(scene.store, { events: 3 });
    expect((await counted.groups.sync(scene.id)).filter(isIncomplete)).toHaveLength(1);
    expect((await counted.groups.get(scene.id)).position).toBe(scene.state.sequence + 16);
  });

  test('what needs the group as it is says so, and nothing of it is kept', async () => {
    const scene = await setGroupScene(away);
    const lie = inventions['rotations of its own']?.(scene) as (page: object) => object;
    inventing(scene.state.sequence);
    away.lie('group.sync', lie);
    const bob = await again(scene.store, { pages: 2 });
    const code = 'group_behind';
    await expect(bob.groups.leave(scene.id)).rejects.toMatchObject({ code });
    await expect(bob.groups.requestRecovery(scene.id)).rejects.toMatchObject({ code });
    await expect(bob.groups.send(scene.id, { text: 'to whom' })).rejects.toMatchObject({ code });
    expect((await bob.status()).outbox).toBe(0);
  });

  test('a list of applications is read as far as one goes', async () => {
    const scene = await setGroupScene(away);
    const ann = await again(scene.annStore, { pages: 2 });
    const { text } = await ann.groups.invite(scene.id);
    for (let each = 0; each < 3; each += 1) await (await away.world.person()).groups.join(text);
    expect(await ann.groups.listApplications(scene.id)).toHaveLength(3);
    let page = 0;
    away.ask('group.application.list', ({ group_id }) => ({ group_id }));
    away.lie('group.application.list', ({ applications }) => {
      page += 1;
      return { applications: [applications[page % 3]], next: `p${page}` };
    });
    expect(await ann.groups.listApplications(scene.id)).toHaveLength(2);
  });
});

describe('06 §8.11: a channel whose host invents events without end', () => {
  test('it is read as far as one synchronization goes, and the rest the next time', async () => {
    const scene = await setChannelScene(away);
    const text = 'not signed by a member';
    const lie = endless((sequence) => event(scene.outsider, { sequence }, post(scene, text)), 0);
    const certificates = [scene.outsider.certificate];
    away.ask('channel.read', ({ channel_id }) => ({ channel_id }));
    away.lie('channel.read', (page) => lie({ ...page, certificates }));
    const bob = await again(scene.store, { pages: 3 });
    away.asked.clear();
    expect((await bob.channels.sync(scene.id)).filter(isIncomplete)).toEqual([
      { kind: 'channel-incomplete', channelId: scene.id },
    ]);
    expect(away.asked.get('channel.read')).toBe(3);
    expect((await bob.sync()).filter(isIncomplete)).toHaveLength(1);
    expect((await bob.channels.get(scene.id)).span?.position).toBe(12);
    expect(await postTexts(bob, scene.id)).toEqual([]);
  });

  test('06 §10.4: an edit whose fate is not found so is given up', async () => {
    const scene = await setChannelScene(away);
    const { sequence } = await scene.ann.channels.send(scene.id, { text: 'one' });
    const ann = await again(scene.annStore, { pages: 2 });
    away.lose('channel.post.edit', 1);
    const lie = endless((at) => event(scene.outsider, { sequence: at }, post(scene, 'x')), 1);
    const certificates = [scene.outsider.certificate];
    away.ask('channel.read', ({ channel_id }) => ({ channel_id }));
    away.lie('channel.read', (page) => lie({ ...page, certificates }));
    const editing = ann.channels.edit(scene.id, sequence, { text: 'two' });
    await expect(editing).rejects.toMatchObject({ code: 'not_permitted' });
    expect((await ann.status()).outbox).toBe(0);
  });
});

describe('an honest host with more than is read in one go', () => {
  test('everything is there after as many synchronizations as it takes', async () => {
    const scene = await setGroupScene(away);
    const texts = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    for (const text of texts) await scene.ann.groups.send(scene.id, { text });
    // Pages of two.
    away.lie('group.sync', ({ events, ...page }) => ({
      ...page,
      events: events.slice(0, 2),
      has_more: page.has_more || events.length > 2,
    }));
    const bob = await again(scene.store, { pages: 2 });
    const found: string[] = [];
    for (;;) {
      const events = await bob.groups.sync(scene.id);
      found.push(await groupTexts(bob, scene.id).then((each) => each.join('')));
      if (!events.some(isIncomplete)) break;
    }
    expect(found).toEqual(['abcd', 'abcdefg']);
  });

  test('what was left comes last the next time, so that it holds up nothing else', async () => {
    const scene = await setGroupScene(away);
    const ids = [scene.id, await club(scene.ann, [scene.bob], 'Second')].sort();
    const bob = await again(scene.store, {});
    const [slow = '', quick = ''] = ids;
    await scene.ann.groups.send(quick, { text: 'heard' });
    const order: string[] = [];
    // The first one takes all the time there is, and has more.
    await scene.ann.groups.send(slow, { text: 'one' });
    await scene.ann.groups.send(slow, { text: 'two' });
    away.lie('group.sync', (page, { group_id }) => {
      order.push(group_id);
      if (group_id !== slow) return page;
      away.world.clock.advance(120);
      return { ...page, events: page.events.slice(0, 1), has_more: page.events.length > 1 };
    });
    expect((await bob.sync()).filter(isIncomplete)).toEqual([
      { kind: 'group-incomplete', groupId: slow },
    ]);
    order.splice(0);
    await bob.sync();
    expect(order).toEqual([quick, slow]);
    expect(await groupTexts(bob, slow)).toEqual(['one', 'two']);
    expect(await groupTexts(bob, quick)).toEqual(['heard']);
  });
});

describe('05 §17.1: a failing host does not delay the other hosts', () => {
  const lying = () => away.world.relay.relayId;
  const honest = () => other.relayId;

  /** Ann and Bob, at home at one relay, with a group at another one, where they were before. */
  async function setScene(from: string, home: string, options: Partial<ClientOptions> = {}) {
    const [ann, bob] = [await person(from), await person(from, options)];
    const far = await club(ann, [bob], 'Far');
    const { id: farNews, link: farLink } = await ann.channels.create({ name: 'Far' });
    for (const each of [ann, bob]) await each.home.move(home);
    const near = await club(ann, [bob], 'Near');
    const { id: nearNews, link: nearLink } = await ann.channels.create({ name: 'Near' });
    for (const link of [farLink, nearLink]) await bob.channels.follow(link);
    await bob.sync();
    for (const id of [far, near]) await ann.groups.send(id, { text: 'said' });
    for (const id of [farNews, nearNews]) await ann.channels.send(id, { text: 'said' });
    return { ann, bob, far: [far, farNews], near: [near, nearNews] } as const;
  }

  /** What Bob has of a host's group and channel. */
  async function had(bob: Account, [group = '', channel = '']: readonly string[]) {
    return [...(await groupTexts(bob, group)), ...(await postTexts(bob, channel))];
  }

  test('one answers nothing: the other is read meanwhile, and an abort is obeyed', async () => {
    const { bob, near, far } = await setScene(lying(), honest());
    away.overHttp.set('group.sync', () => {});
    const stop = new AbortController();
    const syncing = bob.sync({ signal: stop.signal });
    while ((await had(bob, near)).length < 2) await turn();
    stop.abort(new Error('enough'));
    await expect(syncing).rejects.toThrow('enough');
    away.behave();
    // What was found before is told the next time.
    const told = (await bob.sync()).map(({ kind }) => kind);
    expect(told.filter((kind) => kind === 'group-message')).toHaveLength(2);
    expect(told.filter((kind) => kind === 'channel-post')).toHaveLength(2);
    expect(await had(bob, far)).toEqual(['said', 'said']);
  });

  test('one answers too late: that is told of what it hosts, and only that', async () => {
    const { bob, near, far } = await setScene(lying(), honest());
    const arrived = Promise.withResolvers<void>();
    away.overHttp.set('group.sync', () => arrived.resolve());
    const syncing = bob.sync();
    await arrived.promise;
    while ((await had(bob, near)).length < 2) await turn();
    away.world.clock.advance(150);
    const failed = (await syncing).filter(({ kind }) => kind.endsWith('-failed'));
    const error = expect.objectContaining({ code: 'relay_unreachable' });
    expect(failed).toEqual([
      { kind: 'group-failed', groupId: far[0], error },
      { kind: 'channel-failed', channelId: far[1], error },
    ]);
  });

  test('a timeline that takes all the time there is: the rest comes the next time', async () => {
    const { ann, bob, far } = await setScene(honest(), lying());
    await befriend(ann, bob);
    for (const text of ['one', 'two', 'three']) await ann.messages.send(bob.id, { text });
    away.ask('message.timeline.sync', (params) => ({ ...params, limit: 1 }));
    // A page, and the record before it.
    away.lie('message.timeline.sync', (page) => {
      away.world.clock.advance(60);
      return page;
    });
    const { relayId } = away.world.relay;
    expect((await bob.sync()).filter(({ kind }) => kind === 'timeline-incomplete')).toEqual([
      { kind: 'timeline-incomplete', relayId },
    ]);
    expect(await had(bob, far)).toEqual(['said', 'said']);
    expect(await texts(bob)).toEqual(['one']);
    away.behave();
    await bob.sync();
    expect(await texts(bob)).toEqual(['one', 'two', 'three']);
  });

  test('the home relay misbehaves: the others are read, and then it is told', async () => {
    const { bob, near, far } = await setScene(honest(), lying());
    away.lie('message.timeline.sync', () => ({ lies: true }));
    await expect(bob.sync()).rejects.toMatchObject({ code: 'relay_misbehaviour' });
    expect(await had(bob, far)).toEqual(['said', 'said']);
    expect(await had(bob, near)).toEqual([]);
    away.behave();
    const told = (await bob.sync()).map(({ kind }) => kind);
    expect(told.filter((kind) => kind === 'channel-post')).toHaveLength(2);
  });

  test('followed, an endless group of the home relay holds up nothing else', async () => {
    const options = { prefer: 'websocket', reading: { pages: 2 } } as const;
    const { ann, bob, near, far } = await setScene(honest(), lying(), options);
    const quiet = await club(ann, [bob], 'Quiet');
    const { state } = await bob.groups.get(near[0]);
    const { sequence: head = 0, epoch = 0 } = state ?? {};
    const lie = endless(
      (sequence): GroupEvent => ({
        ...{ sequence, epoch: epoch + sequence - head, accepted_at: 1_700_000_000 },
        payload: { $type: network.type('group.key.rotated') },
      }),
      head,
    );
    away.ask('group.sync', (params) =>
      params.group_id === near[0] ? { ...params, after: head } : params,
    );
    let pages = 0;
    away.lie('group.sync', (page, { group_id }) => {
      if (group_id !== near[0]) return page;
      pages += 1;
      return lie(page);
    });
    const params = { group_id: near[0], head: Number.MAX_SAFE_INTEGER };
    const hint = JSON.stringify({ jsonrpc: '2.0', method: 'group.timeline.changed', params });
    const stop = new AbortController();
    const wanted = new Set([quiet, far[0]]);
    let incomplete = 0;
    for await (const found of bob.follow({ signal: stop.signal, pollInterval: 10 })) {
      if (isIncomplete(found)) incomplete += 1;
      // Nor does it help to hint at more.
      away.push(hint);
      // It is read on and on, at intervals, and between that everything else is.
      if (incomplete === 2) for (const id of wanted) await ann.groups.send(id, { text: 'hello' });
      if (found.kind === 'group-message') wanted.delete(found.groupId);
      if (wanted.size === 0 && incomplete > 3) stop.abort();
    }
    expect(wanted).toEqual(new Set());
    expect(pages).toBeLessThanOrEqual(2 * (incomplete + 1));
  });
});

const turn = () => new Promise((resolve) => setImmediate(resolve));
