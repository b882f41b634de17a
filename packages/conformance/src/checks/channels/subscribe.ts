/** Subscriptions of one connection (06 §9.1, 02 §13). */
import { nodeRandom } from '@posthouse/primitives-node';
import { encodeBase64url, type JsonObject } from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { channelSceneOf } from '../../channels/channel-fixture.ts';
import { hearsHead, stirChannel, subscribeChannels } from '../../channels/channel-listeners.ts';
import { ChannelActors } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { relayLimit } from '../../fixtures/relay-info.ts';
import { at, keepDevices } from '../../fixtures/test-accounts.ts';
import type { Resident, Stage } from '../../fixtures/test-context.ts';
import { hintsOf } from '../../transport/notifications.ts';

const subscription = checksOf('channel.subscribe');
const method = 'channel.subscribe';
const onWss = { transports: ['wss'] } as const;

const newChannelId = () => `chan_${encodeBase64url(nodeRandom(16))}`;

/** Demands a refusal with exactly these channels in its data, or without data. */
async function refuses(
  stage: Stage,
  { caller }: Pick<Resident, 'caller'>,
  [code, channel_ids]: readonly [code: 'bad_request' | 'not_found', ids: readonly string[]],
  named?: readonly string[],
): Promise<void> {
  const { data } = await stage.fail(caller, { method, params: { channel_ids } }, code);
  if (named === undefined) {
    demand(data === undefined, 'no data where the parameters are at fault');
    return;
  }
  const told = (data as JsonObject | undefined)?.channel_ids;
  demand(Array.isArray(told), 'data names the channels that cannot be subscribed');
  demand(told.toSorted().join() === named.toSorted().join(), 'exactly those');
}

subscription.check(
  'replaces',
  { source: '06 §9.1, 02 §13.3', title: 'replaces the set of this connection', ...onWss },
  async (stage) => {
    const { channel: first, owner, readers } = await channelSceneOf(stage, { readers: 1 });
    const [rea] = readers as [Resident];
    const second = await ChannelActors.found(stage, owner);
    const other = { caller: await stage.member(rea.device) };
    const heard = async (by: Pick<Resident, 'caller'>, channel: ChannelActors) => {
      await hearsHead(by, { channel, head: await stirChannel(channel), alone: true });
    };
    await subscribeChannels(rea, [first]);
    await heard(rea, first);
    await subscribeChannels(rea, [first, second]);
    await subscribeChannels(rea, [second, first]);
    await heard(rea, first);
    await heard(rea, second);
    await subscribeChannels(rea, [second]);
    await stirChannel(first);
    await heard(rea, second);
    demand(hintsOf(rea, 'channel').length === 0, 'nothing of a channel that was left out');
    await subscribeChannels(rea, []);
    await subscribeChannels(other, [second]);
    await heard(other, second);
    await stage.succeed(rea.caller, 'relay.info');
    demand(hintsOf(rea, 'channel').length === 0, 'nothing after clearing');
    await subscribeChannels(rea, [second]);
    await heard(rea, second);
  },
);

subscription.check(
  'silent',
  { source: '02 §13.3', title: 'success pushes no state and no hint that waited', ...onWss },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    await stirChannel(channel);
    for (let count = 0; count < 2; count += 1) await subscribeChannels(owner, [channel]);
    // Any answer comes behind what subscribing would have pushed.
    await stage.succeed(owner.caller, 'relay.info');
    demand(hintsOf(owner, 'channel').length === 0, 'nothing is pushed');
  },
);

subscription.check(
  'parameters',
  { source: '06 §9.1 step 1', title: 'refuses repeated and malformed IDs, without data', ...onWss },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const { channelId } = channel;
    const wrong = ['chan_short', channelId.replace('chan_', 'CHAN_'), `${channelId}=`, ''];
    await refuses(stage, owner, ['bad_request', [channelId, channelId]]);
    for (const id of wrong) await refuses(stage, owner, ['bad_request', [channelId, id]]);
    // Before anything is said of channels.
    const unknown = newChannelId();
    await refuses(stage, owner, ['bad_request', [unknown, unknown]]);
    await refuses(stage, owner, ['bad_request', [unknown, 'chan_short']]);
    for (const channel_ids of [null, channelId, {}, [null], [1]]) {
      await stage.fail(owner.caller, { method, params: { channel_ids } }, 'bad_request');
    }
    await stage.fail(owner.caller, { method, params: {} }, 'bad_request');
    await subscribeChannels(owner, []);
  },
);

subscription.check(
  'count',
  {
    source: '06 §9.1 step 2, 02 §13.1',
    title: 'refuses more than the limit, before all',
    ...onWss,
  },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const limit = await relayLimit(stage, 'max_channel_subscriptions');
    demand(limit >= 0, 'the limit is not negative');
    // A request of more would not fit a message.
    if (limit <= 30_000) {
      const many = Array.from({ length: limit }, newChannelId);
      await refuses(stage, owner, ['bad_request', [...many, channel.channelId]]);
      if (limit > 0) await refuses(stage, owner, ['not_found', many], many);
    }
    if (limit > 0) await subscribeChannels(owner, [channel]);
    else await subscribeChannels(owner, []);
  },
);

subscription.check(
  'unavailable',
  { source: '06 §9.1 step 3', title: 'names all channels it cannot subscribe', ...onWss },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const [unknown, missing] = [newChannelId(), newChannelId()];
    const { channelId } = channel;
    await refuses(stage, owner, ['not_found', [unknown]], [unknown]);
    await refuses(stage, owner, ['not_found', [channelId, unknown]], [unknown]);
    await refuses(stage, owner, ['not_found', [missing, channelId, unknown]], [unknown, missing]);
    await subscribeChannels(owner, [channel]);
  },
);

subscription.check(
  'whole',
  { source: '06 §9.1', title: 'a refusal leaves the former set as it was', ...onWss },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const second = await ChannelActors.found(stage, owner);
    const unknown = newChannelId();
    await subscribeChannels(owner, [channel]);
    await refuses(stage, owner, ['not_found', [second.channelId, unknown]], [unknown]);
    await refuses(stage, owner, ['bad_request', [second.channelId, second.channelId]]);
    await stirChannel(second);
    await hearsHead(owner, { channel, head: await stirChannel(channel) });
    demand(hintsOf(owner, 'channel').length === 0, 'nothing of the channel that was refused');
  },
);

subscription.check(
  'apart',
  { source: '02 §13', title: 'channels and groups are sets of their own', ...onWss },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    await subscribeChannels(owner, [channel]);
    // Of a relay without groups the method is unknown, which clears nothing either.
    await owner.caller.call('group.subscribe', { group_ids: [] });
    await hearsHead(owner, { channel, head: await stirChannel(channel) });
  },
);

subscription.check(
  'connection',
  { source: '02 §13.3', title: 'the set is of one connection and ends with it', ...onWss },
  async (stage) => {
    const { channel, owner, readers } = await channelSceneOf(stage, { readers: 1 });
    const [rea] = readers as [Resident];
    const another = { caller: await stage.member(rea.device) };
    await subscribeChannels(rea, [channel]);
    await hearsHead(rea, { channel, head: await stirChannel(channel) });
    await stage.succeed(another.caller, 'relay.info');
    demand(hintsOf(another, 'channel').length === 0, 'nothing on the other connection');
    rea.caller[Symbol.dispose]();
    await subscribeChannels(another, [channel]);
    await hearsHead(another, { channel, head: await stirChannel(channel), alone: true });
    await subscribeChannels(owner, [channel]);
  },
);

subscription.check(
  'renewal',
  { source: '06 §9.2, 02 §13.3', title: 'the set survives a renewal of the session', ...onWss },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    await subscribeChannels(owner, [channel]);
    await stage.enterDevice(owner.caller, owner.device);
    await hearsHead(owner, { channel, head: await stirChannel(channel) });
  },
);

subscription.check(
  'removed-device',
  { source: '02 §12.3, §13.3', title: 'the set ends with the device', ...onWss },
  async (stage) => {
    const { channel, readers } = await channelSceneOf(stage, { readers: 1, devices: 2 });
    const [rea] = readers as [Resident];
    const laptop = at(rea, 1);
    for (const by of [rea, laptop]) await subscribeChannels(by, [channel]);
    const head = await stirChannel(channel);
    for (const by of [rea, laptop]) await hearsHead(by, { channel, head });
    await keepDevices(stage, rea, [rea.device]);
    await hearsHead(rea, { channel, head: await stirChannel(channel) });
    demand(hintsOf(laptop, 'channel').length === 0, 'the device that was removed hears nothing');
  },
);

subscription.check(
  'http',
  { source: '06 §8, 02 §2.1', title: 'does not exist over HTTP', transports: ['https'] },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const params = { channel_ids: [channel.channelId] };
    for (const verb of ['POST', 'PUT', 'GET'] as const) {
      const answer = await owner.caller.call(method, verb === 'GET' ? {} : params, verb);
      demand(!answer.ok && answer.code === 'method_not_found', 'it is method_not_found');
    }
  },
);

export const channelSubscribeChecks = subscription.list;
