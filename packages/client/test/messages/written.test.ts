/** What this device wrote and the timeline does not show: listed in the order of writing, with its status. */
import { expect, test } from 'vitest';
import type { Account } from '../../src/index.ts';
import { club, groupTexts } from '../groups/support.ts';
import { OfflineProgram, refusedOnce } from '../support/offline-program.ts';
import { befriend, relayWithClients } from '../support/relay-with-clients.ts';
import { lostAnswer } from '../support/steered-transport.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });

const kinds = {
  group: {
    method: 'group.message.send',
    place: async (ann: Account) => await club(ann),
    post: (ann: Account, groupId: string, text: string) => ann.groups.post(groupId, { text }),
    cancel: (ann: Account, groupId: string, messageId: string) =>
      ann.groups.cancel({ groupId, messageId }),
    settled: (ann: Account, groupId: string, messageId: string) =>
      ann.groups.settled({ groupId, messageId }),
    listed: (ann: Account, id: string) => ann.groups.listMessages(id),
    written: (ann: Account, id: string) => ann.groups.listWritten(id),
    sync: (ann: Account, id: string) => ann.groups.sync(id),
  },
  channel: {
    method: 'channel.post',
    place: async (ann: Account) => (await ann.channels.create({ name: 'News' })).id,
    post: (ann: Account, channelId: string, text: string) => ann.channels.post(channelId, { text }),
    cancel: (ann: Account, channelId: string, messageId: string) =>
      ann.channels.cancel({ channelId, messageId }),
    settled: (ann: Account, channelId: string, messageId: string) =>
      ann.channels.settled({ channelId, messageId }),
    listed: (ann: Account, id: string) => ann.channels.listPosts(id),
    written: (ann: Account, id: string) => ann.channels.listWritten(id),
    sync: (ann: Account, id: string) => ann.channels.sync(id),
  },
} as const;

type Listed = readonly { readonly status?: string; readonly body?: { readonly text: string } }[];
const brief = (rows: Listed) => rows.map(({ status, body }) => [status, body?.text]);

test.each(Object.entries(kinds))(
  '%s: what waits is listed in the order of writing, here and after a restart, until it is sent',
  async (kind, { place, post, cancel, listed, written }) => {
    const program = await OfflineProgram.start(world);
    const id = await place(program.account);
    program.offline();
    await program.again();
    const posted = [];
    for (const text of ['one', 'two', 'three']) posted.push(await post(program.account, id, text));
    const ann = await program.again();
    expect(brief(await written(ann, id))).toEqual([
      ['waiting', 'one'],
      ['waiting', 'two'],
      ['waiting', 'three'],
    ]);
    expect(await written(ann, id)).toMatchObject(
      posted.map(({ messageId }) => ({
        messageId,
        from: ann.id,
        createdAt: expect.any(Number),
      })),
    );
    expect(await ann.conversations.get({ kind: kind as 'group', id })).toMatchObject({
      waiting: 3,
    });
    await cancel(ann, id, posted[1]!.messageId);
    expect(brief(await written(ann, id))).toEqual([
      ['waiting', 'one'],
      ['waiting', 'three'],
    ]);
    program.online();
    await ann.sync();
    expect(await written(ann, id)).toEqual([]);
    expect((await listed(ann, id)).map(({ body }) => body?.text)).toEqual(['one', 'three']);
  },
);

test.each(Object.entries(kinds))(
  '%s: a message is in one list only, from writing until its timeline is read',
  async (_, { method, place, post, settled, listed, written, sync }) => {
    const program = await OfflineProgram.start(world);
    const ann = program.account;
    const id = await place(ann);
    program.rule([method], lostAnswer);
    const { messageId } = await post(ann, id, 'one');
    await expect(settled(ann, id, messageId)).rejects.toMatchObject({ kept: true });
    expect(brief(await written(ann, id))).toEqual([['sending', 'one']]);
    program.online();
    const { sequence } = await settled(ann, id, messageId);
    expect(await written(ann, id)).toMatchObject([
      { messageId, status: 'target_accepted', sequence, body: { text: 'one' } },
    ]);
    expect(await listed(ann, id)).toEqual([]);
    await sync(ann, id);
    expect(await written(ann, id)).toEqual([]);
    expect(await listed(ann, id)).toMatchObject([{ messageId, sequence }]);
  },
);

test.each(Object.entries(kinds))(
  '%s: a message that was rejected is listed at its place, with its content, until it is cancelled',
  async (_, { method, place, post, settled, cancel, listed, written, sync }) => {
    const program = await OfflineProgram.start(world);
    const id = await place(program.account);
    program.rule([method], refusedOnce(403, 'forbidden'));
    const bad = await post(program.account, id, 'bad');
    await settled(program.account, id, bad.messageId);
    program.offline();
    // Without a connection, nothing is sealed.
    const ann = await program.again();
    await post(ann, id, 'good');
    expect(await written(ann, id)).toMatchObject([
      { messageId: bad.messageId, status: 'rejected', error: { code: 'forbidden' } },
      { status: 'waiting' },
    ]);
    expect(brief(await written(ann, id))).toEqual([
      ['rejected', 'bad'],
      ['waiting', 'good'],
    ]);
    await ann.sync().catch(() => undefined);
    expect(await cancel(ann, id, bad.messageId)).toMatchObject({ status: 'cancelled' });
    expect(await cancel(ann, id, bad.messageId)).toMatchObject({ status: 'cancelled' });
    expect(await settled(ann, id, bad.messageId)).toMatchObject({ status: 'cancelled' });
    expect(brief(await written(ann, id))).toEqual([['waiting', 'good']]);
    program.online();
    const events = await sync(ann, id);
    expect(events).toContainEqual(
      expect.objectContaining({ messageId: bad.messageId, status: 'cancelled' }),
    );
    expect((await listed(ann, id)).map(({ body }) => body?.text)).toEqual(['good']);
  },
);

test('05 §14.3: a waiting answer names what it answers, and a nickname is no message', async () => {
  const program = await OfflineProgram.start(world);
  const ann = program.account;
  const id = await club(ann);
  const { sequence } = await ann.groups.send(id, { text: 'who comes?' });
  await ann.sync();
  program.offline();
  await ann.groups.setNickname(id, 'Rook').catch(() => undefined);
  await ann.groups.post(id, { text: 'me', replyTo: sequence });
  expect(await ann.groups.listWritten(id)).toMatchObject([
    { groupId: id, replyTo: sequence, body: { text: 'me' } },
  ]);
  expect(await groupTexts(ann, id)).toEqual(['who comes?']);
});

test('a direct message that was rejected is listed until it is cancelled, and is cancelled for good', async () => {
  const program = await OfflineProgram.start(world);
  const ann = program.account;
  const bob = await world.person();
  await befriend(ann, bob);
  program.offline();
  const bad = await ann.messages.post(bob.id, { text: 'bad' });
  program.online();
  program.rule(['message.send'], refusedOnce(400, 'bad_request'));
  await ann.messages.settled(bad);
  expect(brief(await ann.messages.list({ with: bob.id }))).toEqual([['rejected', 'bad']]);
  await ann.sync();
  for (let repeat = 0; repeat < 2; repeat += 1) {
    expect(await ann.messages.cancel(bad)).toMatchObject({ status: 'cancelled' });
  }
  expect(await ann.messages.list({ with: bob.id })).toEqual([]);
  expect(await ann.sync()).toMatchObject([
    { kind: 'message-status', messageId: bad.messageId, status: 'cancelled' },
  ]);
  const good = await ann.messages.send(bob.id, { text: 'good' });
  await expect(ann.messages.cancel(good)).rejects.toMatchObject({ code: 'already_sent' });
});
