import {
  checkRelayInfo,
  descriptorAddresses,
  type RelayDescriptor,
  type RelayEntry,
  verifyDescriptor,
} from '@posthouse/protocol';
import { parseJson } from '@posthouse/protocol/json';
import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { codeOf } from '../support/http.ts';
import { network } from '../support/in-process-relay.ts';
import { ServedRelay, servedRelay } from '../support/served-relay.ts';

const relay = servedRelay({ name: 'Häuschen', descriptorLifetime: 1_000 });

const entry = (): RelayEntry => ({
  relay_id: relay.relayId,
  endpoint: relay.server.https[0] as string,
  status: 'active',
  updated_at: 1,
});

async function fetched(): Promise<RelayDescriptor> {
  const answer = await relay.http().call('relay.descriptor', {});
  const value = parseJson(answer.text);
  verifyDescriptor(network, value, { entry: entry(), now: relay.clock.now() });
  return value;
}

describe('02 §11.1: relay.descriptor', () => {
  test('verifies, names its addresses, and is the same on both transports', async () => {
    const descriptor = await fetched();
    const { https, wss, libp2p } = descriptorAddresses(descriptor);
    expect([https, wss]).toEqual([relay.server.https, relay.server.wss]);
    expect(libp2p).toEqual([
      expect.stringMatching(new RegExp(`/p2p/${relay.server.context.identity.peerId}$`)),
    ]);
    const socket = await relay.socket();
    expect((await socket.call('relay.descriptor')).result).toEqual(descriptor);
  });

  test('is signed again with half of its lifetime left, and not before', async () => {
    const first = await fetched();
    expect(first.expires_at).toBe(relay.clock.now() + 1_000);
    relay.clock.advance(500);
    expect(await fetched()).toEqual(first);
    relay.clock.advance(1);
    expect((await fetched()).expires_at).toBe(relay.clock.now() + 1_000);
  });

  test('is signed again after the clock went back', async () => {
    const first = await fetched();
    relay.clock.advance(-10);
    expect((await fetched()).expires_at).toBe(first.expires_at - 10);
  });

  test('is of the same relay after a restart', async () => {
    const first = await fetched();
    await relay.restart();
    const next = await fetched();
    expect([next.relay_id, next.public_key]).toEqual([first.relay_id, first.public_key]);
    expect(descriptorAddresses(next)).toEqual(descriptorAddresses(first));
  });
});

/** The limits that every relay states. */
const general = {
  message_retention: 2_592_000,
  clock_tolerance: 300,
  future_tolerance: 300,
  max_delivery_age: 604_800,
};

test('02 §11.2: relay.info is of the relay of the descriptor', async () => {
  const socket = await relay.socket();
  const overHttp = JSON.parse((await relay.http().call('relay.info', {})).text);
  checkRelayInfo(overHttp, await fetched());
  expect(overHttp).toEqual({
    relay_id: relay.relayId,
    name: 'Häuschen',
    software: `posthouse ${manifest.version}`,
    server_time: relay.clock.now(),
    limits: {
      ...general,
      group_message_retention: 2_592_000,
      max_group_members: 10_000,
      max_group_subscriptions: 500,
      max_group_invite_ttl: 2_592_000,
      max_group_bans: 10_000,
      channel_timeline_retention: 2_592_000,
      max_channel_subscriptions: 500,
    },
  });
  expect((await socket.call('relay.info', {})).result).toEqual(overHttp);
});

test('05 §1.1, 06 §1: a module is declared where it is offered, with its limits, and only there', async () => {
  expect((await fetched()).capabilities).toEqual(['group.host.v1', 'channel.host.v1']);
  const of = async (host: { groups: boolean; channels: boolean }) => {
    await using other = await ServedRelay.start({ host });
    const { text } = await other.http().call('relay.descriptor', {});
    const info = JSON.parse((await other.http().call('relay.info', {})).text);
    const answers = ['/group/sync', '/channel/read'].map(async (path) =>
      codeOf(await other.http().send({ verb: 'GET', path })),
    );
    const { capabilities } = JSON.parse(text);
    return { capabilities, limits: info.limits, codes: await Promise.all(answers) };
  };
  const offered = 'unauthorized';
  const unknown = 'method_not_found';
  expect(await of({ groups: false, channels: false })).toEqual({
    limits: general,
    codes: [unknown, unknown],
  });
  expect(await of({ groups: false, channels: true })).toEqual({
    capabilities: ['channel.host.v1'],
    limits: {
      ...general,
      channel_timeline_retention: 2_592_000,
      max_channel_subscriptions: 500,
    },
    codes: [unknown, offered],
  });
  const { capabilities, codes } = await of({ groups: true, channels: false });
  expect({ capabilities, codes }).toEqual({
    capabilities: ['group.host.v1'],
    codes: [offered, unknown],
  });
});
