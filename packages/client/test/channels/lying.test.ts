/**
 * Hosts that lie about a channel. A page that no honest host returns is refused whole; an event
 * that does not verify is refused, and reading continues.
 */
import {
  type ChannelDescriptor,
  type ChannelPage,
  errorCatalogue,
  signAsDevice,
} from '@posthouse/protocol';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { bent, person, type } from '../groups/lying-group.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { network } from '../support/relay-with-clients.ts';
import {
  event,
  everybody,
  inventing,
  isCaughtUp,
  news,
  type PageLie,
  post,
  type Scene,
  setScene,
} from './lying-channel.ts';
import { places, postTexts } from './support.ts';

let relay: LyingRelay;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { channels: true } });
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

const misbehaviour = {
  code: 'relay_misbehaviour',
  reason: expect.stringMatching(/^(invalid_channel_page|malformed_result)$/),
};

describe('06 §5.2, §8.11: a page is refused whole for', () => {
  const lies: Record<string, PageLie> = {
    'events in another order': (page) => ({ ...page, events: page.events.toReversed() }),
    'a sequence twice': ({ events: [first, ...rest], ...page }) => ({
      ...page,
      events: [first, first, ...rest],
    }),
    'an event not after the position': ({ events, ...page }) => ({
      ...page,
      events: events.map((each, index) => (index === 0 ? { ...each, sequence: 0 } : each)),
    }),
    'an empty page with more': (page) => ({ ...page, events: [], has_more: true }),
    'more events than requested': (page) => ({
      ...page,
      events: Array.from({ length: 101 }, (_, at) => ({ ...page.events[0], sequence: at + 1 })),
    }),
    'a negative revision': ({ events, ...page }) => ({
      ...page,
      events: events.map((each) => ({ ...each, descriptor_rev: -1 })),
    }),
    'a missing certificate': (page) => ({ ...page, certificates: [] }),
    'a certificate twice': ({ certificates, ...page }) => ({
      ...page,
      certificates: [...certificates, ...certificates],
    }),
    'a certificate that the account did not sign': ({ certificates, ...page }) => ({
      ...page,
      certificates: certificates.map((each) => ({
        ...each,
        account_signature: bent(each.account_signature),
      })),
    }),
    'a certificate of another account': ({ certificates, ...page }, { outsider }) => ({
      ...page,
      certificates: certificates.map((each) => ({ ...each, account: outsider.account })),
    }),
    'an invalid certificate without a reference': ({ certificates, ...page }, { outsider }) => ({
      ...page,
      certificates: [
        ...certificates,
        { ...outsider.certificate, device_signature: bent(outsider.certificate.device_signature) },
      ],
    }),
  };

  test.each(Object.entries(lies))('%s', async (_, lie) => {
    const at = await setScene(relay);
    await news(at);
    relay.lie('channel.read', (page) => lie(page, at));
    const before = at.store.changes.length;
    await expect(at.bob.channels.sync(at.id)).rejects.toMatchObject(misbehaviour);
    expect(at.store.changes.slice(before).filter((key) => key.startsWith('channel'))).toEqual([]);
    await isCaughtUp(relay, at);
  });

  test('a valid certificate without a reference is tolerated', async () => {
    const at = await setScene(relay);
    await news(at);
    relay.lie('channel.read', (page) => ({ ...page, certificates: everybody(at) }));
    await at.bob.channels.sync(at.id);
    await isCaughtUp(relay, at);
  });

  test('a head below the read position', async () => {
    const at = await setScene(relay);
    relay.garble('channel.read', (text) => {
      const { id } = JSON.parse(text);
      const error = { code: errorCatalogue.bad_request.rpc, message: 'after' };
      return JSON.stringify({ jsonrpc: '2.0', id, error });
    });
    const failing = at.bob.channels.sync(at.id);
    await expect(failing).rejects.toMatchObject({ reason: 'channel_rollback' });
  });

  test('a channel whose host lies does not delay other channels or the timeline', async () => {
    const at = await setScene(relay);
    const other = await at.ann.channels.create({ name: 'Other' });
    await at.bob.channels.follow(other.link);
    await news(at);
    await at.ann.channels.send(other.id, { text: 'elsewhere' });
    relay.lie('channel.read', (page) =>
      page.events.length === 3 ? { ...page, certificates: [] } : page,
    );
    expect(await at.bob.sync()).toContainEqual(
      expect.objectContaining({ kind: 'channel-failed', channelId: at.id }),
    );
    expect(await postTexts(at.bob, other.id)).toEqual(['elsewhere']);
    await isCaughtUp(relay, at);
  });
});

describe('06 §10.1: an event is refused and reading continues:', () => {
  const ofModerator = (text: string) => (at: Scene) => event(at.moderator, {}, post(at, text));
  const descriptor = (at: Told, more: Partial<ChannelDescriptor> = {}) => {
    const { device_signature: _, ...rest } = at.descriptor;
    return { ...rest, revision: 1, ...more };
  };
  interface Told extends Scene {
    readonly descriptor: ChannelDescriptor;
  }
  const lies: Record<string, readonly [RegExp, (at: Told) => ReturnType<typeof event>]> = {
    'an altered text': [
      /signature/,
      (at) => {
        const honest = ofModerator('honest')(at);
        const body = { content_type: 'text/plain', text: 'altered' };
        return { ...honest, payload: { ...honest.payload, body } };
      },
    ],
    'a post of an account without the right': [
      /may not write/,
      (at) => event(at.outsider, {}, post(at, 'mine')),
    ],
    'a post signed by another account': [
      /signature/,
      (at) => ({ ...ofModerator('not his')(at), signer_device_id: at.owner.deviceId }),
    ],
    'a post of another channel': [
      /another channel/,
      (at) => event(at.moderator, {}, post({ id: `chan_${'A'.repeat(22)}` }, 'elsewhere')),
    ],
    'a post under an unknown revision': [
      /descriptor 7 is not available/,
      (at) => event(at.moderator, { descriptor_rev: 7 }, post(at, 'whenever')),
    ],
    'a post with neither body nor attachment': [
      /neither a body nor/,
      (at) => {
        const { body: _, ...empty } = post(at, '');
        return event(at.moderator, {}, empty);
      },
    ],
    'a descriptor that the owner did not sign': [
      /did not sign/,
      (at) => event(at.moderator, { descriptor_rev: 1 }, descriptor(at)),
    ],
    'a descriptor under another revision than its own': [
      /not its own/,
      (at) => event(at.owner, { descriptor_rev: 2 }, descriptor(at)),
    ],
    'a second revision 0': [
      /revision 0 belongs/,
      (at) => event(at.owner, {}, descriptor(at, { revision: 0, name: 'Another' })),
    ],
    'a descriptor of another host': [
      /channel_id|relay/,
      (at) =>
        event(at.owner, { descriptor_rev: 1 }, descriptor(at, { relay_id: `0x${'1'.repeat(40)}` })),
    ],
  };

  test.each(Object.entries(lies))('%s', async (_, [reason, invent]) => {
    const at = await setScene(relay);
    const told = { ...at, descriptor: (await at.bob.channels.get(at.id)).descriptor };
    const good = (scene: Scene) => event(scene.moderator, { sequence: 2 }, post(scene, 'good'));
    relay.lie('channel.read', (page) => inventing(() => invent(told), good)(page, at));
    const events = await at.bob.channels.sync(at.id);
    expect(events).toMatchObject([
      { kind: 'channel-post', post: { sequence: 2 } },
      { kind: 'channel-event-refused', sequence: 1, reason: expect.stringMatching(reason) },
    ]);
    expect(await postTexts(at.bob, at.id)).toEqual(['good']);
    expect(await at.bob.channels.get(at.id)).toMatchObject({
      descriptor: { revision: 0, name: 'News' },
      span: { position: 2 },
    });
  });

  test('06 §8.12, §10.1: after a descriptor, no event of a lower revision gives a lost right back', async () => {
    const at = await setScene(relay);
    await at.ann.channels.update(at.id, { moderators: null });
    await at.bob.channels.sync(at.id);
    const later = (sequence: number, descriptor_rev: number) => (scene: Scene) =>
      event(scene.moderator, { sequence, descriptor_rev }, post(scene, `by ${descriptor_rev}`));
    relay.lie('channel.read', (page) => inventing(later(2, 1), later(3, 0))(page, at));
    expect(await at.bob.channels.sync(at.id)).toMatchObject([
      {
        kind: 'channel-event-refused',
        sequence: 2,
        reason: expect.stringMatching(/may not write/),
      },
      {
        kind: 'channel-event-refused',
        sequence: 3,
        reason: expect.stringMatching(/may not write/),
      },
    ]);
    expect(await postTexts(at.bob, at.id)).toEqual([]);
  });

  test('06 §4: a second content of a stored revision is not adopted', async () => {
    const at = await setScene(relay);
    await news(at);
    await at.bob.channels.sync(at.id);
    const { descriptor: current } = await at.bob.channels.get(at.id);
    const { device_signature: _, ...rest } = current;
    const rival = (scene: Scene) =>
      event(scene.owner, { sequence: 4, descriptor_rev: 1 }, { ...rest, name: 'Rival' });
    relay.lie('channel.read', (page) => inventing(rival)(page, at));
    expect(await at.bob.channels.sync(at.id)).toMatchObject([{ kind: 'channel-event-refused' }]);
    expect((await at.bob.channels.get(at.id)).descriptor).toEqual(current);
  });

  test('06 §10.2: an event that the host should have refused changes nothing', async () => {
    const at = await setScene(relay);
    await news(at);
    await at.bob.channels.sync(at.id);
    const edit = (sequence: number, target: number, more: object) => (scene: Scene) =>
      event(
        scene.moderator,
        { sequence },
        {
          $type: type('channel.post.edit'),
          channel_id: scene.id,
          target_sequence: target,
          ...more,
        },
      );
    const nothingLeft = edit(4, 1, { body: null });
    const noPost = edit(5, 3, { body: { content_type: 'text/plain', text: 'a revision?' } });
    const toCome = edit(6, 9, { body: { content_type: 'text/plain', text: 'not there yet' } });
    const goneBefore = (scene: Scene) =>
      event(
        scene.moderator,
        { sequence: 7 },
        {
          $type: type('channel.post.delete'),
          channel_id: scene.id,
          target_sequence: 9,
        },
      );
    const nine = (scene: Scene) =>
      event(scene.moderator, { sequence: 9 }, post(scene, 'as it was written'));
    relay.lie('channel.read', (page) =>
      inventing(nothingLeft, noPost, toCome, goneBefore, nine)(page, at),
    );
    const told = await at.bob.channels.sync(at.id);
    expect(told.map(({ kind }) => kind)).toEqual(['channel-post', 'channel-gap']);
    expect((await at.bob.channels.get(at.id)).span?.position).toBe(9);
    expect(await postTexts(at.bob, at.id)).toEqual(['one', 'two', 'as it was written']);
  });

  test('06 §5.3: an event of an unknown type is consumed', async () => {
    const at = await setScene(relay);
    const future = (scene: Scene) =>
      event(scene.outsider, { descriptor_rev: 9 }, { $type: 'svc.channel.poll', asks: ['?'] });
    relay.lie('channel.read', (page) => inventing(future)(page, at));
    expect(await at.bob.channels.sync(at.id)).toEqual([]);
    expect((await at.bob.channels.get(at.id)).span?.position).toBe(1);
  });

  test('06 §7.4: events after the closing descriptor never count', async () => {
    const at = await setScene(relay);
    const { descriptor: current } = await at.bob.channels.get(at.id);
    const { device_signature: _, ...rest } = current;
    const closing = (scene: Scene) =>
      event(
        scene.owner,
        { sequence: 2, descriptor_rev: 1 },
        {
          ...rest,
          status: 'closed',
          revision: 1,
        },
      );
    const reopening = (scene: Scene) =>
      event(scene.owner, { sequence: 4, descriptor_rev: 2 }, { ...rest, revision: 2 });
    const at1 = (scene: Scene) => event(scene.moderator, {}, post(scene, 'before'));
    const at3 = (scene: Scene) =>
      event(scene.moderator, { sequence: 3, descriptor_rev: 1 }, post(scene, 'after'));
    relay.lie('channel.read', (page) => inventing(at1, closing, at3, reopening)(page, at));
    const events = await at.bob.channels.sync(at.id);
    expect(events.map(({ kind }) => kind)).toEqual(['channel-post', 'channel-changed']);
    expect(await postTexts(at.bob, at.id)).toEqual(['before']);
    expect((await at.bob.channels.get(at.id)).descriptor).toMatchObject({ status: 'closed' });
    relay.behave();
    expect(await at.bob.channels.sync(at.id)).toEqual([]);
    // The honest host, at which the channel is open, returns an older revision now.
    const failing = at.bob.channels.preview(at.link);
    await expect(failing).rejects.toMatchObject({ reason: 'channel_rollback' });
  });

  test('06 §8.11: a withheld event is a gap, and reading continues', async () => {
    const at = await setScene(relay);
    await news(at);
    relay.lie('channel.read', ({ events, ...page }) => ({ ...page, events: events.slice(1) }));
    expect(await at.bob.channels.sync(at.id)).toContainEqual({
      kind: 'channel-gap',
      channelId: at.id,
      from: 1,
      through: 1,
    });
    expect(await places(at.bob, at.id)).toEqual(['change 0', 'gap 1-1', 'post 2', 'change 3']);
  });
});

describe('06 §8.3: a descriptor is not adopted:', () => {
  const lies: Record<
    string,
    readonly [string, (answer: { descriptor: ChannelDescriptor }, at: Scene) => object]
  > = {
    'another channel': [
      'invalid_channel_descriptor',
      ({ descriptor, ...rest }) => ({
        ...rest,
        descriptor: { ...descriptor, channel_id: `chan_${'A'.repeat(22)}` },
      }),
    ],
    'an unsigned name': [
      'invalid_channel_descriptor',
      ({ descriptor, ...rest }) => ({ ...rest, descriptor: { ...descriptor, name: 'Olds' } }),
    ],
    'another account’s certificate': [
      'invalid_channel_descriptor',
      (answer, { outsider }) => ({ ...answer, signer_certificate: outsider.certificate }),
    ],
    'a second content of the revision': [
      'channel_conflict',
      ({ descriptor: { device_signature: _, ...rest }, ...answer }, { owner }) => ({
        ...answer,
        descriptor: signAsDevice(network, { ...rest, name: 'Rival' }, owner.signer),
      }),
    ],
  };

  test.each(Object.entries(lies))('%s', async (_, [reason, lie]) => {
    const at = await setScene(relay);
    relay.lie('channel.resolve', (answer) => lie(answer, at));
    const failing = at.bob.channels.preview(at.link);
    await expect(failing).rejects.toMatchObject({ reason });
    expect((await at.bob.channels.get(at.id)).descriptor.name).toBe('News');
    if (reason === 'channel_conflict') return;
    const [stranger, store] = await person(relay);
    await expect(stranger.channels.follow(at.link)).rejects.toMatchObject({ reason });
    expect(store.changes.filter((key) => key.startsWith('channel'))).toEqual([]);
  });

  test('an older revision than the known one is refused, also after unfollowing', async () => {
    const at = await setScene(relay);
    const old = relay.honest.get('channel.resolve');
    await news(at);
    await at.bob.channels.sync(at.id);
    relay.lie('channel.resolve', () => old);
    const rollback = { reason: 'channel_rollback' };
    await expect(at.bob.channels.preview(at.link)).rejects.toMatchObject(rollback);
    await at.bob.channels.unfollow(at.id);
    await expect(at.bob.channels.follow(at.link)).rejects.toMatchObject(rollback);
    await at.bob.channels.get(at.id);
    await isFollowedAgain(at);
  });

  async function isFollowedAgain(at: Scene): Promise<void> {
    relay.behave();
    await at.bob.channels.follow(at.link);
    await isCaughtUp(relay, at);
  }

  test('a relay without the capability is not used as a host', async () => {
    const at = await setScene(relay);
    const elsewhere = { channelId: at.id, relayId: `0x${'12'.repeat(20)}` };
    const failing = at.bob.channels.preview(elsewhere);
    await expect(failing).rejects.toMatchObject({ code: 'no_relay' });
  });
});

describe('06 §10.1: descriptors of earlier revisions', () => {
  const ofContent = ({ events, ...page }: ChannelPage) => ({
    ...page,
    events: events.filter(({ payload }) => payload.$type !== type('channel.descriptor')),
  });

  test('are requested by exact revision, once, and move no position back', async () => {
    const at = await setScene(relay);
    await at.carl.channels.follow(at.link);
    await at.carl.channels.send(at.id, { text: 'as a moderator' });
    await at.ann.channels.update(at.id, { moderators: null });
    await at.ann.channels.send(at.id, { text: 'without him' });
    const [reader] = await person(relay);
    relay.lie('channel.read', ofContent);
    relay.asked.clear();
    await reader.channels.follow(at.link, { from: 'creation' });
    // The current revision, and the one in which Carl had the right.
    expect(relay.asked.get('channel.resolve')).toBe(2);
    expect(await postTexts(reader, at.id)).toEqual(['as a moderator', 'without him']);
    expect((await reader.channels.get(at.id)).descriptor.revision).toBe(1);
    await reader.channels.unfollow(at.id);
    relay.asked.clear();
    await reader.channels.follow(at.link, { from: 'creation' });
    expect(relay.asked.get('channel.resolve')).toBe(1);
    expect(await postTexts(reader, at.id)).toEqual(['as a moderator', 'without him']);
  });

  test('are used if the page has one that does not verify', async () => {
    const at = await setScene(relay);
    await at.ann.channels.update(at.id, { name: 'Olds' });
    await at.ann.channels.send(at.id, { text: 'under revision 1' });
    relay.lie('channel.read', ({ events: [revision, ...rest], ...page }) => ({
      ...page,
      events: [{ ...revision, payload: { ...revision.payload, name: 'Altered' } }, ...rest],
    }));
    const events = await at.bob.channels.sync(at.id);
    expect(events.map(({ kind }) => kind)).toEqual(['channel-post', 'channel-event-refused']);
    expect(await postTexts(at.bob, at.id)).toEqual(['under revision 1']);
  });

  test('if the answer is lost, the page is read by the next sync', async () => {
    const at = await setScene(relay);
    const retry = { attempts: 1, base: 1, cap: 1 };
    const reader = await relay.world.person({ prefer: 'http', retry });
    await reader.channels.follow(at.link);
    await news(at);
    await at.ann.channels.send(at.id, { text: 'three' });
    const before = await reader.channels.get(at.id);
    relay.lie('channel.read', ofContent);
    relay.overHttp.set('channel.resolve', (response) => response.destroy());
    const failing = reader.channels.sync(at.id);
    await expect(failing).rejects.toMatchObject({ code: 'relay_unreachable' });
    expect(await reader.channels.get(at.id)).toEqual(before);
    relay.overHttp.clear();
    await reader.channels.sync(at.id);
    expect(await postTexts(reader, at.id)).toEqual(['one', 'two', 'three']);
  });
});

describe('06 §7.3, §10.2: older pages', () => {
  /** Bob follows from the latest page on, which changes older posts; returns the older page too. */
  async function withOldPage(
    relay: LyingRelay,
    floor = 2,
  ): Promise<Scene & { readonly old: ChannelPage }> {
    const at = await setScene(relay);
    await at.ann.channels.send(at.id, { text: 'deleted later' });
    await at.ann.channels.send(at.id, { text: 'edited later' });
    await at.ann.channels.preview(at.link);
    const old = relay.honest.get('channel.read') as ChannelPage;
    await at.ann.channels.edit(at.id, 2, { text: 'edited once' });
    await at.ann.channels.edit(at.id, 2, { text: 'edited twice' });
    await at.ann.channels.delete(at.id, 1);
    await at.bob.channels.unfollow(at.id);
    relay.lie('channel.read', ({ events, ...page }) => ({
      ...page,
      events: events.filter(({ sequence }: { sequence: number }) => sequence > floor),
      has_more: true,
    }));
    await at.bob.channels.follow(at.link);
    relay.behave();
    return { ...at, old };
  }

  test('edits read before their post are applied to it', async () => {
    const at = await withOldPage(relay);
    expect(await postTexts(at.bob, at.id)).toEqual([]);
    expect((await at.bob.channels.get(at.id)).span).toEqual({ first: 3, position: 5 });
    expect(await at.bob.channels.readOlder(at.id)).toBe(false);
    expect(await places(at.bob, at.id)).toEqual([
      ...['change 0', 'gap 1-1', 'post 2', 'deletion 5'],
    ]);
    expect(await at.bob.channels.listPosts(at.id)).toMatchObject([
      { content: { body: { text: 'edited twice' } }, edited: { sequence: 4 } },
    ]);
    expect((await at.bob.channels.get(at.id)).span).toEqual({ first: 0, position: 5 });
  });

  test('a post whose deletion was read is not stored', async () => {
    const at = await withOldPage(relay);
    relay.lie('channel.read', () => at.old);
    await at.bob.channels.readOlder(at.id);
    expect(await postTexts(at.bob, at.id)).toEqual(['edited twice']);
  });

  test('a closing descriptor among older events removes all later entries', async () => {
    const at = await withOldPage(relay);
    await at.ann.channels.send(at.id, { text: 'after the end' });
    await at.bob.channels.sync(at.id);
    const { descriptor: current } = await at.bob.channels.get(at.id);
    const { device_signature: _, ...rest } = current;
    const closed = { ...rest, status: 'closed', revision: 1 };
    const closing = () => event(at.owner, { sequence: 2, descriptor_rev: 1 }, closed);
    relay.lie('channel.read', (page) => inventing(closing)(page, at));
    await at.bob.channels.readOlder(at.id);
    expect(await places(at.bob, at.id)).toEqual(['gap 0-1', 'change 2']);
    expect((await at.bob.channels.get(at.id)).descriptor.status).toBe('closed');
  });

  test('06 §7.4: edits after the closing descriptor do not change earlier posts', async () => {
    const at = await withOldPage(relay, 3);
    const { descriptor: current } = await at.bob.channels.get(at.id);
    const { device_signature: _, ...rest } = current;
    const closed = { ...rest, status: 'closed', revision: 1 };
    const closing = () => event(at.owner, { sequence: 3, descriptor_rev: 1 }, closed);
    relay.lie('channel.read', (page) => ({ ...inventing(closing)(page, at), has_more: true }));
    await at.bob.channels.readOlder(at.id);
    relay.lie('channel.read', () => at.old);
    await at.bob.channels.readOlder(at.id);
    expect(await postTexts(at.bob, at.id)).toEqual(['edited later']);
  });
});
