import { type ChannelPost, limits } from '@posthouse/protocol';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { beforeEach, describe, expect, test } from 'vitest';
import { attachment, type By, TestChannel, text } from '../../fixtures/channel.ts';
import { Person } from '../../fixtures/person.ts';
import { refusal } from '../../fixtures/refusal.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay, network } from '../../support/in-process-relay.ts';

const relay = inProcessRelay({ channelTimelineRetention: 1_000 });
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
let channel: TestChannel;

beforeEach(async () => {
  channel = await TestChannel.create(relay, ann, { moderators: [ben.account] });
  relay.takeNotices();
});

const refused = (post: object, { by = ann, device = 'phone' }: By = {}) =>
  refusal(relay, () => relay.call('channel.post', post, { session: by.session(device) }));
const head = (sequence: number) => ({
  kind: 'channel-timeline',
  channel: channel.channelId,
  head: sequence,
});

describe('06 §8.7: posting', () => {
  test('appends the post unchanged, for owner and moderator', async () => {
    const facts = { body: text('x'), attachments: [attachment()], extra: { deep: [{}, ''] } };
    const post = channel.newPost(facts, { device: 'laptop' });
    relay.clock.advance(7);
    expect(await channel.publish(post, { device: 'laptop' })).toBe(1);
    const second = channel.newPost({ attachments: [attachment()] }, { by: ben });
    expect(await channel.publish(second, { by: ben })).toBe(2);
    expect(relay.takeNotices()).toEqual([head(1), head(2)]);
    const accepted_at = relay.clock.now();
    expect((await channel.read({ after: 0 })).events).toEqual([
      {
        ...{ sequence: 1, descriptor_rev: 0, payload: post, accepted_at },
        signer_device_id: ann.device('laptop').deviceId,
      },
      {
        ...{ sequence: 2, descriptor_rev: 0, payload: second, accepted_at },
        signer_device_id: ben.device().deviceId,
      },
    ]);
  });

  test('refers to the current revision', async () => {
    const post = channel.newPost();
    await channel.update({ name: 'x' });
    await channel.publish(post);
    expect((await channel.read({ after: 1 })).events).toMatchObject([{ descriptor_rev: 1 }]);
  });

  test('bad_request for what is well signed and malformed', async () => {
    const cases: [string, JsonObject][] = [
      ['another type', { $type: 'x.channel.post' }],
      ['the type of an edit', { $type: network.type('channel.post.edit') }],
      ['no message ID', { message_id: 'msg_' }],
      ['no content', { body: undefined as never }],
      ['no body and no attachment', { body: undefined as never, attachments: [] }],
      ['a blank body', { body: text(' ') }],
      ['a charset', { body: { content_type: 'text/plain;charset=latin1', text: 'x' } }],
      ['null for the body', { body: null, attachments: [] }],
      ['null somewhere', { extra: [null] }],
      ['an attachment without a hash', { attachments: [{ ...attachment(), hash: 'sha256:x' }] }],
      ['an attachment over HTTP', { attachments: [{ ...attachment(), uri: 'http://x.example/' }] }],
    ];
    for (const [what, facts] of cases) {
      const { body = text('x'), ...rest } = facts;
      const wanted = 'body' in facts && facts.body === undefined ? rest : { body, ...rest };
      expect([what, await refused(channel.newPost(wanted as never))]).toEqual([
        what,
        'bad_request',
      ]);
    }
  });

  test('$context is never transmitted', async () => {
    const $context = network.context;
    expect(await refused({ ...channel.newPost(), $context })).toBe('bad_request');
    const extra = { $type: 'x', $context };
    expect(await refused({ ...channel.newPost(), extra })).toBe('bad_request');
  });

  test('a hash is attached only once, even if other members differ', async () => {
    const one = attachment();
    const attachments = [one, { ...one, uri: 'https://other.example/' }];
    expect(await refused(channel.newPost({ attachments }))).toBe('bad_request');
  });

  test('06 §8.6: an unknown media type is accepted', async () => {
    await channel.post({ body: { content_type: 'application/x-poem', text: 'x' } });
  });

  test('65,536 bytes pass, one more is request_too_large, before the signature is verified', async () => {
    const post = (length: number) => channel.newPost({ body: text('x'.repeat(length)) });
    const room = limits.channelContentBytes - Buffer.byteLength(canonicalJson(post(0)));
    const over = post(room + 1);
    expect(await refused(over)).toBe('request_too_large');
    expect(await refused({ ...over, extra: 1 })).toBe('request_too_large');
    await channel.publish(post(room));
  });

  test('06 §6: the signature of the calling device covers everything', async () => {
    const body = text('x');
    const one = attachment();
    const post = channel.newPost({ body, attachments: [one] });
    const changes: Partial<ChannelPost & JsonObject>[] = [
      { message_id: channel.newPost().message_id },
      { body: text('y') },
      { body: { ...body, content_type: 'text/markdown' } },
      { attachments: [{ ...one, size: 2 }] },
      { attachments: [] },
      { attachments: undefined as never },
      { extra: true },
    ];
    for (const change of changes) {
      expect(await refused({ ...post, ...change })).toBe('invalid_signature');
    }
    expect(await refused(post, { device: 'laptop' })).toBe('invalid_signature');
    expect(await refused(post, { by: ben })).toBe('invalid_signature');
    await channel.publish(post);
  });

  test('errors come in the order of 02 §18', async () => {
    const eve = await Person.register(relay, 'eve');
    const by = { by: eve };
    const channel_id = `chan_${'A'.repeat(22)}`;
    const nowhere = channel.newPost({ body: text('x'), channel_id }, by);
    expect(await refused({ ...nowhere, extra: 1 }, by)).toBe('invalid_signature');
    expect(await refused(nowhere, by)).toBe('not_found');
    await channel.close();
    expect(await refused(channel.newPost(undefined, by), by)).toBe('forbidden');
    expect(await refused(channel.newPost())).toBe('state_conflict');
  });

  test('a former moderator is refused, even if the right ends during the call', async () => {
    const post = channel.newPost(undefined, { by: ben });
    relay.meanwhile = () => channel.update({ moderators: null });
    expect(await relay.codeOf('channel.post', post, { session: ben.session() })).toBe('forbidden');
    await channel.update({ moderators: [ben.account] });
    await channel.publish(post, { by: ben });
    const late = channel.newPost(undefined, { by: ben });
    relay.meanwhile = async () => ben.publishState(await ben.state({ devices: [] }));
    const session = ben.session();
    expect(await relay.codeOf('channel.post', late, { session })).toBe('unauthorized');
    expect(await channel.sequences()).toEqual([0, 1, 2, 3]);
  });

  test('needs a device session', async () => {
    const post = channel.newPost();
    const as = (session?: object) =>
      refusal(relay, () => relay.call('channel.post', post, { session: session as never }));
    expect(await as()).toBe('unauthorized');
    expect(await as(ann.accountSession())).toBe('forbidden');
  });

  test('concurrent posts each have a sequence', async () => {
    const posts = Array.from({ length: 20 }, (_, index) =>
      channel.post(undefined, { by: index % 2 === 0 ? ann : ben }),
    );
    const sequences = await Promise.all(posts);
    expect(sequences.sort((a, b) => a - b)).toEqual(sequences.map((_, index) => index + 1));
    expect((await channel.read({ limit: 1 })).events).toMatchObject([{ sequence: 20 }]);
  });

  test('01 I3: the last sequence can be assigned, and none after it', async () => {
    await channel.post();
    const last = Number.MAX_SAFE_INTEGER;
    await relay.context.storage.write('relay', (tx) =>
      tx.run('UPDATE channels SET head = ?', last - 1),
    );
    const post = channel.newPost();
    expect(await channel.publish(post)).toBe(last);
    expect(await refused(channel.newPost())).toBe('state_conflict');
    expect(await channel.publish(post)).toBe(last);
    expect(await channel.sequences()).toEqual([0, 1, last]);
    expect(await channel.sequences({ before: last })).toEqual([0, 1]);
    expect(await channel.sequences({ after: last })).toEqual([]);
  });

  test('06 §7.2: a failed write stores nothing, and a restart loses nothing', async () => {
    const post = channel.newPost(undefined, { by: ben });
    const code = () => relay.codeOf('channel.post', post, { session: ben.session() });
    expect(await throughEveryFault(relay, code)).toBe(4);
    const before = await channel.read();
    await relay.restart();
    expect(await channel.read()).toEqual(before);
    expect(await channel.publish(post, { by: ben })).toBe(1);
  });
});

describe('06 §8.7: a repeat', () => {
  test('returns the original sequence and changes nothing', async () => {
    const post = channel.newPost();
    await channel.publish(post);
    await channel.post();
    relay.clock.advance(500);
    await relay.restart({ channelTimelineRetention: 9_000 });
    const before = await relay.dump();
    relay.takeNotices();
    const reordered = Object.fromEntries(Object.entries(post).reverse()) as ChannelPost;
    for (const each of [post, reordered]) expect(await channel.publish(each)).toBe(1);
    expect(await relay.dump()).toEqual(before);
    expect(relay.takeNotices()).toEqual([]);
  });

  test('with other content is state_conflict; of another account another post', async () => {
    const post = channel.newPost();
    await channel.publish(post);
    const { message_id } = post;
    expect(await refused(channel.newPost({ message_id, body: text('y') }))).toBe('state_conflict');
    const same = channel.newPost({ message_id, body: text('y') }, { by: ben });
    expect(await channel.publish(same, { by: ben })).toBe(2);
    const elsewhere = await TestChannel.create(relay, ann);
    expect(await elsewhere.post({ message_id, body: text('y') })).toBe(1);
  });

  test('by another device is another object because its signature differs', async () => {
    const post = channel.newPost();
    await channel.publish(post);
    const by = { device: 'laptop' };
    const { device_signature: _, ...rest } = post;
    expect(await refused(channel.sign(rest, by), by)).toBe('state_conflict');
  });

  test('is answered after edit, deletion, loss of the right and closure', async () => {
    const by = { by: ben };
    const post = channel.newPost(undefined, by);
    const repeated = () => channel.publish(post, by);
    await repeated();
    await channel.edit(1, { body: text('y') });
    expect(await repeated()).toBe(1);
    await channel.delete(1);
    expect(await repeated()).toBe(1);
    await channel.update({ moderators: null });
    expect(await repeated()).toBe(1);
    await channel.close();
    expect(await repeated()).toBe(1);
    const other = channel.newPost({ message_id: post.message_id, body: text('z') }, by);
    expect(await refused(other, by)).toBe('state_conflict');
    expect(await channel.sequences()).toEqual([0, 3, 4, 5]);
  });

  test('still needs structure, size, signature and session', async () => {
    const post = channel.newPost();
    await channel.publish(post);
    await channel.close();
    expect(await refused({ ...post, extra: null })).toBe('bad_request');
    expect(await refused({ ...post, extra: 'x'.repeat(70_000) })).toBe('request_too_large');
    expect(await refused({ ...post, extra: 1 })).toBe('invalid_signature');
    await ann.publishState(await ann.state({ devices: ['laptop'] }));
    expect(await refused(post)).toBe('unauthorized');
  });

  test('concurrent with the first makes one post', async () => {
    const post = channel.newPost();
    const both = await Promise.all([channel.publish(post), channel.publish(post)]);
    expect(both).toEqual([1, 1]);
    expect(await relay.rows('channel_posts')).toHaveLength(1);
    expect(await channel.sequences()).toEqual([0, 1]);
  });

  test('is recognised until the post’s own deadline, even if configuration changes later', async () => {
    const post = channel.newPost();
    await channel.publish(post);
    await channel.delete(1);
    await relay.restart({ channelTimelineRetention: 1 });
    relay.clock.advance(999);
    await relay.runJob('channels.retention');
    expect(await channel.publish(post)).toBe(1);
    relay.clock.advance(1);
    await relay.runJob('channels.retention');
    expect(await channel.publish(post)).toBe(3);
  });
});
