import { type ChannelDescriptor, closedDescriptor, signAsDevice } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { TestChannel, text } from '../../fixtures/channel.ts';
import { refusal } from '../../fixtures/refusal.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const last = Number.MAX_SAFE_INTEGER;
const relay = inProcessRelay({ channelTimelineRetention: 1_000 });
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
let channel: TestChannel;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann, { moderators: [ben.account], extra: [1] });
  relay.takeNotices();
});

const call = (method: string, params: object, by = ann, device = 'phone') =>
  relay.call(`channel.${method}`, params, { session: by.session(device) });
const refused = (method: string, params: object, by = ann) =>
  refusal(relay, () => call(method, params, by));
const set = (column: string, value: number) =>
  relay.context.storage.write('relay', (tx) => tx.run(`UPDATE channels SET ${column} = ?`, value));

/** Makes the next descriptor with members that the signing functions would refuse. */
const next = (facts: Partial<ChannelDescriptor> & JsonObject = {}, device = 'phone') =>
  channel.sign({ ...channel.nextDescriptor({}), ...facts } as ChannelDescriptor, { device });

/** Makes signed parameters of `channel.close` with another revision, time or unknown member. */
function closure(facts: { revision?: number; updated_at?: number } = {}) {
  const { device_signature: _, ...close } = { ...channel.closure(), ...facts };
  const final = closedDescriptor(channel.descriptor, { ...close, device_signature: '' });
  const { device_signature } = signAsDevice(network, { ...final }, ann.device().signer);
  return { ...close, device_signature };
}

describe('06 §8.4: updating', () => {
  test('replaces the whole descriptor and appends it unchanged', async () => {
    const { descriptor } = channel;
    const { extra: _, moderators: __, ...rest } = descriptor as ChannelDescriptor & JsonObject;
    const changed = { ...rest, name: 'Other', revision: 1, more: { a: [true] } };
    const update = channel.sign(changed as JsonObject, { device: 'laptop' });
    relay.clock.advance(10);
    expect(await call('update', update, ann, 'laptop')).toBe(null);
    const head = { kind: 'channel-timeline', channel: channel.channelId, head: 1 };
    expect(relay.takeNotices()).toEqual([head]);
    const { events, certificates } = await channel.read({ after: 0 });
    expect(events).toEqual([
      {
        sequence: 1,
        descriptor_rev: 1,
        payload: update,
        accepted_at: relay.clock.now(),
        signer_device_id: ann.device('laptop').deviceId,
      },
    ]);
    expect(certificates).toEqual([ann.device('laptop').certificate]);
    expect((await channel.resolve()).descriptor).toEqual(update);
    expect((await channel.resolve(0)).descriptor).toEqual(descriptor);
    const post = channel.newPost(undefined, { by: ben });
    expect(await refused('post', post, ben)).toBe('forbidden');
  });

  test('an unknown channel is not_found, the channel of another owner forbidden', async () => {
    const other = TestChannel.draft(relay, ben);
    expect(await refused('update', other.nextDescriptor({}), ben)).toBe('not_found');
    expect(await refused('update', other.nextDescriptor({}))).toBe('not_found');
    const update = channel.nextDescriptor({ name: 'x' }, { by: ben });
    expect(await refused('update', update, ben)).toBe('forbidden');
    const badly = { ...update, name: ' ', created_at: 1 };
    expect(await refused('update', badly, ben)).toBe('forbidden');
  });

  test('bad_request for what is malformed', async () => {
    const cases: [string, JsonObject][] = [
      ['another type', { $type: network.type('channel.post') }],
      ['$context', { $context: network.context }],
      ['an empty name', { name: '' }],
      ['null', { description: null }],
      ['another nonce', { nonce: 'A'.repeat(22) }],
      ['another host', { relay_id: `0x${'1'.repeat(40)}` }],
      ['another time of creation', { created_at: 1 }],
      ['a closed channel', { status: 'closed' }],
      ['a negative revision', { revision: -1 }],
    ];
    for (const [what, facts] of cases) {
      const code = await refused('update', { ...channel.nextDescriptor({}), ...facts });
      expect([what, code]).toEqual([what, 'bad_request']);
    }
  });

  test('a change of the creator is bad_request', async () => {
    expect(await refused('update', next({ creator: ben.account }))).toBe('bad_request');
  });

  test('the signature of the calling device covers everything', async () => {
    const update = channel.nextDescriptor({ name: 'x' });
    for (const facts of [{ name: 'y' }, { more: 1 }, { moderators: [] }]) {
      expect(await refused('update', { ...update, ...facts })).toBe('invalid_signature');
    }
    expect(await refused('update', next({}, 'laptop'))).toBe('invalid_signature');
  });

  test('errors come in the order of the list', async () => {
    const huge = { more: 'x'.repeat(9_000), updated_at: 1, revision: 9 };
    await expect(refused('update', next(huge))).resolves.toBe('request_too_large');
    expect(await refused('update', next({ updated_at: 1, revision: 9 }))).toBe('clock_skew');
    expect(await refused('update', next({ revision: 9 }))).toBe('state_conflict');
    await channel.close();
    const update = channel.sign({ ...channel.descriptor, status: 'active', ...huge });
    expect(await refused('update', update)).toBe('state_conflict');
    expect(await refused('update', { ...update, more: 1 })).toBe('invalid_signature');
    expect(await refused('update', { ...update, name: '' })).toBe('bad_request');
  });

  test('8,192 bytes pass, one more does not', async () => {
    const missing = 8_192 - Buffer.byteLength(canonicalJson(next({ more: '' })));
    expect(await refused('update', next({ more: 'x'.repeat(missing + 1) }))).toBe(
      'request_too_large',
    );
    await call('update', next({ more: 'x'.repeat(missing) }));
  });

  test('updated_at is compared with the clock, and with no other time', async () => {
    const now = relay.clock.now();
    for (const updated_at of [now - 301, now + 301]) {
      expect(await refused('update', next({ updated_at }))).toBe('clock_skew');
    }
    await channel.update({ updated_at: now + 300 });
    await channel.update({ updated_at: now - 300 });
    await channel.update({ updated_at: now });
  });

  test('only the next revision is accepted, and only once', async () => {
    const update = channel.nextDescriptor({ name: 'x' });
    await call('update', update);
    for (const revision of [0, 1, 3, last]) {
      expect(await refused('update', next({ revision }))).toBe('state_conflict');
    }
    expect(await refused('update', update)).toBe('state_conflict');
  });

  test('of two updates at once one is accepted', async () => {
    const [one, two] = [
      channel.nextDescriptor({ name: '1' }),
      channel.nextDescriptor({ name: '2' }),
    ];
    const outcomes = await Promise.allSettled([call('update', one), call('update', two)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(await channel.sequences()).toEqual([0, 1]);
    relay.meanwhile = () => channel.close();
    channel.descriptor = (await channel.resolve()).descriptor;
    const late = channel.nextDescriptor({ name: '3' });
    expect(await relay.codeOf('channel.update', late, { session: ann.session() })).toBe(
      'state_conflict',
    );
  });

  test('if revisions or sequences are exhausted, an update is refused', async () => {
    await set('head', last);
    expect(await refused('update', next())).toBe('state_conflict');
    expect(await refused('close', closure())).toBe('state_conflict');
    await set('head', 0);
    await relay.context.storage.write('relay', (tx) =>
      tx.run('UPDATE channel_events SET descriptor_rev = ?', last),
    );
    await set('revision', last);
    expect(await refused('update', next({ revision: last }))).toBe('state_conflict');
    expect(await refused('close', closure({ revision: last }))).toBe('state_conflict');
  });

  test('a failed write stores nothing', async () => {
    const update = channel.nextDescriptor({ name: 'x' });
    const code = () => relay.codeOf('channel.update', update, { session: ann.session() });
    expect(await throughEveryFault(relay, code)).toBe(4);
  });

  test('a removed device is refused, even if it is removed during the call', async () => {
    relay.meanwhile = async () => ann.publishState(await ann.state({ devices: ['laptop'] }));
    const session = ann.session();
    expect(await relay.codeOf('channel.update', next(), { session })).toBe('unauthorized');
    expect(await channel.sequences({}, { by: ben })).toEqual([0]);
    expect(await refused('close', closure())).toBe('unauthorized');
  });
});

describe('06 §8.5: closing', () => {
  test('copies the current descriptor, unknown members too', async () => {
    await channel.update({ name: 'last', more: { b: 1 } });
    relay.takeNotices();
    relay.clock.advance(5);
    const { device_signature, ...rest } = channel.closure();
    const close = { device_signature, ...rest, name: 'ignored', $type: 'ignored' };
    expect(await call('close', close)).toBe(null);
    const head = { kind: 'channel-timeline', channel: channel.channelId, head: 2 };
    expect(relay.takeNotices()).toEqual([head]);
    const { revision, updated_at } = rest;
    const changed = { status: 'closed', revision, updated_at, device_signature };
    const final = { ...channel.descriptor, ...changed };
    expect((await channel.resolve()).descriptor).toEqual(final);
    const { events } = await channel.read({ after: 1 });
    expect(events).toMatchObject([{ sequence: 2, descriptor_rev: 2, payload: final }]);
  });

  test('ends writing but not reading', async () => {
    const one = await channel.post();
    const update = next({ revision: 2 });
    await channel.close();
    const writes: [string, object][] = [
      ['update', update],
      ['close', closure({ revision: 2 })],
      ['post', channel.newPost()],
      ['post.edit', channel.newEdit(one, { body: text('x') })],
      ['post.edit', channel.newEdit(99, { body: text('x') })],
      ['post.delete', channel.newDeletion(one)],
    ];
    for (const [method, params] of writes) {
      expect([method, await refused(method, params)]).toEqual([method, 'state_conflict']);
    }
    expect(await refused('post', channel.newPost({}))).toBe('bad_request');
    expect(await refused('post', channel.newPost(undefined, { by: ben }), ben)).toBe(
      'state_conflict',
    );
    expect(await channel.sequences()).toEqual([0, 1, 2]);
    await relay.restart();
    expect((await channel.resolve()).descriptor.status).toBe('closed');
  });

  test('bad_request for what is malformed', async () => {
    const cases: [string, JsonObject][] = [
      ['no channel', { channel_id: 'chan_' }],
      ['a revision that is no integer', { revision: 1.5 }],
      ['no time', { updated_at: null }],
      ['no signature', { device_signature: 'x' }],
    ];
    for (const [what, facts] of cases) {
      expect([what, await refused('close', { ...channel.closure(), ...facts })]).toEqual([
        what,
        'bad_request',
      ]);
    }
  });

  test('only the owner may close; another account is forbidden before any other error', async () => {
    expect(await refused('close', channel.closure({ by: ben }), ben)).toBe('forbidden');
    expect(await refused('close', { ...closure(), revision: 5, updated_at: 1 }, ben)).toBe(
      'forbidden',
    );
    const nowhere = { ...closure(), channel_id: `chan_${'A'.repeat(22)}` };
    expect(await refused('close', nowhere)).toBe('not_found');
  });

  test('errors come in the order of the list', async () => {
    const close = closure();
    expect(await refused('close', { ...close, revision: 2, updated_at: 1 })).toBe('state_conflict');
    expect(await refused('close', { ...close, revision: 0 })).toBe('state_conflict');
    expect(await refused('close', { ...close, updated_at: 1 })).toBe('clock_skew');
    expect(await refused('close', { ...close, updated_at: close.updated_at + 1 })).toBe(
      'invalid_signature',
    );
    expect(await refused('close', channel.closure({ device: 'laptop' }))).toBe('invalid_signature');
    await channel.close();
    expect(await refused('close', { ...close, updated_at: 1 })).toBe('state_conflict');
  });

  test('the tolerance of updated_at is the same in both directions', async () => {
    const now = relay.clock.now();
    for (const updated_at of [now - 301, now + 301]) {
      expect(await refused('close', closure({ updated_at }))).toBe('clock_skew');
    }
    await call('close', closure({ updated_at: now - 300 }));
  });

  test('a descriptor that would grow over 8,192 bytes stays as it is', async () => {
    // `closed` is as long as `active`; revision 10 is longer than 9.
    for (let revision = 1; revision < 9; revision += 1) await channel.update({});
    const missing = 8_192 - Buffer.byteLength(canonicalJson(next({ more: '' })));
    await channel.update({ more: 'x'.repeat(missing) });
    expect(channel.descriptor.revision).toBe(9);
    expect(await refused('close', closure())).toBe('request_too_large');
    await channel.edit(await channel.post(), { body: text('open still') });
  });

  test('a close after a concurrent update is state_conflict: another descriptor was signed', async () => {
    const close = closure();
    const update = channel.nextDescriptor({ name: 'between' });
    relay.meanwhile = async () => void (await call('update', update));
    expect(await relay.codeOf('channel.close', close, { session: ann.session() })).toBe(
      'state_conflict',
    );
    expect((await channel.resolve()).descriptor).toEqual(update);
  });

  test('a failed write stores nothing', async () => {
    const close = closure();
    const code = () => relay.codeOf('channel.close', close, { session: ann.session() });
    expect(await throughEveryFault(relay, code)).toBe(4);
  });
});

describe('06 §8.3: resolving', () => {
  const resolve = (params: object, session = ben.session() as object) =>
    refusal(relay, () =>
      relay.call('channel.resolve', params, { session: session as never, form: 'query' }),
    );

  test('returns every stored revision with the certificate of its signer', async () => {
    const first = channel.descriptor;
    const second = next({ name: 'two' }, 'laptop');
    await call('update', second, ann, 'laptop');
    const by = { by: ben };
    const phone = ann.device().certificate;
    const laptop = ann.device('laptop').certificate;
    expect(await channel.resolve(0, by)).toEqual({ descriptor: first, signer_certificate: phone });
    for (const revision of [1, undefined]) {
      const current = { descriptor: second, signer_certificate: laptop };
      expect(await channel.resolve(revision, by)).toEqual(current);
    }
    await ann.publishState(await ann.state({ devices: ['phone'] }));
    expect(await channel.resolve(1, by)).toHaveProperty('signer_certificate', laptop);
  });

  test('refuses unknown and malformed revisions', async () => {
    const { channelId: channel_id } = channel;
    for (const revision of [1, last]) {
      expect(await resolve({ channel_id, revision })).toBe('not_found');
    }
    expect(await resolve({ channel_id: `chan_${'A'.repeat(22)}` })).toBe('not_found');
    for (const revision of [-1, 0.5, '0', null]) {
      expect(await resolve({ channel_id, revision })).toBe('bad_request');
    }
    expect(await resolve({ channel_id: 'chan_x' })).toBe('bad_request');
    expect(await resolve({ channel_id }, ben.accountSession())).toBe('forbidden');
    const anonymous = () => relay.call('channel.resolve', { channel_id });
    expect(await refusal(relay, anonymous)).toBe('unauthorized');
  });
});

describe('06 §7.5: retention of descriptors', () => {
  const deadlines = async () =>
    (await relay.rows('channel_events'))
      .filter(({ kind }) => kind === 'descriptor')
      .map(({ clear_after }) => clear_after);

  test('the current one stays for good, a superseded one at least until its own deadline', async () => {
    const now = relay.clock.now();
    expect(await deadlines()).toEqual([null]);
    await relay.restart({ channelTimelineRetention: 10 });
    await channel.update({ name: 'x' });
    expect(await deadlines()).toEqual([now + 1_000, null]);
    await channel.close();
    expect(await deadlines()).toEqual([now + 1_000, now + 10, null]);
  });

  test('a superseded one stays as long as an event that was accepted under it', async () => {
    const now = relay.clock.now();
    relay.clock.advance(400);
    const one = await channel.post();
    await relay.restart({ channelTimelineRetention: 10 });
    await channel.update({ name: 'edited under this' });
    // An edit is removed with its post, and a deletion stays as long as the post would have.
    await channel.edit(one, { body: text('x') });
    await channel.update({ name: 'deleted under this' });
    await channel.delete(one);
    await channel.update({ name: 'nothing under this' });
    await channel.update({ name: 'the last' });
    const needed = now + 1_400;
    expect(await deadlines()).toEqual([needed, needed, needed, now + 410, null]);
  });
});
