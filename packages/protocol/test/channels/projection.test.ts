import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type ChannelPostEdit,
  emptyProjection,
  newerDescriptor,
  type PostState,
  postState,
  projectChannel,
  reducePost,
  type VerifiedChannelEvent,
} from '../../src/index.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../../src/json/index.ts';
import {
  attachment,
  codeOf,
  deletion,
  descriptor,
  edit,
  owner,
  post,
  revision,
  text,
} from './fixture.ts';

const [x, y] = [attachment(1), attachment(2)];

describe('06 §6.2: one edit', () => {
  const apply = (state: PostState, members: JsonObject) => reducePost(state, edit(members));

  test('the example of §10.2', () => {
    const first = postState(post({ body: text('A'), attachments: [x] }));
    const second = apply(first, { attachments: null });
    expect(second).toEqual({ body: text('A') });
    expect(codeOf(() => apply(second, { body: null }))).toBe('bad_request');
    const third = apply(second, { body: null, attachments: [y] });
    expect(third).toEqual({ attachments: [y] });
    expect(apply(third, { attachments: [y] })).toBe(third);
    const last = apply(third, { body: text('B'), attachments: [] });
    expect(last).toEqual({ body: text('B'), attachments: [] });
  });

  test('the state holds body, attachments and unknown root members, nothing else', () => {
    const made = post({ body: text('A'), extra: 1, target_sequence: 5 });
    expect(postState(made)).toEqual({ body: text('A'), extra: 1, target_sequence: 5 });
  });

  test('members of an edit that only address it never reach the state', () => {
    const state = postState(post({ body: text('A'), target_sequence: 5 }));
    expect(apply(state, { extra: 1 })).toEqual({ body: text('A'), target_sequence: 5, extra: 1 });
  });

  test('unknown members: absent keeps, null removes, a value replaces whole', () => {
    const state = postState(post({ body: text('A'), a: { b: 1, c: 2 }, d: [1, 2], e: 0 }));
    expect(apply(state, { a: { b: 3 }, d: null, f: [] })).toEqual({
      body: text('A'),
      a: { b: 3 },
      e: 0,
      f: [],
    });
  });

  test('a body is replaced whole, its unknown members too', () => {
    const state = postState(post({ body: { ...text('A'), extra: 1 } }));
    expect(apply(state, { body: text('B') })).toEqual({ body: text('B') });
  });

  test('01 §2.1: __proto__ is an ordinary name', () => {
    const state = postState(post({ body: text('A') }));
    const named = reducePost(state, edit(JSON.parse('{"__proto__":{"body":1}}')));
    expect(canonicalJson(named)).toBe(
      '{"__proto__":{"body":1},"body":{"content_type":"text/plain","text":"A"}}',
    );
    expect(reducePost(named, edit(JSON.parse('{"__proto__":null}')))).toEqual(state);
  });

  test.each<[string, JsonObject]>([
    ['the same body', { body: text('A') }],
    ['the same members in another order', { body: { text: 'A', content_type: 'text/plain' } }],
    ['the same attachments', { attachments: [x] }],
    ['removal of what is not there', { gone: null }],
  ])('%s is no change: the very same state', (_, members) => {
    const state = postState(post({ body: text('A'), attachments: [x] }));
    expect(apply(state, members)).toBe(state);
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['absent to []', { body: text('A') }, { attachments: [] }],
    ['[] to absent', { body: text('A'), attachments: [] }, { attachments: null }],
    ['another order', { attachments: [x, y] }, { attachments: [y, x] }],
  ])('%s is a change', (_, members, patch) => {
    const state = postState(post(members));
    expect(apply(state, patch)).not.toBe(state);
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['the body of a text post', { body: text('A') }, { body: null }],
    ['both parts', { body: text('A'), attachments: [x] }, { body: null, attachments: null }],
    ['the last attachment', { attachments: [x] }, { attachments: [] }],
  ])('taking away %s leaves nothing: bad_request', (_, members, patch) => {
    expect(codeOf(() => apply(postState(post(members)), patch))).toBe('bad_request');
  });
});

test('06 §6.2: no change is what leaves the Canonical JSON of the whole state as it was', () => {
  // Few names and values, so that edits often meet what is there.
  const value = fc.constantFrom<JsonValue>(0, 'a', [], [0], [1, 0], {}, { a: 0, b: 1 }, { b: 1 });
  const name = fc.constantFrom('a', 'b', '__proto__', '1', '0', 'constructor', 'toString');
  const unknown = (values: fc.Arbitrary<JsonValue>, minLength: number) =>
    fc
      .uniqueArray(fc.tuple(name, values), { minLength, selector: ([one]) => one })
      .map((entries) => Object.fromEntries(entries) as JsonObject);
  fc.assert(
    fc.property(unknown(value, 0), unknown(fc.option(value), 1), (extra, patch) => {
      const state = postState(post({ body: text('A'), ...extra }));
      const wanted = new Map(Object.entries(state));
      for (const [one, changed] of Object.entries(patch)) {
        if (changed === null) wanted.delete(one);
        else wanted.set(one, changed);
      }
      const next = reducePost(state, edit(patch));
      const expected = canonicalJson(Object.fromEntries(wanted) as JsonObject);
      expect(canonicalJson(next)).toBe(expected);
      expect(next === state).toBe(expected === canonicalJson(state));
    }),
  );
});

const outer = (sequence: number) => ({
  sequence,
  acceptedAt: 100 + sequence,
  descriptorRevision: 0,
  account: owner.account,
});
const created: VerifiedChannelEvent = { ...outer(0), kind: 'descriptor', payload: descriptor };
const posted = (sequence: number, members?: JsonObject): VerifiedChannelEvent => ({
  ...outer(sequence),
  kind: 'post',
  payload: post(members),
});
const edited = (sequence: number, members: JsonObject): VerifiedChannelEvent => ({
  ...outer(sequence),
  kind: 'edit',
  payload: edit(members),
});
const deleted = (sequence: number, target: number): VerifiedChannelEvent => ({
  ...outer(sequence),
  kind: 'delete',
  payload: deletion({ target_sequence: target }),
});

describe('06 §10.1: a range of events', () => {
  test('posts have the state after their edits, the last effective edit is named', () => {
    const events = [
      created,
      posted(1),
      edited(3, { body: text('two') }),
      edited(4, { body: text('two') }),
      posted(8),
    ];
    const { posts, position, descriptor: current } = projectChannel(emptyProjection, events);
    expect([...posts.keys()]).toEqual([1, 8]);
    expect(posts.get(1)?.state).toEqual({ body: text('two') });
    expect(posts.get(1)?.edited).toEqual({ sequence: 3, acceptedAt: 103, account: owner.account });
    expect(posts.get(1)?.acceptedAt).toBe(101);
    expect(posts.get(8)?.edited).toBeUndefined();
    expect([position, current]).toEqual([8, descriptor]);
  });

  test('in parts or at once, the outcome is the same, and earlier projections stay as they were', () => {
    const events = [created, posted(1), edited(3, { body: text('two') }), deleted(5, 1), posted(6)];
    const first = projectChannel(emptyProjection, events.slice(0, 3));
    const parts = projectChannel(first, events.slice(3));
    expect(parts).toEqual(projectChannel(emptyProjection, events));
    expect([...first.posts.keys()]).toEqual([1]);
    expect([...parts.posts.keys()]).toEqual([6]);
    expect(emptyProjection.posts.size).toBe(0);
  });

  test.each([
    ['an edit', edited(9, { body: text('x') })],
    ['a deletion', deleted(9, 1)],
    ['an unknown type', { ...outer(9), kind: 'unknown', payload: { $type: 'svc.new' } } as const],
  ])('%s of what is not held takes its sequence and nothing more', (_, event) => {
    const { posts, position } = projectChannel(emptyProjection, [event]);
    expect([posts.size, position]).toEqual([0, 9]);
  });

  test('06 §7.3: after a deletion neither the post nor a later edit comes back', () => {
    const events = [posted(1), deleted(2, 1), edited(3, { body: text('x') })];
    expect(projectChannel(emptyProjection, events).posts.size).toBe(0);
  });

  test('an edit that would leave nothing changes nothing', () => {
    const { posts } = projectChannel(emptyProjection, [posted(1), edited(2, { body: null })]);
    expect(posts.get(1)?.state).toEqual({ body: text('one') });
    expect(posts.get(1)?.edited).toBeUndefined();
  });

  test('06 §4: only a higher revision becomes the current descriptor', () => {
    expect(newerDescriptor(undefined, descriptor)).toBe(descriptor);
    expect(newerDescriptor(revision(2), revision(3)).revision).toBe(3);
    const saved = revision(3);
    expect(newerDescriptor(saved, revision(3, { name: 'other' }))).toBe(saved);
    expect(newerDescriptor(saved, revision(2))).toBe(saved);
  });

  test('06 §7.4: closure is final: nothing after it has an effect', () => {
    const closed = revision(1, { status: 'closed' });
    const end: VerifiedChannelEvent = { ...outer(2), kind: 'descriptor', payload: closed };
    const again: VerifiedChannelEvent = { ...outer(5), kind: 'descriptor', payload: revision(2) };
    const after = [posted(3), edited(4, { body: text('x') }), again];
    const all = projectChannel(emptyProjection, [created, posted(1), end, ...after]);
    expect(all.descriptor).toBe(closed);
    expect([...all.posts.keys()]).toEqual([1]);
    expect(all.posts.get(1)?.state).toEqual({ body: text('one') });
    expect(newerDescriptor(closed, revision(2))).toBe(closed);
  });

  test.each([[[posted(2), posted(2)]], [[posted(2), posted(1)]]])(
    'events that do not ascend are refused as a whole',
    (events) => {
      expect(() => projectChannel(emptyProjection, events)).toThrow(RangeError);
    },
  );
});

/** The rules once more, as plainly as they can be written: every post from all edits, each time. */
function plainFold(events: readonly VerifiedChannelEvent[]): Map<number, string> {
  const result = new Map<number, string>();
  for (const origin of events.filter(({ kind }) => kind === 'post')) {
    const gone = events.some(
      ({ kind, payload, sequence }) =>
        kind === 'delete' &&
        (payload as JsonObject).target_sequence === origin.sequence &&
        sequence > origin.sequence,
    );
    if (gone) continue;
    let state: Record<string, JsonValue | undefined> = JSON.parse(JSON.stringify(origin.payload));
    for (const name of ['$type', 'channel_id', 'message_id', 'device_signature']) {
      delete state[name];
    }
    for (const { kind, payload, sequence } of events) {
      const patch = payload as JsonObject;
      if (kind !== 'edit' || patch.target_sequence !== origin.sequence) continue;
      if (sequence < origin.sequence) continue;
      const next = { ...state };
      for (const [name, value] of Object.entries(patch)) {
        if (['$type', 'channel_id', 'target_sequence', 'device_signature'].includes(name)) continue;
        if (value === null) delete next[name];
        else next[name] = value;
      }
      const { attachments } = next;
      const empty = !Array.isArray(attachments) || attachments.length === 0;
      if (next.body !== undefined || !empty) state = next;
    }
    result.set(origin.sequence, canonicalJson(state));
  }
  return result;
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const members = (withNull: boolean) => {
  const some = <T>(value: fc.Arbitrary<T>) =>
    optional(withNull ? fc.option(value, { nil: null }) : value);
  const files = fc.uniqueArray(fc.constantFrom(x, y), { maxLength: 2, selector: (f) => f.hash });
  return fc
    .record({
      body: some(fc.constantFrom(text('A'), text('B'))),
      attachments: some(files),
      extra: some(fc.constantFrom(0, 1, [], { a: 1 })),
      other: some(fc.boolean()),
    })
    .map((made): JsonObject => {
      const kept = Object.entries(made).filter(([, value]) => value !== undefined);
      return Object.fromEntries(kept);
    });
};

const unsigned = (type: string, rest: JsonObject) =>
  ({ $type: `svc.${type}`, channel_id: 'c', device_signature: 's', ...rest }) as const;

const step = fc.oneof(
  members(false)
    .filter(({ body, attachments = [] }) => body !== undefined || `${attachments}` !== '')
    .map((made) => ({
      kind: 'post' as const,
      payload: unsigned('channel.post', { ...made, message_id: 'm' }),
    })),
  fc.record({ made: members(true), target: fc.integer({ min: 1, max: 12 }) }).map((edit) => ({
    kind: 'edit' as const,
    payload: unsigned('channel.post.edit', { ...edit.made, target_sequence: edit.target }),
  })),
  fc.integer({ min: 1, max: 12 }).map((target) => ({
    kind: 'delete' as const,
    payload: unsigned('channel.post.delete', { target_sequence: target }),
  })),
);

describe('06 §10.2: the projection against a plain reference', () => {
  test('gives the same posts for any events, at once and in parts', () => {
    const gaps = fc.array(fc.tuple(step, fc.integer({ min: 1, max: 2 })), { maxLength: 24 });
    fc.assert(
      fc.property(gaps, fc.nat(24), (steps, cut) => {
        let sequence = 0;
        const events = steps.map(([{ kind, payload }, gap]) => {
          sequence += gap;
          return { ...outer(sequence), kind, payload } as unknown as VerifiedChannelEvent;
        });
        const whole = projectChannel(emptyProjection, events);
        const first = projectChannel(emptyProjection, events.slice(0, cut));
        const parts = projectChannel(first, events.slice(cut));
        const states = [...whole.posts].map(([at, { state }]) => [at, canonicalJson(state)]);
        expect(states).toEqual([...plainFold(events)]);
        expect(parts.posts).toEqual(whole.posts);
      }),
      { numRuns: 500 },
    );
  });

  test('an edit applied twice is applied once', () => {
    const states = members(false).filter(({ body }) => body !== undefined);
    const patches = members(true).filter(({ body }) => body !== null);
    fc.assert(
      fc.property(states, patches, (made, patch) => {
        const change = unsigned('channel.post.edit', patch) as unknown as ChannelPostEdit;
        const once = reducePost(postState(unsigned('channel.post', made) as never), change);
        expect(reducePost(once, change)).toBe(once);
      }),
    );
  });
});
