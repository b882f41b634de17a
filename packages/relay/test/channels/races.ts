/**
 * Tests of concurrent calls to a channel, at one process or several: the test file that uses them
 * says at which.
 */
import {
  type ChannelPage,
  emptyProjection,
  projectChannel,
  verifyChannelPage,
} from '@posthouse/protocol';
import type { JsonObject } from '@posthouse/protocol/json';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type By, type Patch, TestChannel, text } from '../fixtures/channel.ts';
import { readWhole } from '../fixtures/channel-reader.ts';
import type { Person } from '../fixtures/person.ts';
import {
  codeOfRpc,
  onlyOne,
  Races,
  type RacingCall,
  type RelayProcesses,
  type Rows,
} from '../fixtures/races.ts';
import { share } from '../support/chance.ts';
import { network } from '../support/in-process-relay.ts';

/** How often a race is run: `npm run test:long` has more. */
const rounds = share === 'part' ? 3 : 6;

export function describeRaces(open: () => Promise<RelayProcesses>): void {
  let place: RelayProcesses;
  let course: Races;
  let ground: Races['ground'];
  let ann: Person;
  let ben: Person;
  let cem: Person;

  beforeAll(async () => {
    place = await open();
    course = new Races(place);
    ground = course.ground;
    ann = await ground.register('ann', ['phone', 'laptop']);
    ben = await ground.register('ben');
    cem = await ground.register('cem');
  });
  afterAll(() => place[Symbol.asyncDispose]());

  const race = (...calls: readonly RacingCall[]) => course.race(...calls);
  const found = () => TestChannel.create(ground, ann, { moderators: [ben.account] });
  const laptop = { device: 'laptop' };

  const call = (method: string, params: object, { by = ann, device = 'phone' }: By = {}) => ({
    ...{ by, device, method, params },
  });
  const update = (channel: TestChannel, change: object, by: By = {}) => {
    const params = channel.nextDescriptor({ ...change, updated_at: ground.clock.now() }, by);
    return call('channel.update', params, by);
  };
  const close = (channel: TestChannel, by: By = {}) =>
    call('channel.close', channel.closure(by), by);
  const post = (channel: TestChannel, facts: JsonObject, by: By = {}) =>
    call('channel.post', channel.newPost(facts, by), by);
  const edit = (channel: TestChannel, target: number, patch: Patch, by: By = {}) =>
    call('channel.post.edit', channel.newEdit(target, patch, by), by);
  const remove = (channel: TestChannel, target: number, by: By = {}) =>
    call('channel.post.delete', channel.newDeletion(target, {}, by), by);

  const rowsOf = async ({ channelId }: TestChannel, table: string): Promise<Rows> =>
    (await course.rows(table)).filter(({ channel_id }) => channel_id === channelId);
  const headOf = async (channel: TestChannel) => {
    const [row] = await rowsOf(channel, 'channels');
    return row?.head as number;
  };

  /** Checks that every event verifies, and that head and descriptor match storage. */
  const expectWhole = async (channel: TestChannel) => {
    const events = await readWhole(ground, channel);
    const [row] = await rowsOf(channel, 'channels');
    const { descriptor, posts } = projectChannel(emptyProjection, events);
    expect(events.at(-1)?.sequence).toBe(row?.head);
    expect([descriptor?.revision, descriptor?.status]).toEqual([row?.revision, row?.status]);
    expect((await channel.resolve()).descriptor).toEqual(descriptor);
    channel.descriptor = descriptor ?? channel.descriptor;
    return { events, posts };
  };

  test('06 §8.4: of many updates to one revision exactly one is accepted', async () => {
    const channel = await found();
    for (let round = 0; round < rounds; round += 1) {
      const calls = Array.from({ length: 6 }, (_, index) =>
        update(channel, { name: `${round}.${index}` }, index % 2 === 0 ? {} : laptop),
      );
      const winner = onlyOne(await race(...calls));
      await expectWhole(channel);
      expect(channel.descriptor).toEqual(calls[winner]?.params);
      // Nothing of the others is stored.
      expect(await headOf(channel)).toBe(round + 1);
      expect(await rowsOf(channel, 'channel_events')).toHaveLength(round + 2);
    }
  });

  test('06 §7.4: an update, two closures and a post at once: no event follows the closure', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const channel = await found();
      const calls = [close(channel), update(channel, { name: 'new' }), close(channel, laptop)];
      const writing = post(channel, { body: text('last') }, { by: ben });
      const order = round % 2 === 0 ? calls : calls.toReversed();
      const codes = await race(...order, writing);
      const winner = order[onlyOne(codes.slice(0, 3))];
      const isClosed = winner?.method === 'channel.close';
      if (!isClosed) expect(codes[3]).toBe('ok');
      else expect(['ok', 'state_conflict']).toContain(codes[3]);
      const { events } = await expectWhole(channel);
      expect(channel.descriptor.status).toBe(isClosed ? 'closed' : 'active');
      expect(events).toHaveLength(codes[3] === 'ok' ? 3 : 2);
      if (isClosed) expect(events.at(-1)?.kind).toBe('descriptor');
    }
  });

  test('06 §8.7: one post sent many times at once is one event, and all answers have its sequence', async () => {
    const channel = await found();
    for (let round = 0; round < rounds; round += 1) {
      const one = post(channel, { body: text(`${round}`) }, { by: ben });
      const answers = await course.answers(one, one, one, one, one, one);
      expect(answers.map(({ result }) => result)).toEqual(
        answers.map(() => ({ sequence: round + 1 })),
      );
      expect(await headOf(channel)).toBe(round + 1);
    }
    expect((await expectWhole(channel)).posts.size).toBe(rounds);
    expect(await rowsOf(channel, 'channel_posts')).toHaveLength(rounds);
  });

  test('06 §8.7: of two contents under one message ID of an account one is accepted', async () => {
    const channel = await found();
    for (let round = 0; round < rounds; round += 1) {
      const { message_id } = channel.newPost();
      const calls = [0, 1, 2, 3].map((index) =>
        post(channel, { message_id, body: text(`${index}`) }, index % 2 === 0 ? {} : laptop),
      );
      const other = post(channel, { message_id, body: text('of ben') }, { by: ben });
      const codes = await race(...calls, other);
      // Another account's ID is another ID.
      expect(codes.pop()).toBe('ok');
      const { params: won } = calls[onlyOne(codes)] as RacingCall;
      const { posts } = await expectWhole(channel);
      const texts = [...posts.values()].slice(-2).map((each) => each.state.body?.text);
      const { body } = won as { body: { text: string } };
      expect(texts.toSorted()).toEqual([body.text, 'of ben'].sort());
      expect(await headOf(channel)).toBe(2 * (round + 1));
    }
  });

  test('06 §8.7: concurrent posts have distinct sequences, without a gap', async () => {
    const channel = await found();
    const calls = Array.from({ length: 12 }, (_, index) =>
      post(channel, { body: text(`${index}`) }, { by: index % 3 === 0 ? ben : ann }),
    );
    const answers = await course.answers(...calls);
    const sequences = answers.map(({ result }) => (result as { sequence: number }).sequence);
    expect(sequences.toSorted((a, b) => a - b)).toEqual(calls.map((_, index) => index + 1));
    const { posts } = await expectWhole(channel);
    for (const [index, sequence] of sequences.entries()) {
      expect(posts.get(sequence)?.post).toEqual(calls[index]?.params);
    }
  });

  test('06 §8.8: concurrent edits apply in commit order, identical ones once', async () => {
    const channel = await found();
    const target = await channel.post({ body: text('first'), attachments: [] });
    for (let round = 0; round < rounds; round += 1) {
      const before = await headOf(channel);
      const same = edit(channel, target, { topic: round }, { by: ben });
      const calls = [0, 1, 2].map((index) =>
        edit(channel, target, { body: text(`${round}.${index}`), [`by${index}`]: round }),
      );
      const codes = await race(same, ...calls, same, same);
      expect(codes).toEqual(codes.map(() => 'ok'));
      expect(await headOf(channel)).toBe(before + 4);
      const { posts } = await expectWhole(channel);
      const state = posts.get(target)?.state as JsonObject;
      expect(state).toMatchObject({ topic: round, by0: round, by1: round, by2: round });
      const [row] = await rowsOf(channel, 'channel_posts');
      expect(JSON.parse(row?.state as string)).toEqual(state);
    }
  });

  test('06 §7.3, §8.9: a post is deleted once, together with concurrent edits', async () => {
    const channel = await found();
    for (let round = 0; round < rounds; round += 1) {
      const target = await channel.post();
      await channel.edit(target, { topic: 'before' });
      const before = await headOf(channel);
      const deletions = [remove(channel, target), remove(channel, target, { by: ben })];
      const edits = [0, 1].map((index) => edit(channel, target, { topic: index }, { by: ben }));
      const params = { channel_id: channel.channelId, target_sequence: target, reason: 'Spam' };
      const report = call('channel.post.report', params, { by: cem });
      const codes = await race(...edits, ...deletions, report);
      onlyOne(codes.slice(2, 4));
      const others = [...codes.slice(0, 2), codes[4]];
      for (const code of others) expect(['ok', 'state_conflict']).toContain(code);
      const edited = codes.slice(0, 2).filter((code) => code === 'ok').length;
      // The deletion comes last, so its sequence is the head.
      expect(await headOf(channel)).toBe(before + 1 + edited);
      const { events, posts } = await expectWhole(channel);
      expect(posts.has(target)).toBe(false);
      expect(events.at(-1)).toMatchObject({ kind: 'delete', sequence: before + 1 + edited });
      expect(events.filter(({ sequence }) => sequence >= target)).toHaveLength(1);
      const reports = await rowsOf(channel, 'channel_reports');
      expect(reports.some(({ sequence }) => sequence === target)).toBe(codes[4] === 'ok');
    }
  });

  test('06 §7.2: a removed moderator writes nothing under the next revision', async () => {
    const channel = await found();
    for (let round = 0; round < rounds; round += 1) {
      const isRemoval = round % 2 === 0;
      const { revision } = channel.descriptor;
      const change = update(channel, { moderators: isRemoval ? null : [ben.account] });
      const posts = [0, 1, 2, 3].map((index) =>
        post(channel, { body: text(`${round}.${index}`) }, { by: ben }),
      );
      const answers = await course.answers(...posts.slice(0, 2), change, ...posts.slice(2));
      const [made] = answers.splice(2, 1);
      expect(made && codeOfRpc(made)).toBe('ok');
      // `readWhole` checks that each was permitted by the descriptor it names.
      const { events } = await expectWhole(channel);
      const permitted = isRemoval ? revision : revision + 1;
      for (const answer of answers) {
        const { sequence } = (answer.result ?? {}) as { sequence?: number };
        if (sequence === undefined) expect(codeOfRpc(answer)).toBe('forbidden');
        else {
          const event = events.find((each) => each.sequence === sequence);
          expect(event).toMatchObject({ kind: 'post', descriptorRevision: permitted });
        }
      }
      const accepted = answers.filter(({ error }) => error === undefined).length;
      const ofRound = events.filter((event) => event.descriptorRevision === permitted);
      expect(ofRound.filter(({ kind }) => kind === 'post').length).toBeGreaterThanOrEqual(accepted);
    }
  });

  test('06 §8.2: of concurrent creations with one ID one is accepted; others do not wait', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const fresh = Array.from({ length: 4 }, () => TestChannel.draft(ground, ann));
      const [one, ...others] = fresh.map(({ descriptor }) => call('channel.create', descriptor));
      const first = one as RacingCall;
      const codes = await race(first, first, first, ...others);
      onlyOne(codes.slice(0, 3));
      expect(codes.slice(3)).toEqual(['ok', 'ok', 'ok']);
      for (const channel of fresh) expect((await expectWhole(channel)).events).toHaveLength(1);
    }
  });

  test('06 §7.3, §8.11: during deletions no page has an edit without its post', async () => {
    const channel = await found();
    for (let round = 0; round < rounds; round += 1) {
      const targets: number[] = [];
      for (let index = 0; index < 3; index += 1) targets.push(await channel.post());
      for (const target of targets) await channel.edit(target, { topic: 'edited' });
      const params = { channel_id: channel.channelId, after: -1 };
      const reads = Array.from({ length: 4 }, () => call('channel.read', params, { by: cem }));
      const writes = targets.flatMap((target) => [
        edit(channel, target, { topic: 'again' }, { by: ben }),
        remove(channel, target),
      ]);
      const mixed = writes.flatMap((write, index) => [write, ...reads.slice(index, index + 1)]);
      const answers = await course.answers(...mixed);
      for (const [index, { result }] of answers.entries()) {
        if (mixed[index]?.method === 'channel.read') expectConsistent(channel, result);
      }
      expect((await expectWhole(channel)).posts.size).toBe(0);
    }
  });

  function expectConsistent({ channelId }: TestChannel, page: unknown): void {
    const { relayId } = ground;
    const { events, missing, refused } = verifyChannelPage(network, page as ChannelPage, {
      ...{ channelId, relayId },
    });
    expect([missing, refused]).toEqual([[], []]);
    const posts = new Set(
      events.flatMap(({ kind, sequence }) => (kind === 'post' ? sequence : [])),
    );
    for (const { kind, payload } of events) {
      if (kind === 'edit') expect(posts.has(payload.target_sequence)).toBe(true);
      if (kind === 'delete') expect(posts.has(payload.target_sequence)).toBe(false);
    }
  }
}
