/** Subscriptions of one connection (06 §9.1, 02 §13). */

import { encodeBase64url } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { nodeRandom } from '@posthouse/protocol/node';
import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { appendEvent, subscribeChannels, waitForHead } from '../../channels/channel-listeners.ts';
import { TestChannel } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { relayLimit } from '../../fixtures/relay-info.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { pendingNotifications } from '../../transport/notifications.ts';

const subscription = checksOf('channel.subscribe');
const method = 'channel.subscribe';
const onWss = { transports: ['wss'] } as const;

const newChannelId = () => `chan_${encodeBase64url(nodeRandom(16))}`;

/** Asserts a refusal with exactly these channels in its data, or without data. */
async function refuses(
  context: TestContext,
  { caller }: Pick<TestAccount, 'caller'>,
  [code, channel_ids]: readonly [code: 'bad_request' | 'not_found', ids: readonly string[]],
  named?: readonly string[],
): Promise<void> {
  const { data } = await context.expectError(caller, { method, params: { channel_ids } }, code);
  if (named === undefined) {
    assertEqual(data, undefined, 'no data if the parameters are malformed');
    return;
  }
  const listed = (data as JsonObject | undefined)?.channel_ids;
  assertConforms(Array.isArray(listed), 'data names the channels that cannot be subscribed');
  assertEqual(listed.toSorted().join(), named.toSorted().join(), 'exactly the refused channels');
}

subscription.check(
  'replaces',
  { source: '06 §9.1, 02 §13.3', title: 'replaces the subscriptions of this connection', ...onWss },
  async (context) => {
    const { channel: first, owner, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    const second = await TestChannel.create(context, owner);
    const other = { caller: await context.deviceSession(rea.device) };
    const expectHint = async (by: Pick<TestAccount, 'caller'>, channel: TestChannel) => {
      await waitForHead(by, { channel, head: await appendEvent(channel), alone: true });
    };
    await subscribeChannels(rea, [first]);
    await expectHint(rea, first);
    await subscribeChannels(rea, [first, second]);
    await subscribeChannels(rea, [second, first]);
    await expectHint(rea, first);
    await expectHint(rea, second);
    await subscribeChannels(rea, [second]);
    await appendEvent(first);
    await expectHint(rea, second);
    assertEqual(
      pendingNotifications(rea, 'channel').length,
      0,
      'no hint of a channel that is no longer subscribed',
    );
    await subscribeChannels(rea, []);
    await subscribeChannels(other, [second]);
    await expectHint(other, second);
    await context.expectOk(rea.caller, 'relay.info');
    assertEqual(
      pendingNotifications(rea, 'channel').length,
      0,
      'no hint after an empty subscription',
    );
    await subscribeChannels(rea, [second]);
    await expectHint(rea, second);
  },
);

subscription.check(
  'silent',
  { source: '02 §13.3', title: 'success pushes no state and no earlier hint', ...onWss },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    await appendEvent(channel);
    for (let count = 0; count < 2; count += 1) await subscribeChannels(owner, [channel]);
    // An answer comes after anything that subscribing would have pushed.
    await context.expectOk(owner.caller, 'relay.info');
    assertEqual(pendingNotifications(owner, 'channel').length, 0, 'no hint after subscribing');
  },
);

subscription.check(
  'parameters',
  { source: '06 §9.1 step 1', title: 'refuses repeated and malformed IDs, without data', ...onWss },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const { channelId } = channel;
    const wrong = ['chan_short', channelId.replace('chan_', 'CHAN_'), `${channelId}=`, ''];
    await refuses(context, owner, ['bad_request', [channelId, channelId]]);
    for (const id of wrong) await refuses(context, owner, ['bad_request', [channelId, id]]);
    // Checked before the channels are.
    const unknown = newChannelId();
    await refuses(context, owner, ['bad_request', [unknown, unknown]]);
    await refuses(context, owner, ['bad_request', [unknown, 'chan_short']]);
    for (const channel_ids of [null, channelId, {}, [null], [1]]) {
      await context.expectError(owner.caller, { method, params: { channel_ids } }, 'bad_request');
    }
    await context.expectError(owner.caller, { method, params: {} }, 'bad_request');
    await subscribeChannels(owner, []);
  },
);

subscription.check(
  'count',
  {
    source: '06 §9.1 step 2, 02 §13.1',
    title: 'refuses more IDs than the limit before other checks',
    ...onWss,
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const limit = await relayLimit(context, 'max_channel_subscriptions');
    assertConforms(limit >= 0, 'the limit is not negative');
    // A request with more IDs would not fit into a message.
    if (limit <= 30_000) {
      const many = Array.from({ length: limit }, newChannelId);
      await refuses(context, owner, ['bad_request', [...many, channel.channelId]]);
      if (limit > 0) await refuses(context, owner, ['not_found', many], many);
    }
    if (limit > 0) await subscribeChannels(owner, [channel]);
    else await subscribeChannels(owner, []);
  },
);

subscription.check(
  'unavailable',
  { source: '06 §9.1 step 3', title: 'names all channels it cannot subscribe', ...onWss },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const [unknown, missing] = [newChannelId(), newChannelId()];
    const { channelId } = channel;
    await refuses(context, owner, ['not_found', [unknown]], [unknown]);
    await refuses(context, owner, ['not_found', [channelId, unknown]], [unknown]);
    await refuses(context, owner, ['not_found', [missing, channelId, unknown]], [unknown, missing]);
    await subscribeChannels(owner, [channel]);
  },
);

subscription.check(
  'whole',
  { source: '06 §9.1', title: 'a refusal leaves the subscriptions unchanged', ...onWss },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const second = await TestChannel.create(context, owner);
    const unknown = newChannelId();
    await subscribeChannels(owner, [channel]);
    await refuses(context, owner, ['not_found', [second.channelId, unknown]], [unknown]);
    await refuses(context, owner, ['bad_request', [second.channelId, second.channelId]]);
    await appendEvent(second);
    await waitForHead(owner, { channel, head: await appendEvent(channel) });
    assertEqual(pendingNotifications(owner, 'channel').length, 0, 'no hint of a refused channel');
  },
);

subscription.check(
  'apart',
  { source: '02 §13', title: 'subscriptions to channels and groups are separate', ...onWss },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    await subscribeChannels(owner, [channel]);
    // On a relay without groups the method is unknown, which clears nothing either.
    await owner.caller.call('group.subscribe', { group_ids: [] });
    await waitForHead(owner, { channel, head: await appendEvent(channel) });
  },
);

subscription.check(
  'connection',
  { source: '02 §13.3', title: 'subscriptions belong to one connection and end with it', ...onWss },
  async (context) => {
    const { channel, owner, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    const another = { caller: await context.deviceSession(rea.device) };
    await subscribeChannels(rea, [channel]);
    await waitForHead(rea, { channel, head: await appendEvent(channel) });
    await context.expectOk(another.caller, 'relay.info');
    assertEqual(
      pendingNotifications(another, 'channel').length,
      0,
      'no hint on the other connection',
    );
    rea.caller[Symbol.dispose]();
    await subscribeChannels(another, [channel]);
    await waitForHead(another, { channel, head: await appendEvent(channel), alone: true });
    await subscribeChannels(owner, [channel]);
  },
);

subscription.check(
  'renewal',
  {
    source: '06 §9.2, 02 §13.3',
    title: 'subscriptions survive a renewal of the session',
    ...onWss,
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    await subscribeChannels(owner, [channel]);
    await context.authenticateDevice(owner.caller, owner.device);
    await waitForHead(owner, { channel, head: await appendEvent(channel) });
  },
);

subscription.check(
  'removed-device',
  { source: '02 §12.3, §13.3', title: 'subscriptions end when the device is removed', ...onWss },
  async (context) => {
    const { channel, readers } = await channelFixture(context, { readers: 1, devices: 2 });
    const [rea] = readers as [TestAccount];
    const laptop = withDevice(rea, 1);
    for (const by of [rea, laptop]) await subscribeChannels(by, [channel]);
    const head = await appendEvent(channel);
    for (const by of [rea, laptop]) await waitForHead(by, { channel, head });
    await publishDevices(context, rea, [rea.device]);
    await waitForHead(rea, { channel, head: await appendEvent(channel) });
    assertEqual(pendingNotifications(laptop, 'channel').length, 0, 'no hint to the removed device');
  },
);

subscription.check(
  'http',
  { source: '06 §8, 02 §2.1', title: 'does not exist over HTTP', transports: ['https'] },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const params = { channel_ids: [channel.channelId] };
    for (const verb of ['POST', 'PUT', 'GET'] as const) {
      const answer = await owner.caller.call(method, verb === 'GET' ? {} : params, verb);
      assertConforms(!answer.ok && answer.code === 'method_not_found', 'it is method_not_found');
    }
  },
);

export const channelSubscribeChecks = subscription.list;
