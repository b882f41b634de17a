/** Publishing (06 §6.1, §8.6, §8.7). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { attachment, textBody, withoutUndefined } from '../../channels/channel-objects.ts';
import { assertUnchanged, lastEvent, readTimeline } from '../../channels/channel-reader.ts';
import { invalidParts, validContents } from '../../channels/post-contents.ts';
import { TestChannel } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { relayTime } from '../../fixtures/relay-info.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const post = checksOf('channel.post');
const method = 'channel.post';

post.check(
  'appends',
  { source: '06 §8.7, §5.1', title: 'appends the post unchanged, with the current revision' },
  async (context) => {
    const { channel, owner, moderators, readers } = await channelFixture(context, {
      ...{ moderators: 1, readers: 1, devices: 2 },
    });
    const [mia, rea] = [...moderators, ...readers] as [TestAccount, TestAccount];
    const before = await relayTime(context);
    const writers = [owner, withDevice(owner, 1), mia, withDevice(mia, 1)];
    let head = 0;
    for (const [index, by] of writers.entries()) {
      if (index === 2) {
        await channel.update({ name: 'Renamed' });
        head = (await lastEvent(channel)).sequence;
      }
      const publication = channel.postParams({ note: [index] }, by);
      const sequence = await channel.sendPost(publication, by);
      assertConforms(sequence > head, 'a sequence after the last event');
      head = sequence;
      const event = await lastEvent(channel, rea);
      const late = await relayTime(context);
      assertEqual(event.sequence, sequence, 'the sequence in the answer');
      assertEqual(event.payload, publication, 'the post as it was sent');
      assertEqual(event.descriptor_rev, channel.revision, 'the current revision');
      assertEqual(event.signer_device_id, by.device.id, 'the signing device');
      assertConforms(event.accepted_at >= before && event.accepted_at <= late, "the host's time");
    }
    const { events } = await readTimeline(channel, rea);
    const accounts = events.filter(({ kind }) => kind === 'post').map(({ account }) => account);
    assertEqual(
      accounts.join(),
      writers.map(({ account }) => account.id).join(),
      'the certificates of the signing devices',
    );
  },
);

post.check(
  'contents',
  { source: '06 §6.1, §8.6, 04 §8', title: 'accepts every well-formed body and attachment' },
  async (context) => {
    const { channel } = await channelFixture(context);
    for (const [what, overrides] of Object.entries(validContents())) {
      const publication = channel.postParams(overrides);
      await channel.sendPost(publication);
      assertEqual((await lastEvent(channel)).payload, publication, `${what}: as it was sent`);
    }
  },
);

post.check(
  'wrong-contents',
  { source: '06 §6.1, §8.6, 04 §8', title: 'refuses malformed bodies and attachments' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const nothing: Readonly<Record<string, JsonObject>> = {
      'nothing in it': { body: undefined },
      'an empty list alone': { body: undefined, attachments: [] },
      'nothing but unknown members': { body: undefined, note: 'text' },
      'null for a body': { body: null, attachments: [attachment()] },
      'null for attachments': { attachments: null },
    };
    const calls = Object.entries({ ...invalidParts(), ...nothing }).map(
      ([what, overrides]) => [what, channel.postParams(overrides)] as const,
    );
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls),
    );
    await channel.post();
  },
);

post.check(
  'signature-coverage',
  { source: '06 §14', title: 'answers invalid_signature if any signed member is changed' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const second = await TestChannel.create(context, owner);
    const [one, two] = [attachment(), attachment()];
    const body = textBody('text');
    const withList = channel.postParams({ body, attachments: [one, two] });
    const without = channel.postParams({ body });
    const empty = channel.postParams({ body, attachments: [] });
    const wrong: Readonly<Record<string, JsonObject>> = {
      'another channel': { ...withList, channel_id: second.channelId },
      'another message ID': { ...withList, message_id: without.message_id as string },
      'another text': { ...withList, body: textBody('Text') },
      'another body type': { ...withList, body: textBody('text', 'text/markdown') },
      'a member in the body': { ...withList, body: { ...body, lang: 'en' } },
      'no body': withoutUndefined({ ...withList, body: undefined }),
      'another order': { ...withList, attachments: [two, one] },
      'one attachment less': { ...withList, attachments: [one] },
      'another address': { ...withList, attachments: [{ ...one, uri: String(two.uri) }, two] },
      'another size': { ...withList, attachments: [{ ...one, size: 18 }, two] },
      'an empty list for none': { ...without, attachments: [] },
      'none for an empty list': withoutUndefined({ ...empty, attachments: undefined }),
    };
    const refused = { by: owner, method, codes: ['invalid_signature'] } as const;
    await assertUnchanged(second, () =>
      assertUnchanged(channel, () => assertAllRefused(refused, Object.entries(wrong))),
    );
    for (const params of [withList, without, empty]) await channel.sendPost(params);
  },
);

post.check(
  'order',
  {
    source: '06 §8, §8.6, 02 §18',
    title: 'checks form, size, signature, right and state in this order',
  },
  async (context) => {
    const { channel, owner, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    const spoiled = (overrides: JsonObject, by = owner) => {
      const params = channel.postParams(overrides, by);
      return { ...params, device_signature: tampered(String(params.device_signature)) };
    };
    const large = { filling: 'x'.repeat(65_536) };
    const nowhere = { channel_id: TestChannel.draft(context, owner).channelId };
    const cases = [
      [owner, 'bad_request', 'form before size', spoiled({ ...large, body: textBody(' ') })],
      [owner, 'request_too_large', 'size before signature', spoiled(large)],
      [rea, 'invalid_signature', 'signature before existence', spoiled(nowhere, rea)],
      [rea, 'invalid_signature', 'signature before permission', spoiled({}, rea)],
      [rea, 'not_found', 'existence before permission', channel.postParams(nowhere, rea)],
    ] as const;
    await assertUnchanged(channel, async () => {
      for (const [by, code, what, params] of cases) {
        await assertAllRefused({ by, method, codes: [code] }, [[what, params]]);
      }
    });
    await channel.close();
    const refused = { by: rea, method, codes: ['forbidden'] } as const;
    await assertAllRefused(refused, [['permission before closure', channel.postParams({}, rea)]]);
  },
);

export const channelPostChecks = post.list;
