/** The life of a channel, told by its owner, a moderator and readers, through a real relay. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isClientError } from '../../src/index.ts';
import { World } from '../support/world.ts';
import { postTexts } from './support.ts';

let world: World;
beforeAll(async () => {
  world = await World.start({ host: { channels: true } });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error: unknown) => (isClientError(error) ? error.code : String(error)),
  );

test('06 §10: created, followed, posted in, edited, deleted', async () => {
  const [ann, bob, carl] = [await world.person(), await world.person(), await world.person()];
  const facts = { name: 'News', description: 'of the day', moderators: [bob.id] };
  const channel = await ann.channels.create(facts);
  const { id, link } = channel;
  expect(channel).toMatchObject({ standing: 'followed', role: 'owner', descriptor: facts });
  expect(channel.span).toEqual({ first: 0, position: 0 });
  const { sequence: first } = await ann.channels.post(id, { text: 'one' });
  expect(await carl.channels.preview(link)).toMatchObject({ name: 'News', revision: 0 });
  expect(await carl.channels.follow(link)).toMatchObject({ role: 'reader' });
  expect(await bob.channels.follow(link)).toMatchObject({ role: 'moderator' });
  const { sequence: second } = await bob.channels.post(id, { text: 'two' });
  await bob.channels.edit(id, first, { text: 'one, corrected' });

  const told = await carl.sync();
  // The first is what following read; it was told to whoever synchronizes next.
  const kinds = told.map(({ kind }) => kind);
  expect(kinds).toEqual(['channel-post', 'channel-post', 'channel-edited']);
  expect(await postTexts(carl, id)).toEqual(['one, corrected', 'two']);
  const [edited] = await carl.channels.posts(id);
  expect(edited).toMatchObject({ from: ann.id, edited: { by: bob.id } });

  await ann.channels.delete(id, second, { reason: 'a mistake' });
  expect(await carl.sync()).toEqual([
    { kind: 'channel-deleted', channel_id: id, sequence: second, by: ann.id, reason: 'a mistake' },
  ]);
  for (const reader of [ann, bob, carl]) {
    await reader.sync();
    expect(await postTexts(reader, id)).toEqual(['one, corrected']);
  }
  await carl.channels.report(id, first, { reason: 'too short' });
  expect(await codeOf(carl.channels.post(id, { text: 'no' }))).toBe('not_permitted');
  expect(await codeOf(bob.channels.update(id, { name: 'Mine' }))).toBe('not_permitted');
});
