/** What subscribers are told, and what they are not (06 §5.4, §9.2; 02 §12.8). */
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

/** Owner, moderator, reader, and a post. */
interface Participants extends ChannelFixture {
  readonly mia: TestAccount;
  readonly rea: TestAccount;
  /** A post of the owner, and the parameters that published it. */
  readonly target: number;
  readonly publication: JsonObject;
}

type Act = (cast: Participants) => Promise<unknown>;

const body = textBody('edited');

/** What appends an event. */
const events: readonly (readonly [ChannelMethodName, string, Act])[] = [
  ['channel.update', 'event', ({ channel }) => channel.update({ name: 'Renamed' })],
  ['channel.close', 'event', ({ channel }) => channel.close()],
  ['channel.post', 'event', ({ channel, mia }) => channel.post({}, mia)],
  ['channel.post.edit', 'event', ({ channel, mia, target }) => channel.edit(target, { body }, mia)],
  ['channel.post.delete', 'event', ({ channel, target }) => channel.delete(target)],
];

const refused =
  (method: ChannelMethodName, params: (cast: Participants) => JsonObject): Act =>
  async (cast) => {
    const answer = await cast.rea.caller.call(method, params(cast));
    assertConforms(!answer.ok, `${method} is refused`);
  };

/** What appends none, successful or not. */
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

/** Everybody who listens, whoever acts, at whichever device. */
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
    { source: '06 §5.4, §9.2', title: 'tells every subscriber of the head', transports: ['wss'] },
    async (context) => {
      const cast = await participants(context);
      const { channel, mia } = cast;
      for (const by of subscribers(cast)) await subscribeChannels(by, [channel]);
      await act(cast);
      const head = (await lastEvent(channel)).sequence;
      assertConforms(head > cast.target, 'the event is there');
      for (const by of subscribers(cast)) await waitForHead(by, { channel, head });
      assertEqual(pendingNotifications(withDevice(mia, 1), 'channel').length, 0, 'and nobody else');
    },
  );
  checks.push(...list);
}

for (const [method, word, act] of nonEvents) {
  const { check, list } = checksOf(method);
  check(
    `silent-${word}`,
    { source: '06 §5.4', title: `tells nobody of what is no event (${word})`, transports: ['wss'] },
    async (context) => {
      const cast = await participants(context);
      for (const by of subscribers(cast)) await subscribeChannels(by, [cast.channel]);
      await act(cast);
      const { channel } = cast;
      const head = await appendEvent(channel);
      for (const by of subscribers(cast)) await waitForHead(by, { channel, head, alone: true });
    },
  );
  checks.push(...list);
}

const post = checksOf('channel.post');
post.check(
  'hints-readable',
  { source: '06 §7.2, §9.2', title: 'who hears of a head finds the event', transports: ['wss'] },
  async (context) => {
    const { channel, owner, mia, rea } = await participants(context);
    await subscribeChannels(rea, [channel]);
    const people = [owner, mia, owner, mia, owner, mia];
    const posting = Promise.all(people.map((by) => channel.post({}, by)));
    const reading = async () => {
      let head = 0;
      for (let told = -1; told < head; ) {
        told = await nextHead(rea, channel);
        const { raw } = await readTimeline(channel, rea);
        assertConforms((raw.at(-1)?.sequence ?? 0) >= told, `the event ${told} is there`);
        head = Math.max(...(await posting));
      }
    };
    await Promise.all([posting, reading()]);
  },
);
checks.push(...post.list);

export const channelHintChecks: readonly Check[] = checks;
