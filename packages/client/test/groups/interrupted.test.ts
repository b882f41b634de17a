/** Groups when programs end, answers are lost and other devices write meanwhile. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Account, type AccountEvent, MemoryStore } from '../../src/index.ts';
import { SqliteStore } from '../../src/node.ts';
import { isConnected } from '../support/connection-events.ts';
import { LyingRelay } from '../support/lying-relay.ts';
import { block, RestartableClient, unreachable } from '../support/restartable-client.ts';
import { admit, club, groupTexts } from './support.ts';

let relay: LyingRelay;
let folder: string;
beforeAll(async () => {
  relay = await LyingRelay.start({ host: { groups: true } });
  folder = mkdtempSync(join(tmpdir(), 'posthouse-groups-'));
});
afterEach(() => relay.behave());
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

test.each(['memory', 'a SQLite file'])(
  '05 §5.5: with %s, a client that restarts at each step continues from verified state',
  async (kind) => {
    const open = (name: string) =>
      kind === 'memory' ? new MemoryStore() : SqliteStore.open(join(folder, `${name}.sqlite`));
    const [ann, bob] = [
      await RestartableClient.begin(relay, open('ann')),
      await RestartableClient.begin(relay, open('bob')),
    ];
    const { id } = await ann.account.groups.create({ name: 'Club' });
    const { text } = await (await ann.again()).groups.invite(id);
    await bob.account.groups.join(text);
    await (await ann.again()).groups.approve(id, [bob.account.id]);
    expect(await (await bob.again()).sync()).toContainEqual({ kind: 'group-joined', groupId: id });
    await (await bob.again()).groups.send(id, { text: 'one' });
    await (await ann.again()).groups.rotate(id);
    await (await bob.again()).groups.send(id, { text: 'two' });
    relay.asked.clear();
    const state = (await (await ann.again()).groups.get(id)).state;
    expect(state?.members.size).toBe(2);
    await ann.account.sync();
    await bob.again();
    await bob.account.sync();
    expect(await groupTexts(ann.account, id)).toEqual(['one', 'two']);
    expect((await bob.account.groups.get(id)).state).toEqual(
      (await ann.account.groups.get(id)).state,
    );
    // Each read its new events in one page, without the history.
    expect(relay.asked.get('group.sync')).toBe(2);
    await Promise.all(
      [ann, bob].map(async (each) => expect(await each.account.sync()).toEqual([])),
    );
  },
);

describe('lost answers', () => {
  test('a creation that was lost, or whose answer was lost, is completed by the next sync', async () => {
    for (const lose of [() => block(relay, 'group.create'), () => relay.lose('group.create', 1)]) {
      const ann = await RestartableClient.begin(relay);
      lose();
      await expect(ann.account.groups.create({ name: 'Club' })).rejects.toMatchObject(unreachable);
      relay.behave();
      const [group] = await ann.account.groups.list();
      expect(group).toMatchObject({ membership: 'creating' });
      await (await ann.again()).sync();
      expect(await ann.account.groups.list()).toMatchObject([
        { id: group?.id, membership: 'member', hasKey: true },
      ]);
    }
  });

  test('an application is repeated unchanged; after admission it is removed', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account);
    const { text } = await ann.account.groups.invite(id);
    block(relay, 'group.application.submit');
    await expect(bob.account.groups.join(text)).rejects.toMatchObject(unreachable);
    relay.behave();
    await (await bob.again()).sync();
    await ann.account.groups.approve(id, [bob.account.id]);
    await (await bob.again()).sync();
    expect(await bob.account.groups.get(id)).toMatchObject({ membership: 'member', hasKey: true });
  });

  test('05 §13.28: a message is sent again unchanged and arrives once', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    relay.lose('group.message.send', 1);
    const sending = bob.account.groups.send(id, { text: 'lost and found' });
    await expect(sending).rejects.toMatchObject(unreachable);
    await (await bob.again()).sync();
    block(relay, 'group.message.send');
    const blocked = bob.account.groups.send(id, { text: 'kept' });
    await expect(blocked).rejects.toMatchObject(unreachable);
    relay.behave();
    // The sent message is read too, so that the timeline has it.
    const told = await (await bob.again()).sync();
    expect(told.filter(({ kind }) => kind === 'group-message')).toHaveLength(1);
    expect(await groupTexts(bob.account, id)).toEqual(['lost and found', 'kept']);
    await ann.account.sync();
    expect(await groupTexts(ann.account, id)).toEqual(['lost and found', 'kept']);
    expect(await bob.account.sync()).toEqual([]);
  });

  test('05 §14.1: a pending message whose epoch ended is sealed again', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    block(relay, 'group.message.send');
    await expect(bob.account.groups.send(id, { text: 'slow' })).rejects.toMatchObject(unreachable);
    relay.behave();
    await ann.account.groups.rotate(id);
    expect(await (await bob.again()).sync()).not.toContainEqual(
      expect.objectContaining({ kind: 'message-status', status: 'failed' }),
    );
    await ann.account.sync();
    expect(await groupTexts(ann.account, id)).toEqual(['slow']);
    const [message] = await ann.account.groups.listMessages(id);
    expect(message?.epoch).toBe((await ann.account.groups.get(id)).state?.epoch);
  });

  test('a message accepted before the group closed is not told as failed', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    relay.lose('group.message.send', 1);
    const sending = bob.account.groups.send(id, { text: 'in time' });
    await expect(sending).rejects.toMatchObject(unreachable);
    await ann.account.groups.close(id);
    const told = await (await bob.again()).groups.sync(id);
    expect(told).not.toContainEqual(expect.objectContaining({ status: 'failed' }));
    expect(await groupTexts(bob.account, id)).toEqual(['in time']);
  });

  test('a message still pending when the group closes is told as failed', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    block(relay, 'group.message.send');
    await expect(bob.account.groups.send(id, { text: 'late' })).rejects.toMatchObject(unreachable);
    relay.behave();
    await ann.account.groups.close(id);
    expect(await (await bob.again()).sync()).toContainEqual(
      expect.objectContaining({
        kind: 'message-status',
        conversation: { kind: 'group', id },
        status: 'failed',
      }),
    );
    expect(await bob.account.sync()).toEqual([]);
  });

  test('05 §13.21: the key of a recovery request is stored before the request is sent', async () => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    relay.lose('group.member.recovery.submit', 1);
    const asking = bob.account.groups.requestRecovery(id);
    await expect(asking).rejects.toMatchObject(unreachable);
    await ann.account.groups.approveRecovery(id, [bob.account.id]);
    await (await bob.again()).sync();
    await bob.account.groups.send(id, { text: 'with the unconfirmed key' });
    await ann.account.sync();
    expect(await groupTexts(ann.account, id)).toEqual(['with the unconfirmed key']);
  });

  test.each([
    ['group.update', (ann: Account, id: string) => ann.groups.update(id, { name: 'Society' })],
    [
      'group.member.remove',
      (ann: Account, id: string, bob: Account) => ann.groups.remove(id, [bob.id]),
    ],
    [
      'group.owner.transfer',
      (ann: Account, id: string, bob: Account) => ann.groups.transfer(id, bob.id),
    ],
    ['group.member.leave', (_: Account, id: string, bob: Account) => bob.groups.leave(id)],
    ['group.close', (ann: Account, id: string) => ann.groups.close(id)],
  ])(
    '05 §5.3: %s that took effect without an answer is found in the chain',
    async (method, act) => {
      const [ann, bob] = [
        await RestartableClient.begin(relay),
        await RestartableClient.begin(relay),
      ];
      const id = await club(ann.account, [bob.account]);
      relay.lose(method, 1);
      await act(ann.account, id, bob.account);
      expect(relay.asked.get(method)).toBeGreaterThan(0);
    },
  );
});

describe('02 §7: repeated calls after a lost answer', () => {
  /** Twice, with the same relay: the first answer does not arrive. */
  const patient = { retry: { attempts: 2, base: 1, cap: 1 } };

  test('an invitation is created and revoked once', async () => {
    const ann = await RestartableClient.begin(relay, undefined, patient);
    const id = await club(ann.account);
    relay.lose('group.invite.create', 1);
    const { invite } = await ann.account.groups.invite(id);
    expect(await ann.account.groups.listInvites(id)).toMatchObject([{ invite }]);
    relay.lose('group.invite.revoke', 1);
    await ann.account.groups.revokeInvite(id, invite.invite_id);
    expect(await ann.account.groups.listInvites(id)).toEqual([]);
  });

  test('applications and key recovery requests are rejected once', async () => {
    const ann = await RestartableClient.begin(relay, undefined, patient);
    const [bob, carl] = [
      await RestartableClient.begin(relay),
      await RestartableClient.begin(relay),
    ];
    const id = await club(ann.account, [bob.account]);
    await carl.account.groups.join((await ann.account.groups.invite(id)).text);
    relay.lose('group.application.reject', 1);
    await ann.account.groups.reject(id, [carl.account.id]);
    expect(await ann.account.groups.listApplications(id)).toEqual([]);
    await bob.account.groups.requestRecovery(id);
    relay.lose('group.member.recovery.reject', 1);
    await ann.account.groups.rejectRecovery(id, [bob.account.id]);
    expect(await ann.account.groups.listRecoveries(id)).toEqual([]);
    for (const reject of [
      () => ann.account.groups.reject(id, [carl.account.id]),
      () => ann.account.groups.rejectRecovery(id, [bob.account.id]),
    ]) {
      await expect(reject()).rejects.toMatchObject({ code: 'invalid_input' });
    }
  });
});

test('05 §5.3: concurrent changes of two devices are each signed on their own head', async () => {
  const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
  const id = await club(ann.account, [bob.account]);
  await ann.account.groups.setRole(id, { account: bob.account.id, role: 'administrator' });
  const [carl, dora] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
  const { text } = await ann.account.groups.invite(id);
  await carl.account.groups.join(text);
  await dora.account.groups.join(text);
  await Promise.all([
    ann.account.groups.approve(id, [carl.account.id]),
    bob.account.groups.approve(id, [dora.account.id]),
    ann.account.groups.update(id, { name: 'Society' }),
  ]);
  await ann.account.sync();
  const { state } = await ann.account.groups.get(id);
  expect(state).toMatchObject({ name: 'Society' });
  expect(state?.members.size).toBe(4);
});

describe('05 §13.26: a rotation interrupted', () => {
  const steps: Record<string, () => void> = {
    'before the preparation': () => block(relay, 'group.secret.rotation.prepare'),
    'with the answer to the preparation lost': () => relay.lose('group.secret.rotation.prepare', 1),
    'before the commit': () => block(relay, 'group.secret.rotation.commit'),
    'with the answer to the commit lost': () => {
      relay.lose('group.secret.rotation.commit', 1);
      relay.when.set('group.secret.rotation.commit', () => block(relay, 'group.sync'));
    },
  };

  test.each(Object.entries(steps))('%s resumes with the same secret', async (_, interrupt) => {
    const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
    const id = await club(ann.account, [bob.account]);
    const before = (await ann.account.groups.get(id)).state;
    interrupt();
    await expect(ann.account.groups.rotate(id, { newOwnerKey: true })).rejects.toMatchObject(
      unreachable,
    );
    relay.behave();
    await (await ann.again()).groups.rotate(id);
    const after = (await ann.account.groups.get(id)).state;
    expect(after?.client_secret_commitment).not.toBe(before?.client_secret_commitment);
    // One rotation, with the owner's new key.
    expect(after?.epoch).toBe((before?.epoch ?? 0) + 1);
    expect(after?.members.get(ann.account.id)).not.toEqual(before?.members.get(ann.account.id));
    await ann.account.groups.send(id, { text: 'fresh' });
    await (await bob.again()).sync();
    expect(await groupTexts(bob.account, id)).toEqual(['fresh']);
  });
});

describe('05 §17.1: follow', () => {
  test('subscribes groups, reads them on hints, and again after a broken connection', async () => {
    const ann = await (await relay.world.client()).setUp();
    const bob = await (await relay.world.client()).setUp();
    const id = await club(ann, [bob]);
    const stop = new AbortController();
    const seen: string[] = [];
    const told = Promise.withResolvers<void>();
    const cut = Promise.withResolvers<void>();
    const done = Promise.withResolvers<void>();
    const following = (async () => {
      for await (const event of bob.follow({ signal: stop.signal })) {
        const text = textOf(event);
        if (text !== undefined) seen.push(text);
        if (isConnected(event)) told.resolve();
        if (text === 'one') cut.resolve();
        if (text === 'three') done.resolve();
      }
    })();
    await told.promise;
    await ann.groups.send(id, { text: 'one' });
    await cut.promise;
    relay.cut();
    await ann.groups.send(id, { text: 'two' });
    await ann.groups.send(id, { text: 'three' });
    await done.promise;
    expect(seen).toEqual(['one', 'two', 'three']);
    stop.abort();
    await following;
  });

  test('also follows a group joined meanwhile, and notifies of changed lists', async () => {
    const ann = await (await relay.world.client()).setUp();
    const bob = await (await relay.world.client()).setUp();
    const id = await club(ann);
    const { text } = await ann.groups.invite(id);
    const stop = new AbortController();
    const [applied, heard] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const anns = (async () => {
      for await (const event of ann.follow({ signal: stop.signal })) {
        if (isConnected(event)) await bob.groups.join(text);
        if (event.kind !== 'group-applications') continue;
        await ann.groups.approve(id, [bob.id]).catch(() => undefined);
        applied.resolve();
      }
    })();
    await applied.promise;
    const bobs = (async () => {
      for await (const event of bob.follow({ signal: stop.signal })) {
        if (event.kind === 'group-joined') await ann.groups.send(id, { text: 'welcome' });
        if (textOf(event) === 'welcome') heard.resolve();
      }
    })();
    await heard.promise;
    stop.abort();
    await Promise.all([anns, bobs]);
  });
});

function textOf(event: AccountEvent): string | undefined {
  if (event.kind !== 'group-message') return undefined;
  return event.message.body?.text;
}

test('05 §17.1: a failing group does not delay other groups, also on the home relay', async () => {
  const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
  const ids = [await club(ann.account, [bob.account]), await club(ann.account, [bob.account])];
  for (const id of ids) await ann.account.groups.send(id, { text: 'read' });
  // The first group, also if its page is requested again.
  let left = 2;
  const fail = (response: ServerResponse) => {
    left -= 1;
    if (left === 0) relay.overHttp.delete('group.sync');
    response.writeHead(500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ code: 'internal_error', message: 'a fault' }));
  };
  relay.overHttp.set('group.sync', fail);
  const told = await bob.account.sync();
  expect(told.map(({ kind }) => kind).sort()).toEqual(['group-failed', 'group-message']);
  await bob.account.sync();
  for (const id of ids) expect(await groupTexts(bob.account, id)).toEqual(['read']);
});

test('05 §17.2: two programs with one store apply each event once, and each hears of it once', async () => {
  const store = new MemoryStore();
  const one = await (await relay.world.client({ store })).setUp();
  const other = await (await relay.world.client({ store })).account();
  const ann = await (await relay.world.client()).setUp();
  const id = await club(ann, [one]);
  for (const text of ['one', 'two', 'three']) await ann.groups.send(id, { text });
  await ann.groups.update(id, { name: 'Society' });
  const told = async (account: Account) =>
    (await Promise.all([account.groups.sync(id), account.groups.sync(id)])).flat();
  for (const events of await Promise.all([told(one), told(other)])) {
    expect(events.filter(({ kind }) => kind === 'group-message')).toHaveLength(3);
    expect(events.filter(({ kind }) => kind === 'group-message-rejected')).toEqual([]);
  }
  expect(await groupTexts(other, id)).toEqual(['one', 'two', 'three']);
});

test('05 §13.4: a long history is read page by page, over any number of syncs', async () => {
  const [ann, bob] = [await RestartableClient.begin(relay), await RestartableClient.begin(relay)];
  const id = await club(ann.account);
  for (let index = 0; index < 120; index += 1) {
    await ann.account.groups.send(id, { text: `message ${index}` });
  }
  relay.asked.clear();
  await ann.account.sync();
  expect(relay.asked.get('group.sync')).toBe(2);
  await ann.account.groups.update(id, { name: 'Society' });
  expect(await groupTexts(ann.account, id)).toHaveLength(120);
  await admit(ann.account, id, [bob.account]);
  expect((await bob.account.groups.get(id)).state?.name).toBe('Society');
});
