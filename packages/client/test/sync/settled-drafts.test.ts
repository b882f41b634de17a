/** Drafts with a name: each is posted or withdrawn, once. */
import { expect, test } from 'vitest';
import type { Account } from '../../src/index.ts';
import { club } from '../groups/support.ts';
import { relayWithClients } from '../support/relay-with-clients.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });

const kinds = {
  person: {
    place: async (ann: Account) => ann.id,
    post: (ann: Account, id: string, draftId: string) =>
      ann.messages.post(id, { text: draftId, draftId }),
    listed: (ann: Account, id: string) => ann.messages.list({ with: id }),
  },
  group: {
    place: async (ann: Account) => await club(ann),
    post: (ann: Account, id: string, draftId: string) =>
      ann.groups.post(id, { text: draftId, draftId }),
    listed: async (ann: Account, id: string) => [
      ...(await ann.groups.listMessages(id)),
      ...(await ann.groups.listWritten(id)),
    ],
  },
  channel: {
    place: async (ann: Account) => (await ann.channels.create({ name: 'News' })).id,
    post: (ann: Account, id: string, draftId: string) =>
      ann.channels.post(id, { text: draftId, draftId }),
    listed: async (ann: Account, id: string) => [
      ...(await ann.channels.listPosts(id)),
      ...(await ann.channels.listWritten(id)),
    ],
  },
} as const;

test.each(Object.entries(kinds))(
  '%s: a draft is stored once, and not after it was withdrawn',
  async (_, { place, post, listed }) => {
    const ann = await world.person();
    const id = await place(ann);
    const texts = async () => (await listed(ann, id)).flatMap(({ body }) => body?.text ?? []);
    await post(ann, id, 'posted');
    await expect(post(ann, id, 'posted')).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await ann.conversations.withdrawDraft('posted')).toBe(false);
    // Also if the program that withdrew it ended before it knew that.
    for (const _again of [1, 2]) {
      expect(await ann.conversations.withdrawDraft('withdrawn')).toBe(true);
    }
    await expect(post(ann, id, 'withdrawn')).rejects.toMatchObject({ code: 'invalid_input' });
    await post(ann, id, 'after');
    expect(await texts()).toEqual(['posted', 'after']);
  },
);

test.each(Object.entries(kinds))(
  '%s: of a post and a withdrawal at the same time, one succeeds',
  async (_, { place, post, listed }) => {
    const ann = await world.person();
    const id = await place(ann);
    for (const draftId of ['a', 'b', 'c']) {
      const [posted, isWithdrawn] = await Promise.all([
        post(ann, id, draftId).then(
          () => true,
          () => false,
        ),
        ann.conversations.withdrawDraft(draftId),
      ]);
      expect(isWithdrawn).toBe(!posted);
      const texts = (await listed(ann, id)).map(({ body }) => body?.text);
      expect(texts.includes(draftId)).toBe(posted);
    }
  },
);

test('a post that is refused leaves its draft, which can be posted or withdrawn', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const draft = { text: 'hello', draftId: 'refused' };
  await expect(ann.messages.post(bob.id, draft)).rejects.toMatchObject({ code: 'not_a_contact' });
  await ann.messages.post(ann.id, draft);
  expect(await ann.conversations.withdrawDraft('refused')).toBe(false);
});

test('a draft ID has 1 to 100 characters', async () => {
  const ann = await world.person();
  for (const draftId of ['', 'a'.repeat(101)]) {
    const posted = ann.messages.post(ann.id, { text: 'hello', draftId });
    await expect(posted).rejects.toMatchObject({ code: 'invalid_input' });
    const withdrawn = ann.conversations.withdrawDraft(draftId);
    await expect(withdrawn).rejects.toMatchObject({ code: 'invalid_input' });
  }
  for (const draftId of ['a', 'a'.repeat(100)]) {
    await ann.messages.post(ann.id, { text: 'hello', draftId });
  }
});
