/** The life of a group, told by three people with two devices each, through a real relay. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Account } from '../../src/index.ts';
import { World } from '../support/world.ts';

let world: World;
beforeAll(async () => {
  world = await World.start({ host: { groups: true } });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
});

const never = new AbortController().signal;

async function texts(account: Account, groupId: string): Promise<unknown[]> {
  const rows = await account.groups.messages(groupId);
  return rows.map((row) => (row.content?.body as { text: string } | undefined)?.text);
}

test('create, invite, join, talk', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const { id } = await ann.groups.create({ name: 'Club' });
  expect(await ann.groups.get(id)).toMatchObject({ standing: 'member', hasKey: true });
  const { text } = await ann.groups.invite(id);
  expect(await bob.groups.preview(text)).toMatchObject({ name: 'Club', member_count: 1 });
  await bob.groups.join(text);
  await bob.sync();
  await ann.groups.approve(id, [bob.id]);
  expect(await bob.sync()).toMatchObject([{ kind: 'group-joined', group_id: id }]);
  await bob.groups.send(id, { text: 'hello' });
  expect((await ann.sync()).at(-1)).toMatchObject({
    kind: 'group-message',
    message: { from: bob.id },
  });
  await ann.groups.send(id, { text: 'welcome', replyTo: 2 });
  await bob.sync({ signal: never });
  expect(await texts(bob, id)).toEqual(['hello', 'welcome']);
  expect(await texts(ann, id)).toEqual(['hello']);
});
