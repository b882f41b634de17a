import { afterEach, beforeEach, expect, test } from 'vitest';
import { Person } from '../support/people.ts';
import { World } from '../support/world.ts';
import { TestChannel, text } from './support.ts';

let world: World;
beforeEach(async () => {
  world = await World.start();
});
afterEach(() => world[Symbol.asyncDispose]());

test('smoke', async () => {
  const ann = await Person.atHome(world, 'ann');
  const ben = await Person.atHome(world, 'ben');
  const channel = await TestChannel.found(world, ann, { moderators: [ben.account] });
  const one = await channel.post();
  const two = await channel.post({ body: text('x') }, { by: ben });
  await channel.edit(one, { body: text('y') });
  await channel.edit(two, { extra: null, other: 1 });
  await channel.update({ name: 'New' });
  await channel.delete(two, { reason: 'no' });
  await channel.close();
  expect(await channel.sequences()).toEqual([0, 1, 3, 5, 6, 7]);
  expect(await channel.resolve()).toMatchObject({ descriptor: channel.descriptor });
  expect(await channel.resolve(0)).toMatchObject({ descriptor: { revision: 0 } });
});
