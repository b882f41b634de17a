/** Rotations and requests that expire, and groups over a host's limits. */

import { errorCatalogue } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type Account, MemoryStore } from '../../src/index.ts';
import { isConnected } from '../support/connection-events.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { block, impatient, unreachable } from '../support/restartable-client.ts';
import { admit, club, groupTexts } from './support.ts';

const week = 604_800;

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true }, limits: { groupSubscriptions: 2 } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const person = () => relay.world.person(impatient);

/** Starts a rotation that stops before its commit. */
async function prepared(owner: Account, id: string): Promise<void> {
  block(relay, 'group.secret.rotation.commit');
  const rotating = owner.groups.rotate(id, { newOwnerKey: true });
  await expect(rotating).rejects.toMatchObject(unreachable);
  relay.behave();
}

test('05 §13.26: a rotation covers members that join, leave or change keys meanwhile', async () => {
  const accountKey = nodeRandom(32);
  const [ann, bob, carl, dora] = [
    await person(),
    await person(),
    await person(),
    await relay.world.person({ ...impatient, accountKey }),
  ];
  const id = await club(ann, [bob, carl, dora]);
  await ann.groups.setRole(id, { account: bob.id, role: 'administrator' });
  await prepared(ann, id);
  const eve = await person();
  await admit(bob, id, [eve]);
  await bob.groups.remove(id, [carl.id]);
  const again = await relay.world.person({ ...impatient, accountKey, recover: true });
  const { relayId } = await bob.groups.get(id);
  await again.groups.add({ groupId: id, relayId });
  await again.groups.requestRecovery(id);
  await bob.groups.approveRecovery(id, [dora.id]);
  relay.asked.clear();
  await ann.groups.rotate(id);
  // Eve's box and Dora's new one in one batch; no other box again.
  expect(relay.asked.get('group.secret.rotation.prepare')).toBe(1);
  await ann.groups.send(id, { text: 'to those who are here' });
  for (const member of [bob, eve, again]) {
    await member.sync();
    expect((await groupTexts(member, id)).at(-1)).toBe('to those who are here');
  }
  expect(await carl.sync()).toContainEqual({ kind: 'group-ended', groupId: id });
});

test('05 §13.26: an expired preparation is started again with another secret', async () => {
  const store = new MemoryStore();
  const ann = await relay.world.person({ ...impatient, store });
  const bob = await person();
  const id = await club(ann, [bob]);
  await prepared(ann, id);
  const first = await store.read((tx) => tx.get('group-rotations', id));
  relay.world.clock.advance(week + 1);
  await ann.groups.rotate(id, { newOwnerKey: true });
  const commitment = (await ann.groups.get(id)).state?.client_secret_commitment;
  expect(commitment).not.toBe(JSON.parse(first ?? '{}').client_secret_commitment);
  expect(await store.read((tx) => tx.get('group-rotations', id))).toBeUndefined();
  await ann.groups.send(id, { text: 'fresh' });
  await bob.sync();
  expect(await groupTexts(bob, id)).toEqual(['fresh']);
});

test('05 §1.3: with `fresh`, a rotation begun before a member left is discarded', async () => {
  const store = new MemoryStore();
  const ann = await relay.world.person({ ...impatient, store });
  const bob = await person();
  const id = await club(ann, [bob]);
  await prepared(ann, id);
  const first = JSON.parse((await store.read((tx) => tx.get('group-rotations', id))) ?? '{}');
  await ann.groups.remove(id, [bob.id]);
  await ann.groups.rotate(id, { fresh: true });
  const commitment = (await ann.groups.get(id)).state?.client_secret_commitment;
  expect(commitment).not.toBe(first.client_secret_commitment);
});

test('05 §17.4: an expired request is removed, and another one can be made', async () => {
  const store = new MemoryStore();
  const ann = await person();
  const bob = await relay.world.person({ ...impatient, store });
  const id = await club(ann, [bob]);
  await bob.groups.requestRecovery(id);
  relay.world.clock.advance(week + 1);
  await bob.sync();
  expect(await store.read((tx) => tx.list('group-recoveries'))).toEqual([]);
  await bob.groups.requestRecovery(id);
  await ann.groups.approveRecovery(id, [bob.id]);
  await bob.sync();
  await bob.groups.send(id, { text: 'with the second key' });
  expect(await store.read((tx) => tx.list('group-recoveries'))).toEqual([]);
});

test('05 §12.2: a page too large for a WebSocket message is read over HTTPS', async () => {
  const ann = await relay.world.person();
  const retry = { attempts: 1, base: 1, cap: 1 };
  const bob = await relay.world.person({ retry });
  const id = await club(ann, [bob]);
  await ann.groups.send(id, { text: 'long' });
  relay.garble('group.sync', (text) => {
    const { jsonrpc, id: request } = JSON.parse(text);
    if (jsonrpc === undefined) return text;
    const error = { code: errorCatalogue.internal_error.rpc, message: 'answer too large' };
    return JSON.stringify({ jsonrpc, id: request, error });
  });
  await bob.sync();
  expect(await groupTexts(bob, id)).toEqual(['long']);
});

test('02 §13.1: groups over the host’s limit of subscriptions are polled', async () => {
  const ann = await relay.world.person();
  const bob = await relay.world.person();
  const ids = [await club(ann, [bob]), await club(ann, [bob]), await club(ann, [bob])];
  const stop = new AbortController();
  const heard = new Set<string>();
  const [connected, hinted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const following = (async () => {
    for await (const event of bob.follow({ signal: stop.signal })) {
      if (isConnected(event)) connected.resolve();
      if (event.kind === 'group-message') heard.add(event.groupId);
      if (heard.size === 2) hinted.resolve();
    }
  })();
  await connected.promise;
  for (const id of ids) await ann.groups.send(id, { text: 'hello' });
  await hinted.promise;
  stop.abort();
  await following;
  // The third one is read without a hint, with every full read.
  await bob.sync();
  for (const id of ids) expect(await groupTexts(bob, id)).toEqual(['hello']);
});

test('02 §12.3: changes without a hint are read within a minute, however many hints come', async () => {
  const ann = await relay.world.person();
  const bob = await relay.world.person();
  const ids = [await club(ann, [bob]), await club(ann, [bob]), await club(ann, [bob])].sort();
  const stop = new AbortController();
  const seen: string[] = [];
  let look = () => {};
  const heard = async (wanted: string) => {
    while (!seen.includes(wanted)) await new Promise<void>((resolve) => (look = resolve));
  };
  const following = (async () => {
    for await (const event of bob.follow({ signal: stop.signal })) {
      if (isConnected(event)) seen.push('connected');
      if (event.kind !== 'group-message') continue;
      const { body } = event.message;
      seen.push(body?.text ?? '');
      look();
    }
  })();
  // Two groups are subscribed, by their IDs; the third one gets no hints.
  const [busy, , quiet] = ids as [string, string, string];
  for (const text of ['one', 'two']) {
    await ann.groups.send(busy, { text });
    await heard(text);
  }
  await ann.groups.send(quiet, { text: 'unheard' });
  relay.world.clock.advance(20);
  await ann.groups.send(busy, { text: 'three' });
  await heard('three');
  relay.world.clock.advance(20);
  await heard('unheard');
  expect(seen).toEqual(['connected', 'one', 'two', 'three', 'unheard']);
  stop.abort();
  await following;
});
