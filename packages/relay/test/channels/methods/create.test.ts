import {
  type ChannelDescriptor,
  deriveChannelId,
  limits,
  verifyChannelPage,
} from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { expect, test } from 'vitest';
import { TestChannel } from '../../fixtures/channel.ts';
import { Person } from '../../fixtures/person.ts';
import { refusal } from '../../fixtures/refusal.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const relay = inProcessRelay({ channelsOfAccount: 3 });
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');

const draft = (facts: JsonObject = {}, by = ann) => TestChannel.draft(relay, by, facts);
const create = (params: object, by = ann, device = 'phone') =>
  relay.call('channel.create', params, { session: by.session(device) });
const refused = (params: object, by = ann) => refusal(relay, () => create(params, by));

/** Makes a signed descriptor with unusual members and the ID that follows from them. */
function founding(facts: Partial<ChannelDescriptor> & JsonObject, by = ann): ChannelDescriptor {
  const channel = draft({}, by);
  const changed = { ...channel.descriptor, ...facts };
  const channel_id = facts.channel_id ?? deriveChannelId(network, changed);
  return channel.sign({ ...changed, channel_id });
}

/** Makes a descriptor of a given size with an unknown member. */
function sized(bytes: number): ChannelDescriptor {
  const channel = draft({ extra: '' });
  const missing = bytes - Buffer.byteLength(canonicalJson(channel.descriptor));
  return channel.sign({ ...channel.descriptor, extra: 'x'.repeat(missing) });
}

test('06 §8.2: a channel begins with its descriptor as event 0', async () => {
  const facts = { description: '', moderators: [ben.account], extra: { deep: [1] } };
  const { descriptor, channelId } = draft(facts);
  expect(await create(descriptor)).toBe(null);
  const request = { channel_id: channelId };
  const page = await relay.call('channel.read', request, { session: ben.session() });
  expect(page).toEqual({
    events: [
      {
        sequence: 0,
        descriptor_rev: 0,
        payload: descriptor,
        accepted_at: relay.clock.now(),
        signer_device_id: ann.device().deviceId,
      },
    ],
    certificates: [ann.device().certificate],
    has_more: false,
  });
  const { events } = verifyChannelPage(network, page, { channelId, relayId: relay.relayId });
  expect(events).toHaveLength(1);
  expect(relay.takeNotices()).toEqual([]);
});

test('06 §4: any device of the creator signs, with its own key', async () => {
  const channel = draft();
  const descriptor = channel.sign({ ...channel.descriptor }, { device: 'laptop' });
  expect(await refused(descriptor)).toBe('invalid_signature');
  await create(descriptor, ann, 'laptop');
  expect(await channel.resolve()).toEqual({
    descriptor,
    signer_certificate: ann.device('laptop').certificate,
  });
});

test('06 §8.2: bad_request for what is malformed', async () => {
  const cases: [string, JsonObject][] = [
    ['another type', { $type: network.type('channel.post') }],
    ['$context', { $context: 'neo:1:0x00' }],
    ['$context in an object with a type', { extra: { $type: 'x', $context: 'y' } }],
    ['no name', { name: undefined as never }],
    ['an empty name', { name: ' \u3000' }],
    ['a long name', { name: 'é'.repeat(129) }],
    ['a blank description', { description: '\t' }],
    ['a long description', { description: 'x'.repeat(4_097) }],
    ['null', { extra: null }],
    ['null below', { extra: { deep: [null] } }],
    ['no account as moderator', { moderators: ['neo:860833102:N'] }],
    ['a bad nonce', { nonce: 'x'.repeat(22) }],
    ['a negative revision', { revision: -1 }],
    ['another status', { status: 'paused' }],
    ['a malformed signature', { device_signature: 'x' }],
  ];
  for (const [what, facts] of cases) {
    expect([what, await refused({ ...draft().descriptor, ...facts })]).toEqual([
      what,
      'bad_request',
    ]);
  }
});

test('06 §4: name, description and moderators at their limits pass', async () => {
  const people = Array.from({ length: 11 }, (_, index) => new Person(relay, `mod ${index}`));
  const accounts = people.map(({ account }) => account);
  const full = { name: 'é'.repeat(128), description: 'x'.repeat(4_096) };
  await create(draft({ ...full, moderators: accounts.slice(1) }).descriptor);
  const refusedWith = (moderators: string[]) => refused({ ...draft().descriptor, moderators });
  expect(await refusedWith(accounts)).toBe('bad_request');
  expect(await refusedWith([ann.account])).toBe('bad_request');
  expect(await refusedWith([ben.account, ben.account])).toBe('bad_request');
});

test('06 §8.1: a descriptor of another creator is forbidden, before its signature is verified', async () => {
  expect(await refused(draft({}, ben).descriptor)).toBe('forbidden');
  const signedByAnn = draft().sign({ ...draft({}, ben).descriptor });
  expect(await refused(signedByAnn)).toBe('forbidden');
});

test('06 §8.2: the signature is verified before ID, host, revision and times', async () => {
  const { descriptor } = draft();
  expect(await refused({ ...descriptor, name: 'another' })).toBe('invalid_signature');
  expect(await refused({ ...descriptor, revision: 1 })).toBe('invalid_signature');
  expect(await refused({ ...descriptor, extra: 1 })).toBe('invalid_signature');
});

test('06 §8.2: bad_request for what is well signed and wrong', async () => {
  const cases: [string, Partial<ChannelDescriptor>][] = [
    ['an ID that does not follow', { channel_id: `chan_${'A'.repeat(22)}` }],
    ['another host', { relay_id: `0x${'1'.repeat(40)}` }],
    ['revision 1', { revision: 1 }],
    ['a closed channel', { status: 'closed' }],
    ['times that differ', { updated_at: 1 }],
  ];
  for (const [what, facts] of cases) {
    expect([what, await refused(founding(facts))]).toEqual([what, 'bad_request']);
  }
});

test('06 §4: 8,192 bytes pass, one more is request_too_large', async () => {
  expect(limits.channelDescriptorBytes).toBe(8_192);
  expect(await refused(sized(8_193))).toBe('request_too_large');
  await create(sized(8_192));
});

test('06 §8.2: an existing channel is state_conflict, before the times are checked', async () => {
  const { descriptor } = draft();
  await create(descriptor);
  expect(await refused(descriptor)).toBe('state_conflict');
  const { channel_id, nonce } = descriptor;
  expect(await refused(founding({ channel_id, nonce, name: 'other' }))).toBe('state_conflict');
  relay.clock.advance(301);
  expect(await refused(descriptor)).toBe('state_conflict');
});

test('06 §8.1: the tolerance of created_at is the same in both directions', async () => {
  const at = (created_at: number) => draft({ created_at }).descriptor;
  const now = relay.clock.now();
  expect(await refused(at(now - 301))).toBe('clock_skew');
  expect(await refused(at(now + 301))).toBe('clock_skew');
  await create(at(now - 300));
  await create(at(now + 300));
});

test('06 §8.2: the number of channels an account creates is limited, closed ones included', async () => {
  const first = await TestChannel.create(relay, ann);
  await first.close();
  await TestChannel.create(relay, ann);
  const atOnce = Array.from({ length: 12 }, () => create(draft().descriptor));
  const outcomes = await Promise.allSettled(atOnce);
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(await refused(draft().descriptor)).toBe('rate_limited');
  await create(draft({}, ben).descriptor, ben);
  await relay.restart({ channelsOfAccount: 4 });
  await create(draft().descriptor);
});

test('06 §8.2: of two creations of one channel at once one is accepted', async () => {
  const { descriptor } = draft();
  const other = founding({ nonce: descriptor.nonce, name: 'other' });
  relay.meanwhile = async () => void (await create(other));
  const code = await relay.codeOf('channel.create', descriptor, { session: ann.session() });
  expect(code).toBe('state_conflict');
  expect(await relay.rows('channel_events')).toHaveLength(1);
});

test('02 §9.5: a device session, still valid when the channel is stored', async () => {
  const { descriptor } = draft();
  const code = (session?: ReturnType<Person['accountSession']>) =>
    refusal(relay, () => relay.call('channel.create', descriptor, { session }));
  expect(await code()).toBe('unauthorized');
  expect(await code(ann.accountSession())).toBe('forbidden');
  relay.meanwhile = () => ann.publishState(undefined);
  await create(descriptor);
  const { descriptor: late } = draft();
  relay.meanwhile = async () => ann.publishState(await ann.state({ devices: ['laptop'] }));
  const session = ann.session();
  expect(await relay.codeOf('channel.create', late, { session })).toBe('unauthorized');
  expect(await relay.rows('channels')).toHaveLength(1);
});

test('06 §7.2: a failed write stores nothing, and a restart loses nothing', async () => {
  const channel = draft();
  const faults = await throughEveryFault(relay, () =>
    relay.codeOf('channel.create', channel.descriptor, { session: ann.session() }),
  );
  expect(faults).toBe(3);
  const before = await channel.read();
  await relay.restart();
  expect(await channel.read()).toEqual(before);
});
