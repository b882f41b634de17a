/** What edits make of a post (06 §6.2, §10.2). */
import type { JsonObject, JsonValue } from '@posthouse/protocol';
import { demand } from '../../assert.ts';
import { channelSceneOf } from '../../channels/channel-fixture.ts';
import { attachment, textBody } from '../../channels/channel-objects.ts';
import { demandState, readTimeline, withoutTrace } from '../../channels/channel-reader.ts';
import { checksOf } from '../../check.ts';
import { refusesAll } from '../../fixtures/refusals.ts';
import type { Resident } from '../../fixtures/test-context.ts';

const edit = checksOf('channel.post.edit');
const method = 'channel.post.edit';

edit.check(
  'example',
  { source: '06 §10.2', title: 'goes through the example of the chapter' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const [A, B, x, y] = [textBody('A'), textBody('B'), attachment(), attachment()];
    const target = await channel.post({ body: A, attachments: [x] });
    await channel.edit(target, { attachments: null });
    await demandState(channel, target, { body: A });
    await withoutTrace(channel, () => {
      const params = channel.patch(target, { body: null });
      return stage.fail(owner.caller, { method, params }, 'bad_request');
    });
    await channel.edit(target, { body: null, attachments: [y] });
    await demandState(channel, target, { attachments: [y] });
    await withoutTrace(channel, () => channel.edit(target, { attachments: [y] }));
    await channel.edit(target, { body: B, attachments: [] });
    await demandState(channel, target, { body: B, attachments: [] });
    demand((await readTimeline(channel)).raw.length === 5, 'three of the edits are events');
  },
);

edit.check(
  'unknown-members',
  { source: '06 §6.2', title: 'patches unknown root members one by one, each of them whole' },
  async (stage) => {
    const { channel } = await channelSceneOf(stage);
    const body = textBody('text');
    const tags: JsonValue = { a: 1, b: { c: [2] } };
    const target = await channel.post({ body, tags, series: 'one', constructor: 'x' });
    const states: readonly (readonly [JsonObject, JsonObject])[] = [
      [{ series: 'two' }, { body, tags, series: 'two', constructor: 'x' }],
      [
        { tags: { b: 3 }, mood: [] },
        { body, tags: { b: 3 }, series: 'two', constructor: 'x', mood: [] },
      ],
      [
        { series: null, constructor: null },
        { body, tags: { b: 3 }, mood: [] },
      ],
      [
        { tags: [], mood: false },
        { body, tags: [], mood: false },
      ],
      [
        JSON.parse('{"__proto__":{"polluted":1}}'),
        JSON.parse('{"__proto__":{"polluted":1},"tags":[],"mood":false}'),
      ],
      [JSON.parse('{"__proto__":null,"mood":null,"tags":null}'), { body }],
    ];
    for (const [patch, state] of states) {
      await channel.edit(target, patch);
      await demandState(channel, target, { ...state, body });
      // The relay is of the same opinion: the same once more changes nothing.
      await withoutTrace(channel, () => channel.edit(target, patch));
    }
  },
);

edit.check(
  'no-change',
  { source: '06 §6.2, §8.8', title: 'succeeds without an event where nothing changes' },
  async (stage) => {
    const { channel, moderators } = await channelSceneOf(stage, { moderators: 1 });
    const [mia] = moderators as [Resident];
    const [x, body] = [attachment(), { ...textBody('text'), lang: 'en' }];
    const target = await channel.post({ body, attachments: [x], tags: { a: 1, b: 2 } });
    const other = await channel.post({ body });
    const reordered = Object.fromEntries(Object.entries(body).reverse());
    await withoutTrace(channel, async () => {
      await channel.edit(target, { body });
      await channel.edit(target, { body: reordered, tags: { b: 2, a: 1 } }, mia);
      await channel.edit(target, { attachments: [x] });
      await channel.edit(target, { never: null });
      await channel.edit(other, { attachments: null });
    });
    await channel.edit(target, { body: textBody('changed') });
    await channel.edit(target, { body });
    await withoutTrace(channel, () => channel.edit(target, { body, attachments: [x] }));
    demand((await readTimeline(channel)).raw.length === 5, 'back again is a change');
  },
);

edit.check(
  'empty-list',
  { source: '06 §6.2', title: 'an empty list is other than none, in both directions' },
  async (stage) => {
    const { channel } = await channelSceneOf(stage);
    const body = textBody('text');
    const target = await channel.post({ body });
    await channel.edit(target, { attachments: [] });
    await demandState(channel, target, { body, attachments: [] });
    await withoutTrace(channel, () => channel.edit(target, { attachments: [] }));
    await channel.edit(target, { attachments: null });
    await demandState(channel, target, { body });
    await withoutTrace(channel, () => channel.edit(target, { attachments: null }));
    demand((await readTimeline(channel)).raw.length === 4, 'two changes');
  },
);

edit.check(
  'empty-result',
  { source: '06 §6.2', title: 'refuses to leave neither a body nor an attachment' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const [body, x] = [textBody('text'), attachment()];
    const text = await channel.post({ body, tags: [1] });
    const image = await channel.post({ body: undefined, attachments: [x] });
    const both = await channel.post({ body, attachments: [x] });
    await withoutTrace(channel, () =>
      refusesAll({ by: owner, method, codes: ['bad_request'] }, [
        ['the body removed', channel.patch(text, { body: null })],
        ['the body removed for a member', channel.patch(text, { body: null, mood: 'x' })],
        [
          'the body replaced by an empty list',
          channel.patch(text, { body: null, attachments: [] }),
        ],
        ['the attachments removed', channel.patch(image, { attachments: null })],
        ['the attachments emptied', channel.patch(image, { attachments: [] })],
        ['both removed', channel.patch(both, { body: null, attachments: null })],
        ['one removed, one emptied', channel.patch(both, { body: null, attachments: [] })],
      ]),
    );
    await channel.edit(both, { body: null });
    await demandState(channel, both, { attachments: [x] });
    const params = channel.patch(both, { attachments: null });
    await stage.fail(owner.caller, { method, params }, 'bad_request');
  },
);

edit.check(
  'no-return',
  { source: '06 §6.2, §14', title: 'what an edit took away does not come back with another' },
  async (stage) => {
    const { channel, owner } = await channelSceneOf(stage);
    const [body, x] = [textBody('text'), attachment()];
    const target = await channel.post({ body, attachments: [x] });
    await channel.edit(target, { attachments: null });
    await channel.edit(target, { body: textBody('later') });
    await demandState(channel, target, { body: textBody('later') });
    const params = channel.patch(target, { body: null });
    await withoutTrace(channel, () => stage.fail(owner.caller, { method, params }, 'bad_request'));
  },
);

export const channelPatchChecks = edit.list;
