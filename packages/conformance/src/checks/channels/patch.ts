/** The state of a post after edits (06 §6.2, §10.2). */
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import { assertEqual } from '../../assert.ts';
import { channelFixture } from '../../channels/channel-fixture.ts';
import { attachment, textBody } from '../../channels/channel-objects.ts';
import { assertPostState, assertUnchanged, readTimeline } from '../../channels/channel-reader.ts';
import { checksOf } from '../../check.ts';
import { assertAllRefused } from '../../fixtures/refusals.ts';
import type { TestAccount } from '../../fixtures/test-context.ts';

const edit = checksOf('channel.post.edit');
const method = 'channel.post.edit';

edit.check(
  'example',
  { source: '06 §10.2', title: "gives the states of the chapter's example" },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const [A, B, x, y] = [textBody('A'), textBody('B'), attachment(), attachment()];
    const target = await channel.post({ body: A, attachments: [x] });
    await channel.edit(target, { attachments: null });
    await assertPostState(channel, target, { body: A });
    await assertUnchanged(channel, () => {
      const params = channel.editParams(target, { body: null });
      return context.expectError(owner.caller, { method, params }, 'bad_request');
    });
    await channel.edit(target, { body: null, attachments: [y] });
    await assertPostState(channel, target, { attachments: [y] });
    await assertUnchanged(channel, () => channel.edit(target, { attachments: [y] }));
    await channel.edit(target, { body: B, attachments: [] });
    await assertPostState(channel, target, { body: B, attachments: [] });
    assertEqual((await readTimeline(channel)).raw.length, 5, 'the number of events');
  },
);

edit.check(
  'unknown-members',
  { source: '06 §6.2', title: 'replaces or removes each unknown root member as a whole' },
  async (context) => {
    const { channel } = await channelFixture(context);
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
      await assertPostState(channel, target, { ...state, body });
      // The relay has the same state: the same edit again changes nothing.
      await assertUnchanged(channel, () => channel.edit(target, patch));
    }
  },
);

edit.check(
  'no-change',
  { source: '06 §6.2, §8.8', title: 'succeeds without an event if nothing changes' },
  async (context) => {
    const { channel, moderators } = await channelFixture(context, { moderators: 1 });
    const [mia] = moderators as [TestAccount];
    const [x, body] = [attachment(), { ...textBody('text'), lang: 'en' }];
    const target = await channel.post({ body, attachments: [x], tags: { a: 1, b: 2 } });
    const other = await channel.post({ body });
    const reordered = Object.fromEntries(Object.entries(body).reverse());
    await assertUnchanged(channel, async () => {
      await channel.edit(target, { body });
      await channel.edit(target, { body: reordered, tags: { b: 2, a: 1 } }, mia);
      await channel.edit(target, { attachments: [x] });
      await channel.edit(target, { never: null });
      await channel.edit(other, { attachments: null });
    });
    await channel.edit(target, { body: textBody('changed') });
    await channel.edit(target, { body });
    await assertUnchanged(channel, () => channel.edit(target, { body, attachments: [x] }));
    assertEqual(
      (await readTimeline(channel)).raw.length,
      5,
      'the number of events after a change back',
    );
  },
);

edit.check(
  'empty-list',
  { source: '06 §6.2', title: 'an empty list and an absent one differ, in both directions' },
  async (context) => {
    const { channel } = await channelFixture(context);
    const body = textBody('text');
    const target = await channel.post({ body });
    await channel.edit(target, { attachments: [] });
    await assertPostState(channel, target, { body, attachments: [] });
    await assertUnchanged(channel, () => channel.edit(target, { attachments: [] }));
    await channel.edit(target, { attachments: null });
    await assertPostState(channel, target, { body });
    await assertUnchanged(channel, () => channel.edit(target, { attachments: null }));
    assertEqual((await readTimeline(channel)).raw.length, 4, 'the number of events');
  },
);

edit.check(
  'empty-result',
  { source: '06 §6.2', title: 'refuses an edit that leaves neither body nor attachments' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const [body, x] = [textBody('text'), attachment()];
    const text = await channel.post({ body, tags: [1] });
    const image = await channel.post({ body: undefined, attachments: [x] });
    const both = await channel.post({ body, attachments: [x] });
    await assertUnchanged(channel, () =>
      assertAllRefused({ by: owner, method, codes: ['bad_request'] }, [
        ['the body removed', channel.editParams(text, { body: null })],
        ['the body removed for a member', channel.editParams(text, { body: null, mood: 'x' })],
        [
          'the body replaced by an empty list',
          channel.editParams(text, { body: null, attachments: [] }),
        ],
        ['the attachments removed', channel.editParams(image, { attachments: null })],
        ['the attachments emptied', channel.editParams(image, { attachments: [] })],
        ['both removed', channel.editParams(both, { body: null, attachments: null })],
        ['one removed, one emptied', channel.editParams(both, { body: null, attachments: [] })],
      ]),
    );
    await channel.edit(both, { body: null });
    await assertPostState(channel, both, { attachments: [x] });
    const params = channel.editParams(both, { attachments: null });
    await context.expectError(owner.caller, { method, params }, 'bad_request');
  },
);

edit.check(
  'no-return',
  { source: '06 §6.2, §14', title: 'a member removed by an edit stays removed after other edits' },
  async (context) => {
    const { channel, owner } = await channelFixture(context);
    const [body, x] = [textBody('text'), attachment()];
    const target = await channel.post({ body, attachments: [x] });
    await channel.edit(target, { attachments: null });
    await channel.edit(target, { body: textBody('later') });
    await assertPostState(channel, target, { body: textBody('later') });
    const params = channel.editParams(target, { body: null });
    await assertUnchanged(channel, () =>
      context.expectError(owner.caller, { method, params }, 'bad_request'),
    );
  },
);

export const channelPatchChecks = edit.list;
