/** The number in the title counts every conversation, of which the app lists the first ones. */
import type { Conversation } from '@posthouse/client';
import type { WorkerAccount } from '@posthouse/client/web';
import { expect, test } from 'vitest';
import { UnreadTotal } from '../src/state/unread-total.ts';

const of = (id: string, unread: number): Conversation => ({
  ...{ kind: 'person', id, unread, waiting: 0, place: id },
});

/** Conversations of which some are listed, and how often the others were read. */
function someOf(all: Conversation[]) {
  const asked: string[] = [];
  const conversations = {
    async list({ before }: { readonly before: Conversation }) {
      asked.push(before.id);
      return all.slice(all.findIndex(({ id }) => id === before.id) + 1);
    },
  } as unknown as WorkerAccount['conversations'];
  return { asked, conversations };
}

test('unread messages of conversations that are not listed count, and are read again when those change', async () => {
  const all = [of('a', 1), of('b', 2), of('c', 4), of('d', 8)];
  const { asked, conversations } = someOf(all);
  const total = new UnreadTotal();
  const count = () => total.count(conversations, all.slice(0, 2), true);
  expect([await count(), await count()]).toEqual([15, 15]);
  all[0] = of('a', 3);
  expect(await count()).toBe(17);
  // In another order, the same ones are listed.
  all.splice(0, 2, of('b', 2), of('a', 4));
  expect(await count()).toBe(18);
  expect(asked).toEqual(['b']);
  // A message came in one that was not listed.
  all.splice(0, 3, of('c', 5), of('b', 2), of('a', 4));
  expect(await count()).toBe(19);
  expect(asked).toEqual(['b', 'b']);
  all[3] = of('d', 0);
  total.forget();
  expect(await count()).toBe(11);
});

test('if all are listed, nothing more is read', async () => {
  const { asked, conversations } = someOf([]);
  const total = new UnreadTotal();
  expect(await total.count(conversations, [of('a', 1), of('b', 2)], false)).toBe(3);
  expect(await total.count(conversations, [], true)).toBe(0);
  expect(asked).toEqual([]);
});
