import {
  emptyProjection,
  limits,
  type PostState,
  projectChannel,
  verifyChannelPage,
} from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { attachment, type By, type Patch, TestChannel, text } from '../../fixtures/channel.ts';
import { Person } from '../../fixtures/person.ts';
import { refusal } from '../../fixtures/refusal.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const relay = inProcessRelay({ channelTimelineRetention: 1_000 });
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
let channel: TestChannel;
let target: number;
const x = attachment();
const y = attachment();

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
  target = await channel.post({ body: text('A'), attachments: [x], mood: 'good' }, { by: ben });
  relay.takeNotices();
});

const call = (method: string, params: object, { by = ann, device = 'phone' }: By = {}) =>
  relay.call(`channel.post.${method}`, params, { session: by.session(device) });
const refused = (params: object, by: By = {}, method = 'edit') =>
  refusal(relay, () => call(method, params, by));
/** Tells whether an edit appends an event. */
async function hasEvent(patch: Patch): Promise<boolean> {
  const before = await relay.dump();
  relay.takeNotices();
  await channel.edit(target, patch);
  const told = relay.takeNotices().length;
  const isSame = JSON.stringify(await relay.dump()) === JSON.stringify(before);
  expect(told).toBe(isSame ? 0 : 1);
  return !isSame;
}

/** Returns the state of the post as a reader computes it. */
async function projected(): Promise<PostState | undefined> {
  const page = await channel.read({ after: -1 });
  const known = { channelId: channel.channelId, relayId: relay.relayId };
  const { events, refused: wrong, missing } = verifyChannelPage(network, page, known);
  expect({ wrong, missing }).toEqual({ wrong: [], missing: [] });
  return projectChannel(emptyProjection, events).posts.get(target)?.state;
}

describe('06 §8.8: editing', () => {
  test('appends the edit unchanged, for posts of any writer', async () => {
    const edit = channel.newEdit(target, { body: text('B'), extra: { a: [1] } });
    relay.clock.advance(3);
    expect(await call('edit', edit)).toBe(null);
    const head = { kind: 'channel-timeline', channel: channel.channelId, head: 2 };
    expect(relay.takeNotices()).toEqual([head]);
    const { events } = await channel.read();
    expect(events[1]).toHaveProperty('payload.body', text('A'));
    expect(events[2]).toEqual({
      sequence: 2,
      descriptor_rev: 0,
      payload: edit,
      accepted_at: relay.clock.now(),
      signer_device_id: ann.device().deviceId,
    });
  });

  test('the example of 06 §10.2: readers and relay compute the same state', async () => {
    await channel.edit(target, { attachments: null });
    expect(await projected()).toEqual({ body: text('A'), mood: 'good' });
    expect(await refused(channel.newEdit(target, { body: null }))).toBe('bad_request');
    await channel.edit(target, { body: null, attachments: [y] });
    expect(await projected()).toEqual({ attachments: [y], mood: 'good' });
    expect(await hasEvent({ attachments: [y] })).toBe(false);
    await relay.restart();
    expect(await hasEvent({ attachments: [y] })).toBe(false);
    expect(await hasEvent({ body: text('B'), attachments: [] })).toBe(true);
    expect(await projected()).toEqual({ body: text('B'), attachments: [], mood: 'good' });
  });

  test('only an edit that changes the whole state has an effect', async () => {
    expect(await hasEvent({ body: text('A') })).toBe(false);
    expect(await hasEvent({ body: text('A'), attachments: [x], mood: 'good' })).toBe(false);
    expect(await hasEvent({ unknown: null })).toBe(false);
    expect(await hasEvent({ mood: null })).toBe(true);
    expect(await hasEvent({ mood: null })).toBe(false);
    expect(await hasEvent({ attachments: null })).toBe(true);
    expect(await hasEvent({ attachments: null })).toBe(false);
    expect(await hasEvent({ attachments: [] })).toBe(true);
    expect(await hasEvent({ attachments: [] })).toBe(false);
    expect(await hasEvent({ reason: 'r', target: 5 })).toBe(true);
    const added = { ['__proto__']: { a: 1 } };
    expect(await hasEvent(JSON.parse(JSON.stringify(added)) as Patch)).toBe(true);
    expect(await hasEvent(JSON.parse(JSON.stringify(added)) as Patch)).toBe(false);
  });

  test('bad_request for what is well signed and malformed', async () => {
    const cases: [string, JsonObject][] = [
      ['another type', { $type: network.type('channel.post'), body: text('B') }],
      ['nothing to change', {}],
      ['message_id', { message_id: null, body: text('B') }],
      ['a blank body', { body: text('') }],
      ['null in the body', { body: { ...text('B'), extra: null } }],
      ['null in an unknown member', { mood: { deep: null } }],
      ['null in a list', { mood: [null] }],
      ['a repeated hash', { attachments: [y, { ...y, size: 9 }] }],
      ['a malformed target', { target_sequence: 0, body: text('B') }],
      ['no body and no attachment left', { body: null, attachments: [] }],
      ['nothing left', { body: null, attachments: null, mood: 'better' }],
    ];
    for (const [what, patch] of cases) {
      expect([what, await refused(channel.newEdit(target, patch))]).toEqual([what, 'bad_request']);
    }
  });

  test('$context cannot be edited, not even removed', async () => {
    const edit = { ...channel.newEdit(target, { body: text('B') }), $context: null };
    expect(await refused(edit)).toBe('bad_request');
  });

  test('null is signed as null, and absent as absent', async () => {
    const edit = channel.newEdit(target, { body: null, attachments: [y], mood: null });
    const { body: _, ...absent } = edit;
    for (const other of [absent, { ...edit, attachments: [] }, { ...edit, mood: 'x' }]) {
      expect(await refused(other)).toBe('invalid_signature');
    }
    expect(await refused(edit, { device: 'laptop' })).toBe('invalid_signature');
    await call('edit', edit);
  });

  test('65,536 bytes pass, one more is request_too_large', async () => {
    const edit = (length: number) => channel.newEdit(target, { mood: 'x'.repeat(length) });
    const room = limits.channelContentBytes - Buffer.byteLength(canonicalJson(edit(0)));
    expect(await refused({ ...edit(room + 1), device_signature: 'A'.repeat(86) })).toBe(
      'request_too_large',
    );
    await call('edit', edit(room));
  });

  test('an edit that makes a post larger than channelPostBytes is refused', async () => {
    await relay.restart({ channelPostBytes: 100_000 });
    const patch = (bytes: number) => ({ more: 'é'.repeat(bytes / 2) + 'x'.repeat(bytes % 2) });
    await channel.edit(target, { mood: 'x'.repeat(60_000) });
    const state = (await projected()) as JsonObject;
    const empty = Buffer.byteLength(canonicalJson({ ...state, ...patch(0) }));
    const most = 100_000 - empty;
    expect(await refused(channel.newEdit(target, patch(most + 1)))).toBe('rate_limited');
    await channel.edit(target, patch(most));
    expect(await refused(channel.newEdit(target, { less: 'xx' }))).toBe('rate_limited');
    await channel.edit(target, { mood: 'x', less: 'xx' });
  });

  test('concurrent edits apply one after another', async () => {
    const one = channel.newEdit(target, { mood: 'one', first: 1 });
    const two = channel.newEdit(target, { mood: 'two', second: 2 }, { by: ben });
    await Promise.all([call('edit', one), call('edit', two, { by: ben })]);
    expect(await projected()).toMatchObject({ first: 1, second: 2 });
    const same = channel.newEdit(target, { mood: 'three' });
    await Promise.all([call('edit', same), call('edit', same), call('edit', same)]);
    expect(await channel.sequences()).toEqual([0, 1, 2, 3, 4]);
  });

  test('an edit that leaves no content after a concurrent edit is refused', async () => {
    const edit = channel.newEdit(target, { body: null });
    relay.meanwhile = () => channel.edit(target, { attachments: [] });
    const session = ann.session();
    expect(await relay.codeOf('channel.post.edit', edit, { session })).toBe('bad_request');
  });

  test('a failed write stores nothing', async () => {
    const edit = channel.newEdit(target, { body: text('B') });
    const code = () => relay.codeOf('channel.post.edit', edit, { session: ann.session() });
    expect(await throughEveryFault(relay, code)).toBe(4);
    await channel.edit(target, { mood: null });
    const again = channel.newEdit(target, { body: text('C') });
    const second = () => relay.codeOf('channel.post.edit', again, { session: ann.session() });
    expect(await throughEveryFault(relay, second)).toBe(4);
  });

  test('if sequences are exhausted, only an edit without effect succeeds', async () => {
    await relay.context.storage.write('relay', (tx) =>
      tx.run('UPDATE channels SET head = ?', Number.MAX_SAFE_INTEGER),
    );
    expect(await refused(channel.newEdit(target, { body: text('B') }))).toBe('state_conflict');
    expect(await refused(channel.newDeletion(target), {}, 'delete')).toBe('state_conflict');
    expect(await hasEvent({ body: text('A') })).toBe(false);
  });
});

describe('06 §8.9: deleting', () => {
  test('removes post and edits and appends the deletion unchanged', async () => {
    await channel.edit(target, { body: text('B') });
    const other = await channel.post(undefined, { by: ben });
    await channel.edit(other, { body: text('B') });
    await channel.edit(target, { body: text('C') });
    await channel.edit(target, { mood: 'sad' });
    relay.takeNotices();
    const deletion = channel.newDeletion(target, { reason: 'r', extra: [{}] });
    relay.clock.advance(4);
    expect(await call('delete', deletion)).toBe(null);
    const head = { kind: 'channel-timeline', channel: channel.channelId, head: 7 };
    expect(relay.takeNotices()).toEqual([head]);
    const { events } = await channel.read();
    expect(events.map(({ sequence }) => sequence)).toEqual([0, 3, 4, 7]);
    expect(events.at(-1)).toEqual({
      sequence: 7,
      descriptor_rev: 0,
      payload: deletion,
      accepted_at: relay.clock.now(),
      signer_device_id: ann.device().deviceId,
    });
    for (const range of [
      { after: 0, limit: 1 },
      { before: 3, limit: 9 },
    ]) {
      const page = await channel.read(range);
      expect(page.events.map(({ sequence }) => sequence)).toEqual('after' in range ? [3] : [0]);
    }
    await relay.restart();
    await relay.runJob('channels.retention');
    expect(await channel.sequences()).toEqual([0, 3, 4, 7]);
    const left = JSON.stringify(await relay.rows('channel_posts'));
    expect(left).not.toContain('mood');
    expect(JSON.stringify(await relay.rows('channel_events'))).not.toContain('mood');
  });

  test('wakes the job that removes the edits', async () => {
    const woken: string[] = [];
    const jobs = { wake: (name: string) => void woken.push(name) };
    Object.assign(relay.context, { jobs });
    expect(await refused(channel.newDeletion(99), {}, 'delete')).toBe('not_found');
    expect(woken).toEqual([]);
    await channel.delete(target);
    expect(woken).toEqual(['channels.retention']);
  });

  test('the certificate of a device without events is removed, others stay', async () => {
    const devices = async () => (await channel.read()).certificates;
    expect(await devices()).toHaveLength(2);
    await channel.delete(target);
    expect(await devices()).toEqual([ann.device().certificate]);
    const { channel_certificates } = await relay.dump();
    expect(channel_certificates).toHaveLength(1);
    const again = await channel.post(undefined, { by: ben });
    const kept = await channel.post(undefined, { by: ben });
    await channel.delete(again, {}, { by: ben });
    await channel.delete(kept);
    expect(await devices()).toHaveLength(2);
  });

  test('bad_request for what is well signed and malformed', async () => {
    const cases: [string, JsonObject][] = [
      ['another type', { $type: network.type('channel.post') }],
      ['a blank reason', { reason: ' ' }],
      ['an empty reason', { reason: '' }],
      ['null', { reason: null }],
      ['null below', { extra: { a: null } }],
      ['a malformed target', { target_sequence: 0 }],
    ];
    for (const [what, facts] of cases) {
      expect([what, await refused(channel.newDeletion(target, facts), {}, 'delete')]).toEqual([
        what,
        'bad_request',
      ]);
    }
  });

  test('the reason is signed, and 65,536 bytes pass', async () => {
    const deletion = (length: number) =>
      channel.newDeletion(target, { reason: 'x'.repeat(length) });
    const room = limits.channelContentBytes - Buffer.byteLength(canonicalJson(deletion(0)));
    expect(await refused(deletion(room + 1), {}, 'delete')).toBe('request_too_large');
    const changed = { ...deletion(1), reason: 'y' };
    expect(await refused(changed, {}, 'delete')).toBe('invalid_signature');
    await call('delete', deletion(room));
  });

  test('of several concurrent deletions one appends an event', async () => {
    const outcomes = await Promise.allSettled([
      channel.delete(target),
      channel.delete(target, {}, { by: ben }),
      channel.edit(target, { body: null, attachments: [y] }),
    ]);
    const accepted = outcomes.slice(0, 2).filter(({ status }) => status === 'fulfilled');
    expect(accepted).toHaveLength(1);
    expect(await projected()).toBe(undefined);
    expect((await channel.sequences()).at(1)).toBeGreaterThan(1);
  });

  test('an edit whose post is deleted while the edit is verified is refused', async () => {
    relay.meanwhile = () => channel.delete(target);
    const edit = channel.newEdit(target, { body: text('B') });
    const session = ann.session();
    expect(await relay.codeOf('channel.post.edit', edit, { session })).toBe('state_conflict');
  });

  test('a failed write stores nothing', async () => {
    await channel.edit(target, { body: text('B') });
    const deletion = channel.newDeletion(target);
    const code = () => relay.codeOf('channel.post.delete', deletion, { session: ann.session() });
    expect(await throughEveryFault(relay, code)).toBe(8);
  });
});

describe.each(['edit', 'delete'])('06 §8.8, §8.9: the target of %s', (method) => {
  const act = (sequence: number, by: By = {}) =>
    method === 'edit'
      ? channel.newEdit(sequence, { body: text('B') }, by)
      : channel.newDeletion(sequence, {}, by);
  const targeting = (sequence: number, by: By = {}) => refused(act(sequence, by), by, method);

  test('must be a readable post', async () => {
    await channel.update({ name: 'x' });
    await channel.edit(target, { body: text('C') });
    const deleted = await channel.post();
    await channel.delete(deleted);
    for (const other of [2, 3, 5]) expect(await targeting(other)).toBe('bad_request');
    for (const none of [6, Number.MAX_SAFE_INTEGER]) {
      expect(await targeting(none)).toBe('not_found');
    }
    expect(await targeting(deleted)).toBe('state_conflict');
    await call(method, act(target));
  });

  test('is not_found after the post or its deletion was removed', async () => {
    await channel.delete(target);
    const other = await channel.post();
    relay.clock.advance(999);
    await relay.runJob('channels.retention');
    expect(await targeting(target)).toBe('state_conflict');
    relay.clock.advance(1);
    await relay.runJob('channels.retention');
    expect(await targeting(target)).toBe('not_found');
    expect(await targeting(other)).toBe('not_found');
  });

  test('errors come in the order of 02 §18', async () => {
    const eve = await Person.register(relay, 'eve');
    const by = { by: eve };
    const unsigned = { ...act(99, by), extra: 1 };
    expect(await refused(unsigned, by, method)).toBe('invalid_signature');
    const channel_id = `chan_${'A'.repeat(22)}`;
    const nowhere = channel.sign({ ...act(target, by), channel_id }, by);
    expect(await refused(nowhere, by, method)).toBe('not_found');
    expect(await targeting(99, by)).toBe('forbidden');
    await channel.update({ moderators: null });
    expect(await targeting(target, { by: ben })).toBe('forbidden');
    await channel.close();
    expect(await targeting(99, by)).toBe('forbidden');
    expect(await targeting(99)).toBe('state_conflict');
  });

  test('needs a currently valid device of the account', async () => {
    const session = ann.accountSession();
    const as = (given?: object) =>
      refusal(relay, () =>
        relay.call(`channel.post.${method}`, act(target), { session: given as never }),
      );
    expect(await as()).toBe('unauthorized');
    expect(await as(session)).toBe('forbidden');
    relay.meanwhile = async () => ann.publishState(await ann.state({ devices: ['laptop'] }));
    const code = await relay.codeOf(`channel.post.${method}`, act(target), {
      session: ann.session(),
    });
    expect(code).toBe('unauthorized');
    expect(await channel.sequences({}, { device: 'laptop' })).toEqual([0, 1]);
  });
});
