/** Edits: callers, contents and order of checks (06 §6.2, §8.8). */
import type { JsonObject } from '@posthouse/protocol/json';
import { assertConforms, assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { attachment, textBody } from '../../channels/channel-objects.ts';
import {
  assertPostState,
  assertUnchanged,
  lastEvent,
  readTimeline,
} from '../../channels/channel-reader.ts';
import { invalidParts, validContents } from '../../channels/post-contents.ts';
import { TestChannel } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import { tampered } from '../../fixtures/tampered.ts';
import { withDevice } from '../../fixtures/test-accounts.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const edit = checksOf('channel.post.edit');
const method = 'channel.post.edit';

edit.check(
  'appends',
  { source: '06 §8.8, §5.1', title: 'appends the edit unchanged, with the current revision' },
  async (context) => {
    const { channel, owner, moderators } = await channelFixture(context, {
      ...{ moderators: 2, devices: 2 },
    });
    const [mia, ned] = moderators as [TestAccount, TestAccount];
    const hers = await channel.post({}, mia);
    const ours = await channel.post();
    const originals = (await readTimeline(channel)).raw;
    // Owner and moderators may edit each other's posts (06 §8.8).
    const edits = [owner, withDevice(owner, 1), mia, ned, withDevice(ned, 1)].flatMap((by) => {
      return [hers, ours].map((target) => ({ by, target }));
    });
    for (const [index, { by, target }] of edits.entries()) {
      if (index === 4) await channel.update({ name: 'Renamed' });
      const params = channel.editParams(
        target,
        { body: textBody(`text ${index}`), note: index },
        by,
      );
      await context.expectOk(by.caller, method, params);
      const event = await lastEvent(channel);
      assertEqual(event.payload, params, 'the edit as it was sent');
      assertEqual(event.descriptor_rev, channel.revision, 'the current revision');
      assertEqual(event.signer_device_id, by.device.id, 'the signing device');
      await assertPostState(channel, target, { body: textBody(`text ${index}`), note: index });
    }
    const { raw } = await readTimeline(channel);
    assertEqual(raw.slice(0, originals.length), originals, 'the original posts are unchanged');
    assertEqual(raw.length, originals.length + edits.length + 1, 'the number of events');
  },
);

edit.check(
  'contents',
  { source: '06 §6.2, §8.6', title: 'accepts every well-formed body and attachment' },
  async (context) => {
    const { channel } = await channelFixture(context);
    for (const [what, overrides] of Object.entries(validContents())) {
      const target = await channel.post({ body: textBody('before') });
      const params = channel.editParams(target, overrides);
      await context.expectOk(channel.owner.caller, method, params);
      assertEqual((await lastEvent(channel)).payload, params, `${what}: as it was sent`);
    }
  },
);

edit.check(
  'wrong-contents',
  { source: '06 §6.2, §8.6', title: 'refuses malformed bodies and attachments' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const body = textBody('text');
    const target = await channel.post({ body });
    const calls = Object.entries(invalidParts()).map(
      ([what, overrides]) => [what, channel.editParams(target, overrides)] as const,
    );
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['bad_request'] }, calls),
    );
    await channel.edit(target, { body: textBody('another') });
  },
);

edit.check(
  'names',
  {
    source: '06 §6.2',
    title: 'refuses members that an edit cannot change, and an edit without changes',
  },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const first = channel.postParams();
    const target = await channel.sendPost(first);
    const body = textBody('text');
    const more: Readonly<Record<string, JsonObject>> = {
      'nothing to change': {},
      'the message ID': { body, message_id: first.message_id as string },
      'the message ID alone': { message_id: 'x' },
      'the message ID taken away': { body, message_id: null },
    };
    const calls = Object.entries(more).map(
      ([what, overrides]) => [what, channel.editParams(target, overrides)] as const,
    );
    const patch = channel.editParams(target, { body });
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['bad_request'] }, [
        ...calls,
        ['a context', { ...patch, $context: context.network.context }],
        ['a context taken away', { ...patch, $context: null }],
        ['the signature taken away', { ...patch, device_signature: null }],
      ]),
    );
    await context.expectOk(owner.caller, method, patch);
  },
);

edit.check(
  'signature-coverage',
  { source: '06 §14', title: 'answers invalid_signature if absent, null and empty are exchanged' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const [body, x] = [textBody('text'), attachment()];
    const target = await channel.post({ body, attachments: [x], tags: [1] });
    const second = await channel.post({ body, attachments: [x] });
    const signed = channel.editParams(target, { body: textBody('new'), attachments: null });
    const { attachments: _, ...without } = signed;
    const bare = channel.editParams(target, { body: textBody('new') });
    const wrong: Readonly<Record<string, JsonObject>> = {
      'null left out': without,
      'null for what was absent': { ...bare, attachments: null },
      'an empty list for null': { ...signed, attachments: [] },
      'an empty list for what was absent': { ...bare, attachments: [] },
      'an unknown member taken away': { ...bare, tags: null },
      'another target': { ...bare, target_sequence: second },
    };
    const refused = { by: owner, method, codes: ['invalid_signature'] } as const;
    await assertUnchanged(channel, () => assertAllRefused(refused, Object.entries(wrong)));
    for (const params of [signed, bare]) await context.expectOk(owner.caller, method, params);
  },
);

edit.check(
  'order',
  {
    source: '06 §8, §8.6, 02 §18',
    title: 'checks form, size, signature, right and state in this order',
  },
  async (context) => {
    const { channel, owner, readers } = await channelFixture(context, { readers: 1 });
    const [rea] = readers as [TestAccount];
    const target = await channel.post();
    const spoiled = (overrides: JsonObject, by = owner) => {
      const params = channel.editParams(target, overrides, by);
      return { ...params, device_signature: tampered(String(params.device_signature)) };
    };
    const filling = 'x'.repeat(65_536);
    const nowhere = { channel_id: TestChannel.draft(context, owner).channelId, x: 1 };
    const cases = [
      [owner, 'bad_request', 'form before size', spoiled({ filling, message_id: 'x' })],
      [owner, 'request_too_large', 'size before signature', spoiled({ filling })],
      [rea, 'invalid_signature', 'signature before existence', spoiled(nowhere, rea)],
      [rea, 'invalid_signature', 'signature before permission', spoiled({ x: 1 }, rea)],
      [rea, 'not_found', 'existence before permission', channel.editParams(target, nowhere, rea)],
      [rea, 'forbidden', 'permission before the post', channel.editParams(99, { x: 1 }, rea)],
    ] as const;
    await assertUnchanged(channel, async () => {
      for (const [by, code, what, params] of cases) {
        await assertAllRefused({ by, method, codes: [code] }, [[what, params]]);
      }
    });
  },
);

edit.check(
  'at-once',
  { source: '06 §7.2, §8.8', title: 'concurrent edits apply in the order of their events' },
  async (context) => {
    const { channel, owner, moderators } = await channelFixture(context, { moderators: 2 });
    const target = await channel.post();
    const writers = [owner, ...moderators];
    await Promise.all(
      writers.flatMap((by, index) => {
        const body = textBody(`text ${index}`);
        return [channel.edit(target, { body }, by), channel.edit(target, { [`m${index}`]: 1 }, by)];
      }),
    );
    const { raw, state } = await readTimeline(channel);
    assertEqual(raw.length, 8, 'the number of events');
    const found = state.posts.get(target)?.state as JsonObject;
    assertConforms(
      found.m0 === 1 && found.m1 === 1 && found.m2 === 1,
      'all changes are in the final state',
    );
    await assertUnchanged(channel, () => channel.edit(target, found));
    const same = channel.editParams(target, { body: textBody('the same') });
    await Promise.all(
      Array.from({ length: 6 }, () => context.expectOk(owner.caller, method, same)),
    );
    assertEqual(
      (await readTimeline(channel)).raw.length,
      9,
      'the number of events after identical edits',
    );
  },
);

export const channelEditChecks = edit.list;
