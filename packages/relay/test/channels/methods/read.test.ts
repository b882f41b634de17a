import { type ChannelPage, verifyChannelPage } from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { type ReadRange, TestChannel, text } from '../../fixtures/channel.ts';
import { refusal } from '../../fixtures/refusal.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const last = Number.MAX_SAFE_INTEGER;
const relay = inProcessRelay({
  pageSize: 4,
  maxPageSize: 6,
  channelTimelineRetention: 1_000,
});
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const eve = relay.person('eve');
let channel: TestChannel;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
});

/** Reads a page as an account that is neither owner nor moderator. */
async function page(range: ReadRange = {}): Promise<[number[], boolean]> {
  const { events, has_more } = await channel.read(range, { by: eve });
  return [events.map(({ sequence }) => sequence), has_more];
}
const refused = (params: object, session: object | undefined = eve.session()) =>
  refusal(relay, () =>
    relay.call('channel.read', params, { session: session as never, form: 'query' }),
  );
const posts = async (count: number) => {
  for (let index = 0; index < count; index += 1) await channel.post();
};
/** Runs the retention job. */
const clear = () => relay.runJob('channels.retention');

/** Reads all events page by page in one direction. */
async function walk(direction: 'after' | 'before', limit: number): Promise<ChannelPage[]> {
  const pages: ChannelPage[] = [];
  let range: ReadRange = direction === 'after' ? { after: -1, limit } : { limit };
  for (;;) {
    const { events, ...rest } = await channel.read(range, { by: eve });
    pages.push({ events, ...rest });
    if (!rest.has_more) return pages;
    const next = events.at(direction === 'after' ? -1 : 0)?.sequence as number;
    range = { [direction]: next, limit };
  }
}
const sequencesOf = (pages: readonly ChannelPage[]) =>
  pages.map(({ events }) => events.map(({ sequence }) => sequence));

describe('06 §8.11: boundaries', () => {
  test('without a boundary the latest page is returned, ascending', async () => {
    await posts(5);
    expect(await page()).toEqual([[2, 3, 4, 5], true]);
    expect(await page({ limit: 5 })).toEqual([[1, 2, 3, 4, 5], true]);
    expect(await page({ limit: 6 })).toEqual([[0, 1, 2, 3, 4, 5], false]);
  });

  test('before reads backwards, and need not name an existing event', async () => {
    await posts(5);
    expect(await page({ before: 4 })).toEqual([[0, 1, 2, 3], false]);
    expect(await page({ before: 5 })).toEqual([[1, 2, 3, 4], true]);
    expect(await page({ before: 1 })).toEqual([[0], false]);
    expect(await page({ before: 0 })).toEqual([[], false]);
    for (const before of [6, 7, last]) expect(await page({ before })).toEqual(await page());
  });

  test('after reads forwards, and is at most the head', async () => {
    await posts(5);
    expect(await page({ after: -1 })).toEqual([[0, 1, 2, 3], true]);
    expect(await page({ after: 1 })).toEqual([[2, 3, 4, 5], false]);
    expect(await page({ after: 0 })).toEqual([[1, 2, 3, 4], true]);
    expect(await page({ after: 5 })).toEqual([[], false]);
    const { channelId: channel_id } = channel;
    for (const after of [6, last]) expect(await refused({ channel_id, after })).toBe('bad_request');
  });

  test('a boundary in a gap selects the events beyond it', async () => {
    await posts(5);
    for (const gone of [1, 3, 5]) await channel.delete(gone);
    expect(await page({ limit: 6 })).toEqual([[0, 2, 4, 6, 7, 8], false]);
    expect(await page({ before: 4 })).toEqual([[0, 2], false]);
    expect(await page({ before: 3 })).toEqual([[0, 2], false]);
    expect(await page({ after: 3, limit: 1 })).toEqual([[4], true]);
    expect(await page({ after: 4, limit: 3 })).toEqual([[6, 7, 8], false]);
  });

  test('a large limit is capped, not refused', async () => {
    await posts(8);
    for (const limit of [6, 7, last]) {
      expect(await page({ after: -1, limit })).toEqual([[0, 1, 2, 3, 4, 5], true]);
    }
    expect(await page({ limit: 1 })).toEqual([[8], true]);
  });

  test('reading page by page returns every event once, in both directions', async () => {
    await posts(5);
    await channel.update({ name: 'x' });
    await channel.delete(2);
    for (const limit of [1, 2, 3, 6]) {
      expect(sequencesOf(await walk('after', limit)).flat()).toEqual([0, 1, 3, 4, 5, 6, 7]);
      expect(
        sequencesOf(await walk('before', limit))
          .reverse()
          .flat(),
      ).toEqual([0, 1, 3, 4, 5, 6, 7]);
    }
    expect(sequencesOf(await walk('after', 7 - 1))).toEqual([[0, 1, 3, 4, 5, 6], [7]]);
  });

  test('new events do not move a boundary', async () => {
    await posts(3);
    const older = await page({ before: 3 });
    await posts(2);
    expect(await page({ before: 3 })).toEqual(older);
  });
});

describe('06 §8.11: readable events', () => {
  test('a deleted post and its edits are neither returned nor counted', async () => {
    await posts(2);
    await channel.edit(1, { body: text('a') });
    await channel.edit(2, { body: text('b') });
    await channel.edit(1, { body: text('c') });
    await channel.delete(1);
    const shown = [0, 2, 4, 6];
    expect(await page()).toEqual([shown, false]);
    expect(await page({ after: 2, limit: 2 })).toEqual([[4, 6], false]);
    expect(await page({ before: 4, limit: 2 })).toEqual([[0, 2], false]);
    await clear();
    expect(await page()).toEqual([shown, false]);
  });

  test('edits stay with their post past their own deadline, and are removed with it', async () => {
    await posts(1);
    await relay.restart({ channelTimelineRetention: 10 });
    await channel.edit(1, { body: text('a') });
    relay.clock.advance(999);
    await clear();
    expect(await page()).toEqual([[0, 1, 2], false]);
    relay.clock.advance(1);
    await clear();
    expect(await page()).toEqual([[0], false]);
    expect(await page({ after: 2 })).toEqual([[], false]);
  });

  test('an edit with a later deadline is removed with its post', async () => {
    await posts(1);
    relay.clock.advance(900);
    await channel.edit(1, { body: text('a') });
    relay.clock.advance(100);
    await clear();
    expect(await page()).toEqual([[0], false]);
  });

  test('each page verifies by itself, with one certificate for each device in it', async () => {
    await channel.post(undefined, { by: ben });
    await channel.post(undefined, { device: 'laptop' });
    await channel.edit(1, { body: text('x') });
    await channel.update({ name: 'x' }, { device: 'laptop' });
    const certificates = {
      phone: ann.device().certificate,
      laptop: ann.device('laptop').certificate,
      ben: ben.device().certificate,
    };
    const of = async (range: ReadRange) => (await channel.read(range)).certificates;
    const { phone, laptop } = certificates;
    expect(await of({ before: 1 })).toEqual([phone]);
    expect(await of({ after: 0, limit: 1 })).toEqual([certificates.ben]);
    expect(await of({ after: 3 })).toEqual([laptop]);
    expect((await of({ after: -1, limit: 6 })).map(canonicalJson).sort()).toEqual(
      [phone, laptop, certificates.ben].map(canonicalJson).sort(),
    );
    expect(await of({ after: 4 })).toEqual([]);
    const whole = await channel.read({ limit: 6 });
    const { channelId } = channel;
    const verified = verifyChannelPage(network, whole, { channelId, relayId: relay.relayId });
    expect(verified).toMatchObject({ missing: [], refused: [] });
    expect(verified.events).toHaveLength(5);
  });

  test('06 §5.2: the first certificate of a device stays after the device is removed', async () => {
    await channel.post(undefined, { by: ben });
    const first = ben.device().certificate;
    const now = relay.clock.now();
    const renewed = await ben.addDevice('phone', { expiresAt: now + 9_999 });
    await ben.publishState();
    await channel.post(undefined, { by: ben });
    expect(renewed.certificate).not.toEqual(first);
    expect((await channel.read({ after: 0 })).certificates).toEqual([first]);
    await ben.publishState(await ben.state({ devices: [] }));
    relay.clock.advance(500);
    expect((await channel.read({ after: 0 })).certificates).toEqual([first]);
  });

  test('a closed channel is read as before', async () => {
    await posts(1);
    await channel.close();
    await relay.restart();
    expect(await page()).toEqual([[0, 1, 2], false]);
  });
});

describe('06 §8.11: sizes of pages', () => {
  /** Returns the bytes of a page as it is sent. */
  const bytesOf = (answer: ChannelPage) => Buffer.byteLength(JSON.stringify(answer));

  test('no page is larger than pageBytes, and each has at least one event', async () => {
    const pageBytes = 140_000;
    await relay.restart({ pageBytes });
    for (const length of [60_000, 100, 60_000, 60_000, 50_000]) {
      await channel.post({ body: text('x'.repeat(length)) });
    }
    const forwards = await walk('after', 6);
    expect(sequencesOf(forwards)).toEqual([
      [0, 1, 2, 3],
      [4, 5],
    ]);
    const backwards = await walk('before', 6);
    expect(sequencesOf(backwards)).toEqual([
      [4, 5],
      [0, 1, 2, 3],
    ]);
    for (const each of [...forwards, ...backwards]) expect(bytesOf(each)).toBeLessThan(pageBytes);
    await relay.restart({ pageBytes: 10 });
    expect(sequencesOf(await walk('before', 6))).toEqual([[5], [4], [3], [2], [1], [0]]);
    expect(await page({ after: 4 })).toEqual([[5], false]);
  });

  test('the certificates of a page count in its size, each once', async () => {
    for (const device of ['phone', 'laptop', 'phone']) await channel.post(undefined, { device });
    const whole = await channel.read({ limit: 6 });
    const payloads = whole.events.map(({ payload }) => Buffer.byteLength(JSON.stringify(payload)));
    const frames = 192 * payloads.length;
    const certificates = whole.certificates.map((each) => Buffer.byteLength(canonicalJson(each)));
    const all = [...payloads, frames, ...certificates].reduce((sum, bytes) => sum + bytes, 0);
    expect(all).toBeGreaterThan(bytesOf(whole));
    await relay.restart({ pageBytes: all });
    expect(await page({ after: -1 })).toEqual([[0, 1, 2, 3], false]);
    await relay.restart({ pageBytes: all - 1 });
    expect(await page({ after: -1 })).toEqual([[0, 1, 2], true]);
    expect(await page()).toEqual([[1, 2, 3], true]);
  });
});

describe('06 §8.11: sessions that may read', () => {
  test('malformed parameters are bad_request', async () => {
    const { channelId: channel_id } = channel;
    const wrong = [
      {},
      { channel_id: 'chan_' },
      { channel_id, before: 1, after: 0 },
      { channel_id, before: 0, after: -1 },
      { channel_id, before: -1 },
      { channel_id, after: -2 },
      { channel_id, limit: 0 },
      { channel_id, limit: 0.5 },
      { channel_id, after: null },
    ];
    for (const params of wrong) {
      expect([params, await refused(params)]).toEqual([params, 'bad_request']);
    }
    expect(await refused({ channel_id: `chan_${'A'.repeat(22)}`, before: 1, after: 0 })).toBe(
      'bad_request',
    );
  });

  test('any device session may read, and no other', async () => {
    const { channelId: channel_id } = channel;
    expect(await refused({ channel_id: `chan_${'A'.repeat(22)}`, after: 9 })).toBe('not_found');
    expect(await refused({ channel_id }, eve.accountSession())).toBe('forbidden');
    const anonymous = () => relay.call('channel.read', { channel_id });
    expect(await refusal(relay, anonymous)).toBe('unauthorized');
  });

  test('a read writes nothing', async () => {
    await posts(2);
    const before = await relay.dump();
    await page();
    await channel.resolve();
    expect(await relay.dump()).toEqual(before);
  });
});
