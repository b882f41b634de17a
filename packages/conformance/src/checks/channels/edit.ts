/** Edits: who, of what, in which order (06 §6.2, §8.8). */
import type { JsonObject } from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { channelSceneOf } from '../../channels/channel-fixture.ts';
import { attachment, textBody } from '../../channels/channel-objects.ts';
import {
  demandState,
  equal,
  lastEvent,
  readTimeline,
  withoutTrace,
} from '../../channels/channel-reader.ts';
import { rightContents, wrongParts } from '../../channels/post-contents.ts';
import { ChannelActors } from '../../channels/test-channel.ts';
import { checksOf } from '../../check.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import { flipped } from '../../fixtures/tampered.ts';
import { at } from '../../fixtures/test-accounts.ts';
import type { Resident } from '../../fixtures/test-context.ts';

const edit = checksOf('channel.post.edit');
const method = 'channel.post.edit';

edit.check(
  'appends',
  { source: '06 §8.8, §5.1', title: 'appends the edit as it is, under the current descriptor' },
  async (stage) => {
    const { channel, owner, moderators } = await channelSceneOf(stage, {
      ...{ moderators: 2, devices: 2 },
    });
    const [mia, ned] = moderators as [Resident, Resident];
    const hers = await channel.post({}, mia);
    const ours = await channel.post();
    const originals = (await readTimeline(channel)).raw;
    // Whose post it is does not matter (06 §8.8).
    const edits = [owner, at(owner, 1), mia, ned, at(ned, 1)].flatMap((by) => {
      return [hers, ours].map((target) => ({ by, target }));
    });
    for (const [index, { by, target }] of edits.entries()) {
      if (index === 4) await channel.update({ name: 'Renamed' });
      const params = channel.patch(target, { body: textBody(`text ${index}`), note: index }, by);
      await stage.succeed(by.caller, method, params);
      const event = await lastEvent(channel);
      demand(equal(event.payload, params), 'field for field');
      demand(event.descriptor_rev === channel.revision, 'of the revision in force');
      demand(event.signer_device_id === by.device.id, 'signed by the device that called');
      await demandState(channel, target, { body: textBody(`text ${index}`), note: index });
    }
    const { raw } = await readTimeline(channel);
    demand(equal(raw.slice(0, originals.length), originals), 'what was there is not rewritten');
    demand(raw.length === originals.length + edits.length + 1, 'one event each');
  },
);

edit.check(
  'contents',
  { source: '06 §6.2, §8.6', title: 'takes every body and attachment that is well-formed' },
  async (stage) => {
    const { channel } = await channelSceneOf(stage);
    for (const [what, facts] of Object.entries(rightContents())) {
      const target = await channel.post({ body: textBody('before') });
      const params = channel.patch(target, facts);
      await stage.succeed(channel.owner.caller, method, params);
      demand(equal((await lastEvent(channel)).payload, params), `${what}: as it was sent`);
    }
  },
);

edit.check(
  'wrong-contents',
  { source: '06 §6.2, §8.6', title: 'refuses bodies and attachments that are not' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const body = textBody('text');
    const target = await channel.post({ body });
    const calls = Object.entries(wrongParts()).map(
      ([what, facts]) => [what, channel.patch(target, facts)] as const,
    );
    await withoutTrace(channel, () =>
      refusesAll({ by: owner, method, codes: ['bad_request'] }, calls),
    );
    await channel.edit(target, { body: textBody('another') });
  },
);

edit.check(
  'names',
  { source: '06 §6.2', title: 'refuses what an edit cannot name, and an edit of nothing' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const first = channel.publication();
    const target = await channel.publish(first);
    const body = textBody('text');
    const more: Readonly<Record<string, JsonObject>> = {
      'nothing to change': {},
      'the message ID': { body, message_id: first.message_id as string },
      'the message ID alone': { message_id: 'x' },
      'the message ID taken away': { body, message_id: null },
    };
    const calls = Object.entries(more).map(
      ([what, facts]) => [what, channel.patch(target, facts)] as const,
    );
    const patch = channel.patch(target, { body });
    await withoutTrace(channel, () =>
      refusesAll({ by: owner, method, codes: ['bad_request'] }, [
        ...calls,
        ['a context', { ...patch, $context: stage.network.context }],
        ['a context taken away', { ...patch, $context: null }],
        ['the signature taken away', { ...patch, device_signature: null }],
      ]),
    );
    await stage.succeed(owner.caller, method, patch);
  },
);

edit.check(
  'signature-coverage',
  { source: '06 §14', title: 'is invalid_signature when absent, null and empty are exchanged' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const [body, x] = [textBody('text'), attachment()];
    const target = await channel.post({ body, attachments: [x], tags: [1] });
    const second = await channel.post({ body, attachments: [x] });
    const signed = channel.patch(target, { body: textBody('new'), attachments: null });
    const { attachments: _, ...without } = signed;
    const bare = channel.patch(target, { body: textBody('new') });
    const wrong: Readonly<Record<string, JsonObject>> = {
      'null left out': without,
      'null for what was absent': { ...bare, attachments: null },
      'an empty list for null': { ...signed, attachments: [] },
      'an empty list for what was absent': { ...bare, attachments: [] },
      'an unknown member taken away': { ...bare, tags: null },
      'another target': { ...bare, target_sequence: second },
    };
    const refused = { by: owner, method, codes: ['invalid_signature'] } as const;
    await withoutTrace(channel, () => refusesAll(refused, Object.entries(wrong)));
    for (const params of [signed, bare]) await stage.succeed(owner.caller, method, params);
  },
);

edit.check(
  'order',
  { source: '06 §8, §8.6, 02 §18', title: 'looks at form, size, signature, right, state' },
  async (stage) => {
    const { channel, owner, readers } = await channelSceneOf(stage, { readers: 1 });
    const [rea] = readers as [Resident];
    const target = await channel.post();
    const spoiled = (facts: JsonObject, by = owner) => {
      const params = channel.patch(target, facts, by);
      return { ...params, device_signature: flipped(String(params.device_signature)) };
    };
    const filling = 'x'.repeat(65_536);
    const nowhere = { channel_id: ChannelActors.draft(stage, owner).channelId, x: 1 };
    const cases = [
      [owner, 'bad_request', 'form before size', spoiled({ filling, message_id: 'x' })],
      [owner, 'request_too_large', 'size before signature', spoiled({ filling })],
      [rea, 'invalid_signature', 'signature before existence', spoiled(nowhere, rea)],
      [rea, 'invalid_signature', 'signature before permission', spoiled({ x: 1 }, rea)],
      [rea, 'not_found', 'existence before permission', channel.patch(target, nowhere, rea)],
      [rea, 'forbidden', 'permission before the post', channel.patch(99, { x: 1 }, rea)],
    ] as const;
    await withoutTrace(channel, async () => {
      for (const [by, code, what, params] of cases) {
        await refusesAll({ by, method, codes: [code] }, [[what, params]]);
      }
    });
  },
);

edit.check(
  'at-once',
  { source: '06 §7.2, §8.8', title: 'edits at once apply in the order of their events' },
  async (stage) => {
    const { channel, owner, moderators } = await channelSceneOf(stage, { moderators: 2 });
    const target = await channel.post();
    const people = [owner, ...moderators];
    await Promise.all(
      people.flatMap((by, index) => {
        const body = textBody(`text ${index}`);
        return [channel.edit(target, { body }, by), channel.edit(target, { [`m${index}`]: 1 }, by)];
      }),
    );
    const { raw, state } = await readTimeline(channel);
    demand(raw.length === 8, 'one event each');
    const found = state.posts.get(target)?.state as JsonObject;
    demand(found.m0 === 1 && found.m1 === 1 && found.m2 === 1, 'none undoes another');
    await withoutTrace(channel, () => channel.edit(target, found));
    const same = channel.patch(target, { body: textBody('the same') });
    await Promise.all(Array.from({ length: 6 }, () => stage.succeed(owner.caller, method, same)));
    demand((await readTimeline(channel)).raw.length === 9, 'the same edit is one event');
  },
);

export const channelEditChecks = edit.list;
