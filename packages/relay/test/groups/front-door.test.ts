import { errorCatalogue } from '@posthouse/protocol';
import { beforeEach, expect, test, vi } from 'vitest';
import { TestGroup } from '../fixtures/group.ts';
import { nextHint, receivedHints } from '../fixtures/hints.ts';
import { codeOf } from '../support/http.ts';
import { patience } from '../support/patience.ts';
import { servedRelay } from '../support/served-relay.ts';

const wait = 600;
const relay = servedRelay({
  host: { groups: true },
  limits: { groupSubscriptions: 2, groupRecoveryWait: wait },
});
const ann = relay.person('ann');
const ben = relay.person('ben', ['phone', 'laptop']);
let group: TestGroup;

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben);
});

const { rpc: forbidden } = errorCatalogue.forbidden;
const { rpc: unauthorized } = errorCatalogue.unauthorized;
const only = () => ({ group_ids: [group.groupId] });
const publish = async (devices: string[]) => {
  const { token } = await relay.logInAccount(ben);
  const state = await ben.state({ devices });
  expect(codeOf(await relay.http().call('device.state.publish', state, { token }))).toBe('ok');
};

test('05 §13.29: group.subscribe does not exist over HTTP', async () => {
  const { token } = await relay.logInDevice(ben);
  const body = JSON.stringify(only());
  const length = String(Buffer.byteLength(body));
  const headers = {
    'content-type': 'application/json',
    'content-length': length,
    'x-svc-session': token,
  };
  for (const verb of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const answer = await relay.http().send({ verb, path: '/group/subscribe', headers, body });
    expect([verb, answer.status, codeOf(answer)]).toEqual([verb, 400, 'method_not_found']);
  }
});

test('05 §13.29: the answer is null, and errors name the groups', async () => {
  const socket = await relay.socket();
  expect(await socket.call('group.subscribe', only())).toHaveProperty('error.code', unauthorized);
  await relay.bindDevice(socket, ben.device());
  expect(await socket.call('group.subscribe', only())).toHaveProperty('result', null);
  const nowhere = `grp_${'A'.repeat(22)}`;
  const { error } = await socket.call('group.subscribe', { group_ids: [nowhere, group.groupId] });
  expect(error).toMatchObject({
    code: errorCatalogue.not_found.rpc,
    data: { group_ids: [nowhere] },
  });
  const twice = await socket.call('group.subscribe', { group_ids: [nowhere, nowhere] });
  expect(twice.error).toMatchObject({ code: errorCatalogue.bad_request.rpc });
  expect(twice.error).not.toHaveProperty('data');
});

test('02 §12.3: an account session subscribes nothing', async () => {
  const socket = await relay.socket();
  await relay.bindAccount(socket, ben);
  expect(await socket.call('group.subscribe', only())).toHaveProperty('error.code', forbidden);
});

test('05 §15.2: a write over HTTP notifies subscribed connections', async () => {
  const socket = await relay.withGroups(ben, [group]);
  await group.update({ name: 'other' });
  expect(await socket.notification()).toEqual({
    jsonrpc: '2.0',
    method: 'group.timeline.changed',
    params: { group_id: group.groupId, head: 2 },
  });
});

test('02 §10.6: subscriptions outlast a renewal, and no connection inherits them', async () => {
  const socket = await relay.withGroups(ben, [group]);
  await relay.bindDevice(socket, ben.device());
  await group.update({ name: 'one' });
  expect(await nextHint(socket)).toEqual(['timeline', 2]);
  socket[Symbol.dispose]();
  const again = await relay.socket();
  await relay.bindDevice(again, ben.device());
  await group.update({ name: 'two' });
  expect(await receivedHints(again)).toEqual([]);
});

test('a removed member is not notified of the removal or of later events', async () => {
  const left = await relay.withGroups(ben, [group]);
  const stays = await relay.withGroups(ann, [group]);
  await group.remove([ben]);
  await group.update({ name: 'later' });
  await vi.waitFor(
    async () => expect(await receivedHints(stays)).toContainEqual(['timeline', 3]),
    patience,
  );
  expect(await receivedHints(left)).toEqual([]);
  expect(await left.call('group.subscribe', only())).toHaveProperty('error.code', forbidden);
});

test('05 §7.3: removing a device wakes the job that rotates the relay secret', async () => {
  const laptop = await relay.withGroups(ben, [group], { device: 'laptop' });
  expect(await laptop.call('group.key.sync', only())).toHaveProperty('error');
  const { groupId: group_id } = group;
  expect(await laptop.call('group.key.sync', { group_id })).toHaveProperty('result.keys');
  const phone = await relay.withGroups(ben, [group]);
  await publish(['phone']);
  expect(await nextHint(phone)).toEqual(['timeline', 2]);
  const { result } = await phone.call('group.sync', { group_id, after: 1 });
  expect(result).toMatchObject({ events: [{ sequence: 2, epoch: 2 }], has_more: false });
  expect(await receivedHints(laptop)).toEqual([]);
  expect(await laptop.call('group.sync', { group_id })).toHaveProperty('error.code', unauthorized);
});

test('05 §10.3: a certificate that expires ends the access of its device in time', async () => {
  await ben.addDevice('laptop', { expiresAt: relay.clock.now() + 3_000 });
  await publish(['phone', 'laptop']);
  const laptop = await relay.withGroups(ben, [group], { device: 'laptop' });
  const { groupId: group_id } = group;
  expect(await laptop.call('group.key.sync', { group_id })).toHaveProperty('result.keys');
  const phone = await relay.withGroups(ben, [group]);
  relay.clock.advance(2_999);
  expect(await receivedHints(phone)).toEqual([]);
  relay.clock.advance(1);
  await vi.waitFor(
    async () => expect(await receivedHints(phone)).toContainEqual(['timeline', 2]),
    patience,
  );
  expect(await receivedHints(laptop)).toEqual([]);
});

test('05 §15.4: the expiry of a request is notified in time, also after a restart', async () => {
  await group.requestRecovery(ben);
  relay.clock.advance(wait - 1);
  await relay.restart();
  const socket = await relay.withGroups(ben, [group]);
  const owner = await relay.withGroups(ann, [group]);
  expect(await receivedHints(socket)).toEqual([]);
  relay.clock.advance(1);
  for (const each of [socket, owner]) expect(await nextHint(each)).toEqual(['recoveries']);
});

test('05 §15.3: the expiry of an invitation with an application is notified', async () => {
  const eve = await relay.register('eve');
  const now = relay.clock.now();
  await group.apply(eve, await group.invite({ expires_at: now + wait }));
  const owner = await relay.withGroups(ann, [group]);
  const member = await relay.withGroups(ben, [group]);
  relay.clock.advance(wait);
  expect(await nextHint(owner)).toEqual(['applications']);
  expect(await receivedHints(member)).toEqual([]);
});
