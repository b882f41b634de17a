/** Reading a timeline, page by page (06 §8.11, §5.2, §7.1; 02 §6). */
import { type ChannelRange, deriveDeviceId } from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { textBody } from '../../channels/channel-objects.ts';
import { readBackward, readChannelPage, readTimeline } from '../../channels/channel-reader.ts';
import { type PopulatedChannel, populatedChannel } from '../../channels/populated-channel.ts';
import type { TestChannel } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { unixSeconds } from '../../fixtures/account.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { relayLimit } from '../../fixtures/relay-info.ts';
import { publishDevices, withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const read = checksOf('channel.read');
const method = 'channel.read';

/**
 * Asserts that a range returns these sequences with a correct `has_more`. A relay may return fewer
 * (02 §6): then the first ones in the direction of reading.
 */
async function assertPage(
  { channel, rea }: Pick<PopulatedChannel, 'channel' | 'rea'>,
  range: ChannelRange,
  { sequences, more }: { readonly sequences: readonly number[]; readonly more: boolean },
): Promise<void> {
  const { page } = await readChannelPage(channel, rea, range);
  const count = page.events.length;
  const nearest =
    range.after === undefined
      ? sequences.slice(sequences.length - count)
      : sequences.slice(0, count);
  const found = page.events.map(({ sequence }) => sequence).join();
  const what = JSON.stringify(range);
  assertConforms(count > 0 || sequences.length === 0, `${what}: at least one event`);
  assertConforms(found === nearest.join(), `${what}: ${sequences}, not ${found}`);
  const left = more || count < sequences.length;
  assertEqual(page.has_more, left, `${what}: has_more is ${left}`);
}

read.check(
  'latest',
  {
    source: '06 §8.11',
    title: 'returns the latest events if no boundary is given, in ascending order',
  },
  async (context) => {
    const fixture = await populatedChannel(context);
    const { all } = fixture;
    assertConforms(all[0] === 0 && all.length === 7, 'seven events are readable');
    await assertPage(fixture, {}, { sequences: all, more: false });
    for (const limit of [1, 2, 6]) {
      await assertPage(fixture, { limit }, { sequences: all.slice(-limit), more: true });
    }
    for (const limit of [7, 8, 1_000_000, Number.MAX_SAFE_INTEGER]) {
      await assertPage(fixture, { limit }, { sequences: all, more: false });
    }
  },
);

read.check(
  'before',
  { source: '06 §8.11', title: 'returns the latest events below `before`, also at gaps' },
  async (context) => {
    const fixture = await populatedChannel(context);
    const { all, gaps } = fixture;
    assertEqual(gaps.length, 2, 'two positions are gaps');
    const head = all.at(-1) as number;
    const positions = [...all, ...gaps, head + 1, head + 5, Number.MAX_SAFE_INTEGER];
    for (const before of positions) {
      const below = all.filter((sequence) => sequence < before);
      await assertPage(fixture, { before }, { sequences: below, more: false });
      const range = { before, limit: 2 };
      await assertPage(fixture, range, { sequences: below.slice(-2), more: below.length > 2 });
    }
    await assertPage(fixture, { before: 0 }, { sequences: [], more: false });
    await assertPage(fixture, { before: 0, limit: 1 }, { sequences: [], more: false });
  },
);

read.check(
  'after',
  { source: '06 §8.11', title: 'returns the earliest events above `after`, also at gaps' },
  async (context) => {
    const fixture = await populatedChannel(context);
    const { all, gaps } = fixture;
    for (const after of [-1, ...all, ...gaps]) {
      const above = all.filter((sequence) => sequence > after);
      await assertPage(fixture, { after }, { sequences: above, more: false });
      const range = { after, limit: 2 };
      await assertPage(fixture, range, { sequences: above.slice(0, 2), more: above.length > 2 });
    }
  },
);

read.check(
  'wrong-bounds',
  { source: '06 §8.11, 02 §2.4, §6', title: 'refuses invalid boundaries and limits' },
  async (context) => {
    const { channel, rea, all } = await populatedChannel(context);
    const { channelId: channel_id } = channel;
    const head = all.at(-1) as number;
    const texts = ['x', '', '00', '+1', '1.0', '1e0', '-0', ' 1', '9007199254740992'];
    const values = ['1', '', [1], {}, true, null];
    const odd = context.transport === 'https' ? texts : values;
    const wrong: JsonObject[] = [
      { before: 3, after: 1 },
      { before: 1, after: -1 },
      { after: head + 1 },
      { after: Number.MAX_SAFE_INTEGER },
      { after: -2 },
      { before: -1 },
      { limit: 0 },
      { limit: -1 },
      ...odd.flatMap((value) => [{ before: value }, { after: value }, { limit: value }]),
    ];
    const calls = wrong.map((range) => {
      return [JSON.stringify(range), { channel_id, ...range }] as const;
    });
    await assertAllRefused({ by: rea, method, codes: ['bad_request'] }, calls);
    const { page } = await readChannelPage(channel, rea, { after: head });
    assertConforms(page.events.length === 0 && !page.has_more, 'nothing is above the head');
    assertEqual(page.certificates.length, 0, 'the number of certificates of an empty page');
  },
);

read.check(
  'pages',
  {
    source: '06 §8.11, 02 §6',
    title: 'returns the same events in pages of any size, in both directions',
  },
  async (context) => {
    const { channel, rea } = await populatedChannel(context);
    const { raw } = await readTimeline(channel, rea);
    for (const limit of [1, 2, 3, 7, Number.MAX_SAFE_INTEGER]) {
      const forward = (await readTimeline(channel, rea, { limit })).raw;
      assertEqual(forward, raw, `forward by ${limit}`);
      assertEqual(await readBackward(channel, rea, limit), raw, `backward by ${limit}`);
    }
  },
);

read.check(
  'long',
  {
    source: '06 §8.11, 02 §6',
    title: 'returns all events of a large timeline, in any number of pages',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const text = 'x'.repeat(60_000);
    const indexes = Array.from({ length: 24 }, (_, index) => index);
    await Promise.all(indexes.map((index) => channel.post({ index, body: textBody(text) })));
    const { raw } = await readTimeline(channel, owner);
    assertEqual(raw.length, 25, 'the number of events');
    assertEqual(await readBackward(channel, owner, 1_000_000), raw, 'the same events backward');
  },
);

read.check(
  'certificates',
  {
    source: '06 §5.2, §8.11',
    title: 'returns one certificate for each signing device, and no other',
  },
  async (context) => {
    const { channel, owner, mia, rea } = await populatedChannel(context);
    const { page } = await readChannelPage(channel, rea);
    const found = page.certificates.map((each) => deriveDeviceId(context.network, each)).sort();
    const writers = [owner, withDevice(owner, 1), mia, withDevice(mia, 1)];
    assertEqual(
      found,
      writers.map(({ device }) => device.id).sort(),
      'the certificates of all four devices',
    );
    for (const { account, device } of writers) {
      const certificate = page.certificates.find(
        (each) => deriveDeviceId(context.network, each) === device.id,
      );
      assertEqual(certificate?.account, account.id, 'the account of each certificate');
    }
    const { page: first } = await readChannelPage(channel, rea, { after: -1, limit: 1 });
    assertEqual(
      first.certificates.length,
      1,
      'the number of certificates of a page with one event',
    );
  },
);

read.check(
  'removed-signer',
  { source: '06 §5.2, §4', title: 'events of a removed device still verify' },
  async (context) => {
    const { channel, owner, mia, rea } = await populatedChannel(context);
    const before = (await readTimeline(channel, rea)).raw;
    for (const by of [owner, mia]) await publishDevices(context, by, [by.device]);
    const { raw } = await readTimeline(channel, rea);
    assertEqual(raw, before, 'the same events, and each of them verifies');
  },
);

read.check(
  'renewed-signer',
  { source: '06 §5.2', title: 'returns one certificate of a renewed device' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    await channel.post();
    const { account, device } = owner;
    const notBefore = unixSeconds() - 7_200;
    const certificate = await account.certify(device.signer, { notBefore });
    const renewed = { ...device, certificate };
    await publishDevices(context, owner, [renewed]);
    const again = { ...owner, device: renewed, caller: await context.deviceSession(renewed) };
    await channel.post({}, again);
    const { page } = await readChannelPage(channel, again);
    assertEqual(page.events.length, 3, 'all events verify');
    assertEqual(page.certificates.length, 1, 'with one certificate');
  },
);

read.check(
  'stable',
  { source: '06 §7.1', title: 'returns the same event at any time and on both transports' },
  async (context) => {
    const { channel, owner, rea, gaps } = await populatedChannel(context);
    const { raw } = await readTimeline(channel, rea);
    const other = { caller: await context.deviceSession(rea.device, context.otherTransport) };
    assertEqual((await readTimeline(channel, other)).raw, raw, 'on the other transport');
    assertEqual((await readTimeline(channel, owner)).raw, raw, 'for the owner');
    const published = raw.find(({ payload }) => Object.hasOwn(payload, 'message_id'));
    await channel.sendPost(published?.payload as JsonObject);
    await channel.update({ name: 'Renamed' });
    const newest = await channel.post();
    await channel.delete(newest);
    const after = (await readTimeline(channel, rea)).raw;
    assertEqual(after.slice(0, raw.length), raw, 'the same events after later writes');
    const taken = [...raw.map(({ sequence }) => sequence), ...gaps, newest];
    const later = after.slice(raw.length).map(({ sequence }) => sequence);
    assertConforms(
      !later.some((sequence) => taken.includes(sequence)),
      'no sequence is used twice',
    );
    assertConforms(
      (await relayLimit(context, 'channel_timeline_retention')) > 0,
      'a channel_timeline_retention above 0',
    );
  },
);

read.check(
  'boundaries-hold',
  { source: '06 §8.11', title: 'events appended during reading shift no page' },
  async (context) => {
    const { channel, rea } = await populatedChannel(context);
    const { raw } = await readTimeline(channel, rea);
    const seen: typeof raw = [];
    let range: ChannelRange = { limit: 2 };
    for (;;) {
      const { page } = await readChannelPage(channel, rea, range);
      seen.unshift(...page.events);
      if (!page.has_more) break;
      await channel.post();
      range = { before: page.events[0]?.sequence as number, limit: 2 };
    }
    assertEqual(seen, raw, 'the events that existed at the start');
  },
);

read.check(
  'while-writing',
  { source: '06 §5.1, §7.2', title: 'returns every event that is appended during reading' },
  async (context) => {
    const { channel, owner, mia, rea } = await populatedChannel(context);
    const seen: number[] = [];
    const turn = async () => {
      const { page } = await readChannelPage(channel, rea, { after: seen.at(-1) ?? -1, limit: 2 });
      seen.push(...page.events.map(({ sequence }) => sequence));
      return page.has_more;
    };
    const turns = async () => {
      for (let count = 0; count < 8; count += 1) await turn();
    };
    const writers = [owner, mia, owner, mia, owner, mia];
    const [posted] = await Promise.all([postAll(channel, writers), turns()]);
    while (await turn());
    assertEqual(new Set(seen).size, seen.length, 'no sequence twice');
    const missed = posted.filter((sequence) => !seen.includes(sequence));
    assertEqual(missed.length, 0, `every post; missed ${missed}`);
  },
);

function postAll(channel: TestChannel, writers: readonly TestAccount[]): Promise<number[]> {
  return Promise.all(writers.map((by) => channel.post({}, by)));
}

export const channelReadChecks = read.list;
