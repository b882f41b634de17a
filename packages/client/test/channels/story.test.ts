/** The life of a channel with an owner, a moderator and readers, on a real relay. */

import { type ContentReference, hashReferenceUri } from '@posthouse/protocol';
import { expect, test } from 'vitest';
import { isClientError, MemoryStore, type Store } from '../../src/index.ts';
import { anotherDevice } from '../groups/support.ts';
import { relayWithClients } from '../support/relay-with-clients.ts';
import { places, postTexts } from './support.ts';

const retention = 86_400;

const photo: ContentReference = {
  uri: 'https://files.example/photo.png',
  hash: `sha256:${'A'.repeat(43)}`,
  content_type: 'image/png',
  size: 3,
};
const lost = `sha256:${'E'.repeat(43)}`;

const world = relayWithClients({
  host: { channels: true },
  limits: { channelTimelineRetention: retention },
});

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => (isClientError(error) ? error.code : String(error)),
  );

test('06 §10: create, follow, post, edit, delete', async () => {
  const [ann, bob, carl] = [await world.person(), await world.person(), await world.person()];
  const facts = { name: 'News', description: 'of the day', moderators: [bob.id] };
  const channel = await ann.channels.create(facts);
  const { id, link } = channel;
  expect(channel).toMatchObject({ followState: 'followed', role: 'owner', descriptor: facts });
  expect(channel.span).toEqual({ first: 0, position: 0 });
  const { sequence: first } = await ann.channels.send(id, { text: 'one' });
  expect(await carl.channels.preview(link)).toMatchObject({
    descriptor: { name: 'News', revision: 0 },
  });
  expect(await carl.channels.follow(link)).toMatchObject({ role: 'reader' });
  expect(await bob.channels.follow(link)).toMatchObject({ role: 'moderator' });
  const { sequence: second } = await bob.channels.send(id, { text: 'two' });
  await bob.channels.edit(id, first, { text: 'one, corrected' });

  const told = await carl.sync();
  // The first two come from `follow`; the next sync returns them.
  const kinds = told.map(({ kind }) => kind);
  expect(kinds).toEqual(['channel-followed', 'channel-post', 'channel-post', 'channel-edited']);
  expect(await postTexts(carl, id)).toEqual(['one, corrected', 'two']);
  const [edited] = await carl.channels.listPosts(id);
  expect(edited).toMatchObject({ from: ann.id, edited: { by: bob.id } });

  await ann.channels.delete(id, second, { reason: 'a mistake' });
  expect(await carl.sync()).toEqual([
    { kind: 'channel-deleted', channelId: id, sequence: second, by: ann.id, reason: 'a mistake' },
  ]);
  for (const reader of [ann, bob, carl]) {
    await reader.sync();
    expect(await postTexts(reader, id)).toEqual(['one, corrected']);
  }
  await carl.channels.report(id, first, { reason: 'too short' });
  expect(await codeOf(carl.channels.send(id, { text: 'no' }))).toBe('not_permitted');
  expect(await codeOf(bob.channels.update(id, { name: 'Mine' }))).toBe('not_permitted');
});

test('06 §10: two devices each, a moderator, a relay restart, and closing', async () => {
  const [annsStore, bobsStore] = [new MemoryStore(), new MemoryStore()];
  const [phoneStore, tabletStore] = [new MemoryStore(), new MemoryStore()];
  let ann = await world.person({ store: annsStore });
  let bob = await world.person({ store: bobsStore });
  let phone = await world.person({ store: phoneStore });
  let tablet = await anotherDevice(world, phone, { store: tabletStore });
  const { id, link } = await ann.channels.create({ name: 'News' });
  for (const text of ['one', 'two', 'three']) await ann.channels.send(id, { text });
  const begin = { from: 'creation' } as const;
  expect(await phone.channels.follow(link, begin)).toMatchObject({ span: { first: 0 } });
  // Followed channels are not shared with other devices.
  expect(await tablet.channels.list()).toEqual([]);
  await tablet.channels.follow(link);
  await ann.channels.update(id, { description: 'of the day', moderators: [bob.id] });
  await bob.channels.follow(link);
  await bob.channels.delete(id, 1);

  await world.stopRelay();
  await world.startRelay();
  const again = async (store: Store) => (await world.client({ store })).account();
  [ann, bob, phone, tablet] = [
    await again(annsStore),
    await again(bobsStore),
    await again(phoneStore),
    await again(tabletStore),
  ];
  await ann.channels.edit(id, 2, { body: null, attachments: [photo] });
  await ann.channels.send(id, {
    text: `![a](${hashReferenceUri(photo.hash)}) ![b](${hashReferenceUri(lost)})`,
    contentType: 'text/markdown',
    attachments: [photo, { ...photo, hash: lost }],
  });
  await ann.channels.edit(id, 7, { attachments: null, text: 'plain now' });
  await bob.channels.edit(id, 3, { text: 'three, by Bob' });
  await ann.channels.update(id, { moderators: null, description: null });
  expect(await codeOf(bob.channels.send(id, { text: 'still?' }))).toBe('relay_refused');
  await ann.channels.close(id);
  expect(await codeOf(ann.channels.send(id, { text: 'too late' }))).toBe('not_permitted');
  expect(await codeOf(ann.channels.update(id, { name: 'Olds' }))).toBe('not_permitted');
  for (const device of [phone, tablet, ann, bob]) {
    await device.sync();
    const posts = await device.channels.listPosts(id);
    expect(posts.map(({ sequence, content }) => [sequence, content])).toEqual([
      [2, { attachments: [photo] }],
      [3, { body: { content_type: 'text/plain', text: 'three, by Bob' } }],
      [7, { body: { content_type: 'text/plain', text: 'plain now' } }],
    ]);
    const { descriptor } = await device.channels.get(id);
    expect(descriptor).toMatchObject({ status: 'closed', revision: 3, name: 'News' });
    expect(Object.keys(descriptor)).not.toContain('moderators');
    expect(await device.sync()).toEqual([]);
  }
  const { entries } = await phone.channels.preview(link, { after: -1 });
  expect(await places(phone, id)).toEqual([
    ...['change 0', 'post 2', 'post 3', 'change 4', 'deletion 5'],
    ...['post 7', 'change 10', 'change 11'],
  ]);
  // A new reader finds the deletion instead of the deleted post.
  expect(entries.map(({ kind }) => kind)).toContain('gap');
  await phone.channels.unfollow(id);
  expect(await phone.channels.list()).toEqual([]);
  expect(await places(phone, id)).toEqual([]);
  expect(await ann.channels.list()).toMatchObject([{ id, role: 'owner' }]);
});

test('06 §6.2: invalid content is not sent', async () => {
  const ann = await world.person();
  const { id } = await ann.channels.create({ name: 'News' });
  const { sequence } = await ann.channels.send(id, { text: 'one', attachments: [photo] });
  await ann.channels.sync(id);
  const markdown = { contentType: 'text/markdown', text: `![](${hashReferenceUri(photo.hash)})` };
  await ann.channels.edit(id, sequence, markdown);
  await ann.channels.sync(id);
  for (const draft of [
    {},
    { text: ' ' },
    { text: 'x'.repeat(65_536) },
    { attachments: [photo, photo] },
    { ...markdown, attachments: [] },
  ]) {
    expect(await codeOf(ann.channels.send(id, draft))).toBe('invalid_input');
  }
  for (const patch of [{}, { text: null, attachments: [] }, { attachments: null }]) {
    expect(await codeOf(ann.channels.edit(id, sequence, patch))).toBe('invalid_input');
  }
  expect(await codeOf(ann.channels.edit(id, 0, { text: 'x' }))).toBe('invalid_input');
  expect(await codeOf(ann.channels.delete(id, sequence, { reason: ' ' }))).toBe('invalid_input');
  expect(await codeOf(ann.channels.report(id, sequence, { reason: '' }))).toBe('invalid_input');
  expect(await codeOf(ann.channels.create({ name: ' ' }))).toBe('invalid_input');
  expect(await codeOf(ann.channels.update(id, { moderators: [ann.id] }))).toBe('invalid_input');
  expect((await ann.status()).outbox).toBe(0);
  const unknown = `chan_${'A'.repeat(22)}`;
  expect(await codeOf(ann.channels.send(unknown, { text: 'x' }))).toBe('unknown_channel');
  expect(await codeOf(ann.channels.sync(unknown))).toBe('unknown_channel');
  expect(await codeOf(ann.channels.follow('svc-channel:AAAA'))).toBe('verification_failed');
  const { relayId } = await ann.channels.get(id);
  expect(await codeOf(ann.channels.follow({ channelId: unknown, relayId }))).toBe('relay_refused');
  expect(await codeOf(ann.channels.edit(id, 99, { text: 'nothing there' }))).toBe('relay_refused');
});

test('06 §7.5: posts removed by retention are a gap for new readers and stay stored for earlier ones', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const { id, link } = await ann.channels.create({ name: 'News' });
  await ann.channels.send(id, { text: 'one' });
  await ann.channels.edit(id, 1, { text: 'one, edited' });
  await bob.channels.follow(link);
  world.clock.advance(retention + 60);
  await ann.channels.send(id, { text: 'two' });
  const carl = await world.person();
  const kinds = async () => (await carl.channels.preview(link)).entries.map(({ kind }) => kind);
  await expect.poll(kinds).not.toContain('deletion');
  await expect.poll(kinds).toEqual(['change', 'gap', 'post']);
  await carl.channels.follow(link);
  expect(await places(carl, id)).toEqual(['change 0', 'gap 1-2', 'post 3']);
  await bob.sync();
  expect(await postTexts(bob, id)).toEqual(['one, edited', 'two']);
  expect(await codeOf(ann.channels.edit(id, 1, { text: 'gone' }))).toBe('relay_refused');
});
