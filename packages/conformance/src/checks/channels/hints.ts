/** Which calls cause hints to subscribers, and which do not (06 §5.4, §9.2; 02 §12.8). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import type { ChannelMethodName } from '../../channels/channel-calls.ts';
import { type ChannelFixture, channelFixture } from '../../channels/channel-fixture.ts';
import {
  appendEvent,
  nextHead,
  subscribeChannels,
  waitForHead,
} from '../../channels/channel-listeners.ts';
import { textBody } from '../../channels/channel-objects.ts';
import { lastEvent, readTimeline } from '../../channels/channel-reader.ts';
import { type Check, checksOf } from '../../check.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount, TestContext } from '../../fixtures/test-context.ts';
import { pendingNotifications } from '../../transport/notifications.ts';

/** A channel with owner, moderator, reader and a post. */
interface Participants extends ChannelFixture {
  readonly mia: TestAccount;
  readonly rea: TestAccount;
  /** A post of the owner, and the parameters that published it. */
  readonly target: number;
  readonly publication: JsonObject;
}

type Act = (all: Participants) => Promise<unknown>;

const body = textBody('edited');

/** Calls that append an event. */
const events: readonly (readonly [ChannelMethodName, string, Act])[] = [
  ['channel.update', 'event', ({ channel }) => channel.update({ name: 'Renamed' })],
  ['channel.close', 'event', ({ channel }) => channel.close()],
  ['channel.post', 'event', ({ channel, mia }) => channel.post({}, mia)],
  ['channel.post.edit', 'event', ({ channel, mia, target }) => channel.edit(target, { body }, mia)],
  ['channel.post.delete', 'event', ({ channel, target }) => channel.delete(target)],
];

const refused =
  (method: ChannelMethodName, params: (all: Participants) => JsonObject): Act =>
  async (all) => {
    const answer = await all.rea.caller.call(method, params(all));
    assertConforms(!answer.ok, `${method} is refused`);
  };

/** Calls that append no event, successful or not. */
const nonEvents: readonly (readonly [ChannelMethodName, string, Act])[] = [
  ['channel.post', 'repeat', ({ channel, publication }) => channel.sendPost(publication)],
  [
    'channel.post',
    'refused',
    refused('channel.post', ({ channel, rea }) => channel.postParams({}, rea)),
  ],
  [
    'channel.post.edit',
    'no-change',
    ({ channel, target, publication }) =>
      channel.edit(target, { body: publication.body as JsonObject }),
  ],
  [
    'channel.post.edit',
    'refused',
    refused('channel.post.edit', ({ channel, rea, target }) =>
      channel.editParams(target, { body }, rea),
    ),
  ],
  [
    'channel.post.delete',
    'refused',
    refused('channel.post.delete', ({ channel, rea, target }) =>
      channel.deleteParams(target, {}, rea),
    ),
  ],
  [
    'channel.update',
    'refused',
    refused('channel.update', ({ channel, rea }) => channel.updateParams({}, rea)),
  ],
  [
    'channel.close',
    'refused',
    refused('channel.close', ({ channel, rea }) => channel.closeParams({}, rea)),
  ],
  ['channel.post.report', 'made', ({ channel, target, rea }) => channel.report(target, rea)],
  ['channel.read', 'made', ({ channel, rea }) => readTimeline(channel, rea)],
  [
    'channel.resolve',
    'made',
    ({ context, channel: { channelId: channel_id }, rea }) =>
      context.expectOk(rea.caller, 'channel.resolve', { channel_id }),
  ],
];

async function participants(context: TestContext): Promise<Participants> {
  const fixture = await channelFixture(context, { moderators: 1, readers: 1, devices: 2 });
  const [mia, rea] = [...fixture.moderators, ...fixture.readers] as [TestAccount, TestAccount];
  const publication = fixture.channel.postParams();
  const target = await fixture.channel.sendPost(publication);
  return { ...fixture, mia, rea, target, publication };
}

/** The subscribed accounts, some with two devices. */
const subscribers = ({ owner, mia, rea }: Participants) => [
  owner,
  withDevice(owner, 1),
  mia,
  rea,
  withDevice(rea, 1),
];

const checks: Check[] = [];

for (const [method, word, act] of events) {
  const { check, list } = checksOf(method);
  check(
    `hints-${word}`,
    {
      source: '06 §5.4, §9.2',
      title: 'hints the new head to every subscriber',
      transports: ['wss'],
    },
    async (context) => {
      const all = await participants(context);
      const { channel, mia } = all;
      for (const by of subscribers(all)) await subscribeChannels(by, [channel]);
      await act(all);
      const head = (await lastEvent(channel)).sequence;
      assertConforms(head > all.target, 'a new event after the post');
      for (const by of subscribers(all)) await waitForHead(by, { channel, head });
      assertEqual(
        pendingNotifications(withDevice(mia, 1), 'channel').length,
        0,
        'no hint to a device that did not subscribe',
      );
    },
  );
  checks.push(...list);
}

for (const [method, word, act] of nonEvents) {
  const { check, list } = checksOf(method);
  check(
    `silent-${word}`,
    {
      source: '06 §5.4',
      title: `causes no hint if no event is appended (${word})`,
      transports: ['wss'],
    },
    async (context) => {
      const all = await participants(context);
      for (const by of subscribers(all)) await subscribeChannels(by, [all.channel]);
      await act(all);
      const { channel } = all;
      const head = await appendEvent(channel);
      for (const by of subscribers(all)) await waitForHead(by, { channel, head, alone: true });
    },
  );
  checks.push(...list);
}

const post = checksOf('channel.post');
post.check(
  'hints-readable',
  { source: '06 §7.2, §9.2', title: 'a hinted event is readable', transports: ['wss'] },
  async (context) => {
    const { channel, owner, mia, rea } = await participants(context);
    await subscribeChannels(rea, [channel]);
    const writers = [owner, mia, owner, mia, owner, mia];
    const posting = Promise.all(writers.map((by) => channel.post({}, by)));
    const reading = async () => {
      let head = 0;
      for (let hinted = -1; hinted < head; ) {
        hinted = await nextHead(rea, channel);
        const { raw } = await readTimeline(channel, rea);
        assertConforms((raw.at(-1)?.sequence ?? 0) >= hinted, `event ${hinted} is readable`);
        head = Math.max(...(await posting));
      }
    };
    await Promise.all([posting, reading()]);
  },
);
checks.push(...post.list);

export const channelHintChecks: readonly Check[] = checks;
