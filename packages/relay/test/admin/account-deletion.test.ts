/** `account delete`: what goes, what stays, and what the account can do afterwards. */
import type { ProgressState } from '@posthouse/protocol/progress';
import { beforeEach, expect, test } from 'vitest';
import { deleteAccount } from '../../src/admin/delete-account.ts';
import { readManaged } from '../../src/admin/inventory/managed.ts';
import { runVerb, type Verb, type VerbTools } from '../../src/admin/verb.ts';
import { findVerb } from '../../src/admin/verbs/index.ts';
import { blockAccount } from '../../src/blocks/index.ts';
import type { RelayConfig } from '../../src/config/index.ts';
import { endRecords } from '../../src/messages/index.ts';
import { allowAccount } from '../../src/registration/index.ts';
import type { Storage } from '../../src/storage/types.ts';
import type { Person } from '../fixtures/person.ts';
import { signIn, signInCode } from '../fixtures/sign-in.ts';
import { inProcessRelay } from '../support/in-process-relay.ts';

const relay = inProcessRelay();
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');

beforeEach(async () => {
  relay.registration.mode = 'list';
  await relay.context.storage.write('relay', (tx) =>
    tx.run("INSERT INTO relay_facts VALUES ('relay', ?)", relay.relayId),
  );
});

const remove = (person: Person = ann, long: Pick<VerbTools, 'progress' | 'signal'> = {}) => {
  const { clock, context } = relay;
  const options = { now: clock.now(), limits: context.limits, ...long };
  return deleteAccount(context.storage, person.account, options);
};

async function send(from: Person, to: Person): Promise<string> {
  const message = from.message(to, { authorization: to.grant(from), senders: ['phone'] });
  return await relay.codeOf('message.send', message, { session: from.session() });
}

/** Stores blobs of a person. */
async function storeBlobs(person: Person, count: number): Promise<void> {
  await relay.context.storage.write('test', async (tx) => {
    for (let at = 0; at < count; at += 1) {
      await tx.run(
        "INSERT INTO blobs (name, account, bytes, counted, keep_until, state) VALUES (?, ?, 1, 1, 9999999999, 'stored')",
        `${person.account} ${at}`,
        person.account,
      );
    }
  });
}

/** Comes again as a new account, by a right. */
async function comeAgain(): Promise<void> {
  relay.clock.advance(60);
  await relay.context.storage.write('registration', (tx) =>
    allowAccount(tx, { account: ann.account, allowedAt: 0 }, 10),
  );
  await relay.context.blocks.refresh();
  await ann.moveIn();
}

const ofAnn = (rows: Record<string, unknown>[]) =>
  rows.filter(({ account, sender }) => (account ?? sender) === ann.account);

test('what the account has here goes, and nothing of others', async () => {
  await ann.publishProfile();
  await ben.publishProfile();
  expect([await send(ben, ann), await send(ann, ben)]).toEqual(['ok', 'ok']);
  await storeBlobs(ann, 2);
  await storeBlobs(ben, 1);
  await signIn(relay, ann);
  await signIn(relay, ben);
  const before = await relay.dump();
  expect(await remove()).toEqual({ records: 2, blobs: 2 });
  await relay.runJob('messages.retention');
  for (const table of ['devices', 'device_states', 'profiles', 'staged_states', 'auth_sessions']) {
    const rows = await relay.rows(table);
    expect([table, ofAnn(rows), rows]).toEqual([
      ...[table, [], before[table]?.filter((row) => !ofAnn([row as never]).length)],
    ]);
  }
  for (const table of ['timeline_records', 'timeline_boxes']) {
    expect((await relay.rows(table)).map(({ account }) => account)).toEqual([
      ...[ben.account, ben.account],
    ]);
  }
  const now = relay.clock.now();
  const due = (await relay.rows('blobs')).filter(({ keep_until: until }) => Number(until) <= now);
  expect(due.map(({ account }) => account)).toEqual([ann.account, ann.account]);
  expect((await relay.rows('inactive_devices')).map(({ account }) => account)).toEqual([
    ...[ann.account, ann.account],
  ]);
});

test('a session that it opens while it is deleted, before its process knows, ends too', async () => {
  await send(ben, ann);
  await signIn(relay, ann);
  let writes = 0;
  relay.faults.beforeCommit = () => {
    writes += 1;
  };
  const { storage } = relay.context;
  const write = storage.write.bind(storage);
  const signingIn: Storage['write'] = async (...given) => {
    const result = await write(...given);
    // The brief block is stored, and this process has not read it.
    if (writes === 1) await signIn(relay, ann);
    return result;
  };
  storage.write = signingIn;
  await remove();
  storage.write = write;
  expect(await relay.rows('auth_sessions')).toEqual([]);
});

test('it is at home nowhere then: no sign-in, no message, no answer about it', async () => {
  await ann.publishProfile();
  await remove();
  await relay.context.blocks.refresh();
  expect(await signInCode(relay, ann)).toBe('forbidden');
  relay.clock.advance(60);
  expect(await signInCode(relay, ann)).toBe('route_not_found');
  const { account } = ann;
  const session = ben.session();
  expect(await relay.codeOf('profile.resolve', { account }, { session })).toBe('route_not_found');
  expect(await relay.codeOf('account.route.resolve', { account })).toBe('not_found');
});

test('03 §4.3: it comes again with a right of a new account only', async () => {
  await remove();
  relay.clock.advance(60);
  await expect(ann.moveIn()).rejects.toMatchObject({ code: 'target_not_local' });
  await comeAgain();
  expect(await signInCode(relay, ann)).toBe('ok');
  expect(await send(ben, ann)).toBe('ok');
});

test('04 §17.1: a sequence is not given twice; 03 §3.4, 07 §C6: nor is a revision of before accepted', async () => {
  await send(ben, ann);
  const [before] = ofAnn(await relay.rows('timeline_heads'));
  const state = await ann.state({ revision: 1 });
  const route = await ann.route({ revision: 1 });
  await remove();
  await relay.runJob('messages.retention');
  await comeAgain();
  await send(ben, ann);
  const [record] = ofAnn(await relay.rows('timeline_records'));
  expect(Number(record?.sequence)).toBeGreaterThan(Number(before?.head));
  await remove();
  relay.clock.advance(60);
  await relay.context.storage.write('registration', (tx) =>
    allowAccount(tx, { account: ann.account, allowedAt: 0 }, 10),
  );
  const session = ann.accountSession();
  expect(await relay.codeOf('device.state.publish', state, { session })).toBe('stale_state');
  await ann.publishState();
  expect(await relay.codeOf('account.route.publish', route, { session })).toBe('stale_state');
});

test('07 §B11: its route, found again at another relay, does not bring it back', async () => {
  const { route } = (await relay.rows('account_routes')).find(
    ({ account }) => account === ann.account,
  ) as { route: string };
  await remove();
  relay.routes = () => [JSON.parse(route)];
  const { account } = ann;
  expect(await relay.codeOf('account.route.resolve', { account })).toBe('not_found');
  const [tombstone] = ofAnn(await relay.rows('account_routes'));
  expect(tombstone).toMatchObject({ route: '', held_until: 0, publish_at: null });
});

test('03 §9: the route that it had may be published again by the account itself', async () => {
  const draft = await ann.route();
  await ann.publishRoute(draft);
  await remove();
  relay.clock.advance(60);
  await relay.context.storage.write('registration', (tx) =>
    allowAccount(tx, { account: ann.account, allowedAt: 0 }, 10),
  );
  await ann.publishState();
  await ann.publishRoute(draft);
  expect(await signInCode(relay, ann)).toBe('ok');
});

test('02 §2.2: an identical request about it is answered as before until its retention is over', async () => {
  const message = ben.message(ann, { authorization: ann.grant(ben) });
  const answer = await relay.call('message.send', message, { session: ben.session() });
  await remove();
  expect(await relay.call('message.send', message, { session: ben.session() })).toEqual(answer);
});

test('a timeline of several batches goes, and a repeat after an interruption ends it', async () => {
  await send(ben, ann);
  const columns = 'accepted_at, keep_until, envelope_id, certificate_id, bytes, visible_to';
  await relay.context.storage.write('test', (tx) =>
    tx.run(
      `WITH RECURSIVE added (at) AS (SELECT 1000 UNION ALL SELECT at + 1 FROM added WHERE at < 2100)
        INSERT INTO timeline_records (account, sequence, ${columns})
          SELECT account, at, ${columns} FROM timeline_records, added
            WHERE account = ? AND sequence < 1000`,
      ann.account,
    ),
  );
  let writes = 0;
  relay.faults.beforeCommit = () => {
    writes += 1;
    if (writes === 4) throw new Error('interrupted');
  };
  await expect(remove()).rejects.toThrow();
  relay.faults = {};
  await relay.restart();
  expect(ofAnn(await relay.rows('device_states'))).toHaveLength(1);
  // Its command may be stopped too.
  const stopped = new AbortController();
  const done: number[] = [];
  const progress = (state: ProgressState) => {
    done.push(state.done);
    stopped.abort(new Error('stopped'));
  };
  await expect(remove(ann, { progress, signal: stopped.signal })).rejects.toThrow('stopped');
  expect(done).toEqual([expect.any(Number)]);
  expect(ofAnn(await relay.rows('device_states'))).toHaveLength(1);
  // What was ended before stays ended: only the rest is counted.
  expect((await remove()).records).toBeLessThan(1_102);
  const now = relay.clock.now();
  const kept = ofAnn(await relay.rows('timeline_records')).filter(
    (row) => Number(row.keep_until) > now,
  );
  expect([kept, ofAnn(await relay.rows('device_states'))]).toEqual([[], []]);
});

test('the open groups and channels that it owns, administers or moderates are named, not others', async () => {
  const id = (prefix: string, count: number) =>
    `${prefix}_${String(count).padStart(4, '0')}${'a'.repeat(17)}A`;
  const { storage } = relay.context;
  await storage.write('test', async (tx) => {
    // More managers than one step reads.
    for (let count = 0; count < 700; count += 1) {
      await tx.run(
        `INSERT INTO groups (group_id, status, owner, name, description, member_capacity,
            invite_policy, commitment, chain_head, sequence, epoch, member_count, ban_count,
            access_ended, box_set, last_box_set)
          VALUES (?, ?, ?, ?, '', 5, '', '', '', 9, 1, 2, 0, 0, 0, 0)`,
        ...[id('grp', count), count === 3 ? 'closed' : 'active', ben.account, `Club %25 ${count}`],
      );
      const roles = new Map([
        [1, 'member'],
        [3, 'administrator'],
        [650, 'administrator'],
        [651, 'owner'],
      ]);
      const others = count === 651 ? [] : [[ben.account, 'owner']];
      const anns = roles.has(count) ? [[ann.account, roles.get(count)]] : [];
      for (const [account, role] of [...others, ...anns]) {
        await tx.run(
          "INSERT INTO group_members (group_id, account, role, member_key, since) VALUES (?, ?, ?, '', 1)",
          ...[id('grp', count), account ?? '', role ?? ''],
        );
      }
    }
    for (const [count, creator, moderators, status] of [
      [1, ben.account, [], 'active'],
      [2, ann.account, [], 'closed'],
      [3, ann.account, [], 'active'],
      [4, ben.account, [ann.account], 'active'],
    ] as const) {
      await tx.run(
        `INSERT INTO channels (channel_id, creator, moderators, status, revision, head, needed_until)
          VALUES (?, ?, ?, ?, 1, 4, 0)`,
        ...[id('chan', count), creator, JSON.stringify(moderators), status],
      );
    }
  });
  const all = [
    { kind: 'group', id: id('grp', 650), role: 'administrator', name: 'Club % 650' },
    { kind: 'group', id: id('grp', 651), role: 'owner', name: 'Club % 651' },
    { kind: 'channel', id: id('chan', 3), role: 'owner', name: null },
    { kind: 'channel', id: id('chan', 4), role: 'moderator', name: null },
  ];
  expect(await readManaged(storage, ann.account, 4)).toEqual({ items: all, more: false });
  for (const limit of [1, 2, 3]) {
    expect(await readManaged(storage, ann.account, limit)).toEqual({
      ...{ items: all.slice(0, limit), more: true },
    });
  }
  const verb = findVerb('account', 'delete') as Verb;
  const { clock, context } = relay;
  const { log, limits, random } = context;
  const config = { limits } as RelayConfig;
  const tools = { storage, clock, random, config };
  expect(await runVerb(verb, { account: ann.account }, { tools, log, by: 'http' })).toMatchObject({
    ...{ account: ann.account, manages: all, manages_more: false },
  });
});

test('one that is not here is none to delete; a block of it stays as it was', async () => {
  const { context, clock } = relay;
  const block = { id: ann.account, reason: 'spam', endsAt: undefined };
  await blockAccount(context.storage, block, { now: clock.now(), limits: context.limits });
  await remove();
  expect(await relay.rows('blocks')).toMatchObject([{ reason: 'spam', ends_at: null }]);
  await expect(remove()).rejects.toMatchObject({ code: 'not_found' });
});

test('02 §18: records that ended are part of a page, and are not looked at again', async () => {
  for (let count = 0; count < 3; count += 1) await send(ben, ann);
  const { account } = ann;
  const now = relay.clock.now();
  const end = (limit: number) =>
    relay.context.storage.write('test', (tx) => endRecords(tx, account, { after: -1, now, limit }));
  expect(await end(9)).toEqual({ last: 2, count: 3 });
  expect(await end(2)).toEqual({ last: 1, count: 0 });
  let pages = 0;
  relay.faults.beforeStatement = (sql) => {
    if (/^SELECT sequence FROM timeline_records/.test(sql)) pages += 1;
  };
  expect(await remove()).toEqual({ records: 0, blobs: 0 });
  delete relay.faults.beforeStatement;
  // All three, none after them, and none that came meanwhile.
  expect(pages).toBe(3);
});
