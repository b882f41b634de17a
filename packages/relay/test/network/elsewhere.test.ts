import type { JsonObject } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import { TestChannel, text } from '../fixtures/channel.ts';
import { TestGroup } from '../fixtures/group.ts';
import { readChain, readPage } from '../fixtures/group-reader.ts';
import type { Person } from '../fixtures/person.ts';
import { codeOf as answerCode } from '../support/http.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import { relayNetwork, until } from './relay-network.ts';

const network = relayNetwork();

/** Calls as a person and returns the code of the refusal, or `ok`. */
async function codeOf(
  relay: ServedRelay,
  by: Person,
  [method, params]: readonly [string, object],
): Promise<string> {
  try {
    await relay.call(method, params, { session: by.session() });
    return 'ok';
  } catch (error) {
    return (error as { code: string }).code;
  }
}

/** An account at home at A, and one at home at B with two devices. */
async function pair() {
  return {
    ann: await network.register('ann', network.a),
    ben: await network.register('ben', network.b, ['phone', 'laptop']),
  };
}

/** Removes a device at its home relay. */
async function remove(person: Person, name: string): Promise<void> {
  const left = [...person.devices.keys()].filter((device) => device !== name);
  await person.publishState(await person.state({ devices: left }));
}

describe('questions to other home relays', () => {
  test('07 §C7: a profile arrives as it was published, with its certificate', async () => {
    const { a } = network;
    const { ann, ben } = await pair();
    const ask = ['profile.resolve', { account: ben.account }] as const;
    expect(await codeOf(a, ann, ask)).toBe('not_found');
    const profile = ben.profile({ nickname: 'Ben é😀', tomorrow: ['x'] } as JsonObject);
    await network.b.call('profile.publish', profile, { session: ben.session() });
    expect(await a.call(...ask, { session: ann.session() })).toEqual({
      profile,
      signer_certificate: ben.device().certificate,
    });
  });

  test('07 §C6: a device state, by public discovery and by a credential', async () => {
    const { a } = network;
    const { ann, ben } = await pair();
    const cem = await network.register('cem', network.c);
    const ask = ['device.state.resolve', { account: ben.account }] as const;
    expect(await codeOf(a, ann, ask)).toBe('forbidden');
    const signed = ({ created_at = a.clock.now(), to = ann } = {}) =>
      ann.stateQuery(ben.account, ben.grant(to), { created_at });
    const client = a.http();
    const { token } = await a.logInDevice(ann);
    const post = (params: object) =>
      client.call('device.state.resolve', params, { token, verb: 'POST' });
    const byGrant = JSON.parse((await post(signed())).text);
    expect(byGrant).toMatchObject({ account: ben.account, certificates: { length: 2 } });
    expect(answerCode(await post(signed({ to: cem })))).toBe('forbidden');
    const late = signed({ created_at: a.clock.now() - 301 });
    expect(answerCode(await post(late))).toBe('clock_skew');
    await ben.publishProfile({ public_discovery: true });
    expect(await a.call(...ask, { session: ann.session() })).toEqual(byGrant);
  });

  test('07 §C4: an account that no relay has is route_not_found, one that cannot be asked is temporary', async () => {
    const { a } = network;
    const { ann, ben } = await pair();
    const eve = await network.stranger('eve', network.b);
    expect(await codeOf(a, ann, ['profile.resolve', { account: eve.account }])).toBe(
      'route_not_found',
    );
    await codeOf(a, ann, ['profile.resolve', { account: ben.account }]);
    network.cutAll();
    const ask = ['profile.resolve', { account: ben.account }] as const;
    expect(await codeOf(a, ann, ask)).toBe('temporarily_unavailable');
    await network.heal();
    expect(await codeOf(a, ann, ask)).toBe('not_found');
  });
});

describe('groups and channels hosted elsewhere', () => {
  test('05, 06: accounts of three relays found, join, post, and get hints over WebSocket', async () => {
    const { b, c } = network;
    const { ann, ben } = await pair();
    const group = await TestGroup.create(c, ann);
    await group.admit(ben);
    const channel = await TestChannel.create(c, ben, { moderators: [ann.account] });
    const [annsGroups, bensChannels] = [
      await c.withGroups(ann, [group]),
      await c.withChannels(ann, [channel]),
    ];
    const sequence = await group.send(ben, 1);
    expect(await annsGroups.notification()).toMatchObject({
      method: 'group.timeline.changed',
      params: { group_id: group.groupId, head: sequence },
    });
    const posted = await channel.post({ body: text('from elsewhere') });
    expect(await bensChannels.notification()).toMatchObject({
      method: 'channel.timeline.changed',
      params: { channel_id: channel.channelId, head: posted },
    });
    expect((await readChain(c, group, ben)).state.members.size).toBe(2);
    // An account at home at the host reads as one of elsewhere does.
    const cem = await network.register('cem', c);
    expect(await channel.sequences({}, { by: cem })).toEqual(await channel.sequences({}));
    expect(await codeOf(b, ben, ['group.sync', { group_id: group.groupId }])).toBe('not_found');
  });

  test('05 §7.3: a device removed at home loses its access here, and the secret rotates', async () => {
    const { c } = network;
    const { ann, ben } = await pair();
    const group = await TestGroup.create(c, ann);
    await group.admit(ben);
    const laptop = ben.device('laptop');
    const epochOf = async () => (await readChain(c, group, ann)).state.epoch;
    await readPage(c, group, ben, { device: 'laptop' });
    const before = await epochOf();
    const socket = await c.withGroups(ben, [group], { device: 'laptop' });
    await remove(ben, 'laptop');
    // The home relay's hint is enough: no clock moves.
    await until(async () => (await epochOf()) > before);
    const bound = await c.bindDevice(await c.socket(), laptop);
    expect(bound.error?.message).toMatch(/device/);
    const answer = await socket.call('group.sync', { group_id: group.groupId });
    expect(answer.error?.code).toBe(-32001);
    expect(await codeOf(c, ben, ['group.sync', { group_id: group.groupId }])).toBe('ok');
  });

  test('05 §7.3: while the home relay cannot be reached nothing closes, and it is asked again', async () => {
    const { c } = network;
    const { ann, ben } = await pair();
    const group = await TestGroup.create(c, ann);
    await group.admit(ben);
    const sync = { group_id: group.groupId };
    const socket = await c.withGroups(ben, [group], { device: 'laptop' });
    network.cutAll();
    await remove(ben, 'laptop');
    network.advance(86_400 - 60);
    expect((await socket.call('group.sync', sync)).error).toBeUndefined();
    await network.heal();
    network.advance(86_400);
    await until(async () => (await socket.call('group.sync', sync)).error !== undefined);
  });
});
