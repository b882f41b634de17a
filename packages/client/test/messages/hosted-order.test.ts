/** Messages to groups and channels written while the host cannot be reached: as direct ones. */
import { expect, test } from 'vitest';
import type { Account, AccountEvent } from '../../src/index.ts';
import { postTexts } from '../channels/support.ts';
import { anotherDevice, club, exchange, groupTexts } from '../groups/support.ts';
import { OfflineProgram, refused, refusedOnce } from '../support/offline-program.ts';
import { relayWithClients } from '../support/relay-with-clients.ts';
import { lostAnswer, lostRequest } from '../support/steered-transport.ts';

const world = relayWithClients({ host: { groups: true, channels: true } });
const eight = ['0', '1', '2', '3', '4', '5', '6', '7'];

/** What a group and a channel have in common. */
const kinds = {
  group: {
    method: 'group.message.send',
    place: async (ann: Account) => await club(ann),
    post: (ann: Account, groupId: string, text: string) => ann.groups.post(groupId, { text }),
    send: (ann: Account, groupId: string, text: string) => ann.groups.send(groupId, { text }),
    settled: (ann: Account, groupId: string, messageId: string) =>
      ann.groups.settled({ groupId, messageId }),
    cancel: (ann: Account, groupId: string, messageId: string) =>
      ann.groups.cancel({ groupId, messageId }),
    texts: groupTexts,
  },
  channel: {
    method: 'channel.post',
    place: async (ann: Account) => (await ann.channels.create({ name: 'News' })).id,
    post: (ann: Account, channelId: string, text: string) => ann.channels.post(channelId, { text }),
    send: (ann: Account, channelId: string, text: string) => ann.channels.send(channelId, { text }),
    settled: (ann: Account, channelId: string, messageId: string) =>
      ann.channels.settled({ channelId, messageId }),
    cancel: (ann: Account, channelId: string, messageId: string) =>
      ann.channels.cancel({ channelId, messageId }),
    texts: postTexts,
  },
} as const;

test.each(Object.entries(kinds))(
  '%s: what is posted right after a send comes after it',
  async (_, { place, post, send, texts }) => {
    const { account: ann } = await OfflineProgram.start(world);
    const id = await place(ann);
    await Promise.all([send(ann, id, 'one'), post(ann, id, 'two'), send(ann, id, 'three')]);
    await ann.sync();
    expect(await texts(ann, id)).toEqual(['one', 'two', 'three']);
  },
);

test.each(Object.entries(kinds))(
  '%s: a message whose host does not answer delays nothing that arrives while following',
  async (_, { method, place, post, send, settled }) => {
    const program = await OfflineProgram.start(world);
    const ann = program.account;
    const [stuckIn, other] = [await place(ann), await place(ann)];
    const eve = await otherDevice(ann);
    const held = Promise.withResolvers<void>();
    program.rule([method], async (answer) => {
      await held.promise;
      return await answer();
    });
    const { messageId } = await post(ann, stuckIn, 'stuck');
    await eve.sync();
    await send(eve, other, 'first');
    const arrived: (string | undefined)[] = [];
    const { signal } = new AbortController();
    for await (const event of ann.follow({ signal, pollInterval: 50 })) {
      const text = textOf(event);
      if (text === undefined) continue;
      arrived.push(text);
      if (arrived.length === 2) break;
      await send(eve, other, 'second');
    }
    expect(arrived).toEqual(['first', 'second']);
    held.resolve();
    expect(await settled(ann, stuckIn, messageId)).toMatchObject({ status: 'target_accepted' });
  },
);

test.each(['group.create', 'group.application.submit'])(
  '%s: a host that does not answer it delays nothing that arrives while following',
  async (method) => {
    const program = await OfflineProgram.start(world);
    const ann = program.account;
    const other = await club(ann);
    const eve = await otherDevice(ann);
    const bob = await world.person();
    const { text: invite } = await bob.groups.invite(await club(bob));
    const held = Promise.withResolvers<void>();
    program.rule([method], async (answer) => {
      await held.promise;
      return await answer();
    });
    const asking =
      method === 'group.create' ? ann.groups.create({ name: 'stuck' }) : ann.groups.join(invite);
    await expect.poll(() => program.steered.bodies(method).length).toBe(1);
    const arrived: (string | undefined)[] = [];
    await eve.groups.send(other, { text: 'first' });
    for await (const event of ann.follow({ pollInterval: 50 })) {
      if (event.kind !== 'group-message') continue;
      arrived.push(event.message.body?.text);
      if (arrived.length === 2) break;
      await eve.groups.send(other, { text: 'second' });
    }
    expect(arrived).toEqual(['first', 'second']);
    held.resolve();
    await asking;
    const memberships = (await ann.groups.list()).map(({ membership }) => membership);
    expect(memberships.toSorted()).toEqual([
      method === 'group.create' ? 'member' : 'applied',
      'member',
    ]);
  },
);

/** Another device of an account, which knows its groups and channels. */
async function otherDevice(ann: Account): Promise<Account> {
  const device = await anotherDevice(world, ann);
  await exchange(device, ann);
  for (const { link } of await ann.channels.list()) await device.channels.follow(link);
  return device;
}

function textOf(event: AccountEvent): string | undefined {
  if (event.kind === 'group-message') return event.message.body?.text;
  return event.kind === 'channel-post' ? event.post.body?.text : undefined;
}

function statusesOf(events: readonly AccountEvent[], messageId: string): string[] {
  return events.flatMap((event) =>
    event.kind === 'message-status' && event.messageId === messageId ? [event.status] : [],
  );
}

test.each(Object.entries(kinds))(
  '%s: messages written offline arrive in order, after a lost answer and a restart',
  async (_, { method, place, post, send, texts }) => {
    const program = await OfflineProgram.start(world);
    const id = await place(program.account);
    program.rule([method], lostAnswer);
    const lost = send(program.account, id, '0');
    await expect(lost).rejects.toMatchObject({ code: 'relay_unreachable', kept: true });
    program.offline();
    const restarted = await program.again();
    const posted = await Promise.all(eight.slice(1).map((text) => post(restarted, id, text)));
    expect(posted.map(({ status }) => status)).toEqual(eight.slice(1).map(() => 'waiting'));
    expect((await restarted.status()).outbox).toBe(8);
    program.online();
    const again = await program.again();
    await again.sync();
    expect(await texts(again, id)).toEqual(eight);
    expect((await again.status()).outbox).toBe(0);
  },
);

test.each(Object.entries(kinds))(
  '%s: each status is told once, and settled finds the answer again',
  async (kind, { place, post, settled }) => {
    const program = await OfflineProgram.start(world);
    const id = await place(program.account);
    program.offline();
    const { messageId } = await post(program.account, id, 'told');
    program.online();
    const again = await program.again();
    const events = await again.sync();
    expect(statusesOf(events, messageId)).toEqual(['waiting', 'sending', 'target_accepted']);
    expect(events).toContainEqual(
      expect.objectContaining({ kind: 'message-status', conversation: { kind, id } }),
    );
    expect(await settled(again, id, messageId)).toMatchObject({
      messageId,
      status: 'target_accepted',
      sequence: expect.any(Number),
    });
    await expect(settled(again, id, 'msg_x')).rejects.toMatchObject({ code: 'invalid_input' });
    expect(statusesOf(await again.sync(), messageId)).toEqual([]);
  },
);

test.each(Object.entries(kinds))(
  '%s: a waiting message can be cancelled, one that was sent cannot',
  async (_, { method, place, post, settled, cancel, texts }) => {
    const program = await OfflineProgram.start(world);
    const ann = program.account;
    const id = await place(ann);
    program.offline();
    const one = await post(ann, id, 'one');
    const two = await post(ann, id, 'two');
    for (let repeat = 0; repeat < 2; repeat += 1) {
      expect(await cancel(ann, id, two.messageId)).toMatchObject({ status: 'cancelled' });
    }
    expect(await settled(ann, id, two.messageId)).toMatchObject({ status: 'cancelled' });
    await expect(cancel(ann, id, 'msg_x')).rejects.toMatchObject({ code: 'invalid_input' });
    program.online();
    program.rule([method], lostRequest);
    await expect(settled(ann, id, one.messageId)).rejects.toMatchObject({ kept: true });
    await expect(cancel(ann, id, one.messageId)).rejects.toMatchObject({ code: 'already_sent' });
    program.online();
    expect(await settled(ann, id, one.messageId)).toMatchObject({ status: 'target_accepted' });
    await expect(cancel(ann, id, one.messageId)).rejects.toMatchObject({ code: 'already_sent' });
    await ann.sync();
    expect(await texts(ann, id)).toEqual(['one']);
  },
);

test.each(
  Object.entries(kinds).flatMap(([name, kind]) =>
    ['invalid_state', 'method_not_found'].map((code) => ({ name, code, kind })),
  ),
)('$name: a refusal with $code, which says nothing of the message, ends none', async (each) => {
  const { method, place, post, texts } = each.kind;
  const program = await OfflineProgram.start(world);
  const id = await place(program.account);
  program.offline();
  for (const text of ['one', 'two']) await post(program.account, id, text);
  program.online();
  program.rule([method], refusedOnce(400, each.code));
  const ann = await program.again();
  expect(await ann.sync()).toContainEqual(
    expect.objectContaining({ kind: `${each.name}-failed`, error: expect.anything() }),
  );
  expect((await ann.status()).outbox).toBe(2);
  await ann.sync();
  expect(await texts(ann, id)).toEqual(['one', 'two']);
});

test.each(
  Object.entries(kinds).flatMap(([name, kind]) =>
    ['invalid_state', 'method_not_found'].map((code) => ({ name, code, kind })),
  ),
)('$name: what was sent and is refused with $code for a week is rejected', async (each) => {
  const { method, place, post, settled } = each.kind;
  const program = await OfflineProgram.start(world);
  const id = await place(program.account);
  program.offline();
  const posted = [];
  for (const text of ['one', 'two']) posted.push(await post(program.account, id, text));
  program.online();
  program.rule([method], refused(each.code));
  const ann = await program.again();
  const [one, two] = posted.map(({ messageId }) => messageId);
  await ann.sync();
  world.clock.advance(7 * 86_400 - 60);
  await ann.sync();
  expect((await ann.status()).outbox).toBe(2);
  world.clock.advance(120);
  await ann.sync();
  expect(await settled(ann, id, one!)).toMatchObject({
    status: 'rejected',
    error: { code: each.code },
  });
  program.rule([method], (send) => send());
  expect(await settled(ann, id, two!)).toMatchObject({ status: 'target_accepted' });
});

test.each(
  Object.entries(kinds).flatMap(([name, kind]) =>
    [true, false].map((isRead) => ({ name, isRead, ...kind })),
  ),
)(
  '$name: what was accepted, with its answer lost, is not rejected if it is refused for a week (read before: $isRead)',
  async ({ isRead, method, place, post, settled, texts }) => {
    const program = await OfflineProgram.start(world);
    const id = await place(program.account);
    program.rule([method], lostAnswer);
    const { messageId } = await post(program.account, id, 'once');
    await expect(settled(program.account, id, messageId)).rejects.toMatchObject({ kept: true });
    program.rule([method], refused('invalid_state'));
    if (isRead) await (await program.again()).sync();
    world.clock.advance(7 * 86_400 + 60);
    const ann = await program.again();
    expect(await settled(ann, id, messageId)).toMatchObject({ status: 'target_accepted' });
    await ann.sync();
    expect(await texts(ann, id)).toEqual(['once']);
    expect((await ann.status()).outbox).toBe(0);
  },
);

test.each(Object.entries(kinds))(
  '%s: a message that is refused for good is told, and the next one is sent',
  async (_, { method, place, post, settled, texts }) => {
    const program = await OfflineProgram.start(world);
    const ann = program.account;
    const id = await place(ann);
    program.offline();
    const [bad, good] = [await post(ann, id, 'bad'), await post(ann, id, 'good')];
    program.online();
    program.rule([method], refusedOnce(403, 'forbidden'));
    const restarted = await program.again();
    const events = await restarted.sync();
    expect(statusesOf(events, bad.messageId)).toEqual(['waiting', 'sending', 'rejected']);
    expect(await settled(restarted, id, bad.messageId)).toMatchObject({
      status: 'rejected',
      error: { code: 'forbidden' },
    });
    expect(await settled(restarted, id, good.messageId)).toMatchObject({
      status: 'target_accepted',
    });
    expect(await texts(restarted, id)).toEqual(['good']);
  },
);
