/** Drafts with a name: each is posted or withdrawn, once. */
import { expect, test } from 'vitest';
import { type Account, MemoryStore, type StoreWriter } from '../../src/index.ts';
import { club } from '../groups/support.ts';
import { relayWithClients } from '../support/relay-with-clients.ts';

/** A store whose next writes can be told of, and fail. */
class FaultyStore extends MemoryStore {
  /** Called with each write before it is committed. */
  beforeCommit: () => void = () => undefined;
  /** Called before each write begins. */
  beforeWrite: () => void = () => undefined;

  override async write<T>(work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    this.beforeWrite();
    return await super.write(async (tx) => {
      const result = await work(tx);
      this.beforeCommit();
      return result;
    });
  }
}

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
  '%s: a withdrawal while a post is under way decides if its write is the first, else the post does',
  async (_, { place, post, listed }) => {
    const store = new FaultyStore();
    const ann = await world.person({ store });
    const id = await place(ann);
    for (const isPostFirst of [true, false]) {
      const draftId = `${isPostFirst}`;
      let withdrawal: Promise<boolean> | undefined;
      const withdraw = () => {
        store.beforeWrite = store.beforeCommit = () => undefined;
        withdrawal = ann.conversations.withdrawDraft(draftId);
      };
      if (isPostFirst) store.beforeCommit = withdraw;
      else store.beforeWrite = withdraw;
      const posted = await post(ann, id, draftId).then(
        () => true,
        () => false,
      );
      expect(posted).toBe(isPostFirst);
      expect(await withdrawal).toBe(!isPostFirst);
      const texts = (await listed(ann, id)).map(({ body }) => body?.text);
      expect(texts.includes(draftId)).toBe(isPostFirst);
    }
  },
);

test.each(Object.entries(kinds))(
  '%s: a post stores its message and the outcome of its draft in one transaction',
  async (_, { place, post, listed }) => {
    const store = new FaultyStore();
    const ann = await world.person({ store });
    const id = await place(ann);
    const texts = async () => (await listed(ann, id)).flatMap(({ body }) => body?.text ?? []);
    let writes = 0;
    store.beforeCommit = () => {
      writes += 1;
      throw new Error('the disk is full');
    };
    await expect(post(ann, id, 'not stored')).rejects.toThrow('the disk is full');
    store.beforeCommit = () => undefined;
    expect(writes).toBe(1);
    expect(await texts()).toEqual([]);
    expect(await ann.conversations.withdrawDraft('not stored')).toBe(true);
    let commits = 0;
    store.beforeCommit = () => {
      commits += 1;
      if (commits > 1) throw new Error('one write is enough');
    };
    const posted = post(ann, id, 'stored');
    await posted.finally(() => {
      store.beforeCommit = () => undefined;
    });
    expect(await ann.conversations.withdrawDraft('stored')).toBe(false);
    expect(await texts()).toEqual(['stored']);
  },
);

test('a post that is refused leaves its draft, which can be posted or withdrawn', async () => {
  const [ann, bob] = [await world.person(), await world.person()];
  const draft = { text: 'hello', draftId: 'refused' };
  await expect(ann.messages.post(bob.id, draft)).rejects.toMatchObject({ code: 'not_a_contact' });
  await ann.messages.post(ann.id, draft);
  expect(await ann.conversations.withdrawDraft('refused')).toBe(false);
});

test.each(Object.entries(kinds))(
  '%s: a draft ID has 1 to 100 characters, and is checked before anything else',
  async (_, { post }) => {
    const ann = await world.person();
    const wrong = ['', 'a'.repeat(101), null, 5, {}, '\ud800'] as unknown[];
    for (const draftId of wrong as string[]) {
      const message = expect.stringContaining('draftId');
      const invalid = { code: 'invalid_input', message };
      await expect(post(ann, 'no such place', draftId)).rejects.toMatchObject(invalid);
      await expect(ann.conversations.withdrawDraft(draftId)).rejects.toMatchObject(invalid);
    }
    const none = ann.conversations.withdrawDraft(undefined as unknown as string);
    await expect(none).rejects.toMatchObject({ code: 'invalid_input' });
    for (const draftId of ['a', 'a'.repeat(100)]) {
      await ann.messages.post(ann.id, { text: 'hello', draftId });
    }
  },
);

test('the outcomes of the newest 10,000 drafts are known, and of no older one', async () => {
  const ann = await world.person();
  for (const draftId of ['oldest', 'second'])
    await ann.messages.post(ann.id, { text: 'hello', draftId });
  const withdraw = (draftId: string) => ann.conversations.withdrawDraft(draftId);
  const arePosted = async () => [!(await withdraw('second')), !(await withdraw('oldest'))];
  for (let known = 2; known < 9_999; known += 1) await withdraw(`draft ${known}`);
  expect(await arePosted()).toEqual([true, true]);
  await withdraw('the 10,000th');
  expect(await arePosted()).toEqual([true, true]);
  await withdraw('the 10,001st');
  expect(await arePosted()).toEqual([true, false]);
});
