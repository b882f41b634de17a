import {
  type GroupMemberRecoveryRequest,
  type GroupRecoveryList,
  type JsonObject,
  verifyGroupRecoveryList,
} from '@posthouse/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { throughEveryFault } from '../support/faults.ts';
import { Person } from '../support/people.ts';
import { network, World } from '../support/world.ts';
import { readChain, readKeys, readPage, shape, verified } from './member.ts';
import { newMemberKey, TestGroup } from './support.ts';

const wait = 1_000;
const submitting = 'group.member.recovery.submit';
const listing = 'group.member.recovery.list';
const approving = 'group.member.recovery.approve';
const rejecting = 'group.member.recovery.reject';
const approval = 'group.member.recovery.approval';
let world: World;
/** Owner. */
let ann: Person;
/** Administrator. */
let ben: Person;
/** Administrator. */
let cem: Person;
let dora: Person;
let emil: Person;
let group: TestGroup;

beforeEach(async () => {
  world = await World.start({ groupRecoveryWait: wait });
  ann = await Person.atHome(world, 'ann');
  ben = await Person.atHome(world, 'ben');
  cem = await Person.atHome(world, 'cem');
  dora = await Person.atHome(world, 'dora', ['phone', 'laptop']);
  emil = await Person.atHome(world, 'emil');
  group = await TestGroup.found(world, ann);
  await group.admit(ben, cem, dora, emil);
  await group.setRole(ben, 'administrator');
  await group.setRole(cem, 'administrator');
  world.takeNotices();
});
afterEach(() => world[Symbol.asyncDispose]());

const submit = (request: object, by = dora, device = 'phone') =>
  world.call(submitting, request, { session: by.session(device) });
const submitCode = (request: object, by = dora) =>
  world.codeOf(submitting, request, { session: by.session() });
const approveCode = (params: object, by = ann) =>
  world.codeOf(approving, params, { session: by.session() });
const rejectCode = (people: readonly Person[], by = ann) => {
  const accounts = people.map(({ account }) => account);
  const params = { group_id: group.groupId, accounts };
  return world.codeOf(rejecting, params, { session: by.session() });
};
const approvalOf = (people: readonly Person[], by = ann) =>
  group.approval(people, { kind: approval, by });
const listPage = async (by: Person, params: JsonObject = {}): Promise<GroupRecoveryList> => {
  const request = { group_id: group.groupId, ...params };
  const answer = await world.call(listing, request, { session: by.session() });
  verifyGroupRecoveryList(network, answer, request);
  return answer;
};
const listCode = (by: Person, params: JsonObject = {}) =>
  world.codeOf(listing, { group_id: group.groupId, ...params }, { session: by.session() });
/** Accounts whose requests somebody sees. */
const listed = async (by: Person) =>
  (await listPage(by)).requests.map(({ request }) => request.account);
const accountsOf = (...people: Person[]) => people.map(({ account }) => account).sort();
const hint = (...people: Person[]) => ({
  kind: 'group-recoveries',
  group: group.groupId,
  accounts: expect.toSatisfy((accounts: string[]) => {
    expect([...accounts].sort()).toEqual(accountsOf(...people));
    return true;
  }),
});
const timeline = (head: number, accessEnded = 0) => ({
  kind: 'group-timeline',
  group: group.groupId,
  head,
  accessEnded,
});
const stored = async () => (await world.dump()).group_recoveries;

describe('05 §13.21: submitting', () => {
  test('fixes both times and changes nothing else', async () => {
    const before = await world.dump();
    const now = world.clock.now();
    const request = group.recoveryRequest(dora);
    expect(await submit(request)).toEqual({ accepted_at: now, expires_at: now + wait });
    const { group_recoveries, group_certificates, ...rest } = await world.dump();
    expect(before).toMatchObject(rest);
    expect(await listPage(dora)).toEqual({
      requests: [
        {
          request,
          signer_certificate: dora.device().certificate,
          accepted_at: now,
          expires_at: now + wait,
        },
      ],
    });
    expect(world.takeNotices()).toEqual([hint(ann, ben, cem, dora)]);
  });

  test.each([
    ['of an ordinary member', () => dora, () => [ann, ben, cem, dora]],
    ['of an administrator', () => ben, () => [ann, ben]],
    ['of the owner', () => ann, () => [ann]],
  ])('05 §15.4: a request %s is told to it and to who may process it', async (_, of, to) => {
    await group.requestRecovery(of());
    expect(world.takeNotices()).toEqual([hint(...to())]);
  });

  test('the same again keeps the times and tells nobody', async () => {
    const now = world.clock.now();
    const request = { ...group.recoveryRequest(dora) };
    await submit(request);
    world.takeNotices();
    world.clock.advance(10);
    await world.restart({ groupRecoveryWait: 10 * wait });
    // Another order of members is the same Canonical JSON.
    const turned = Object.fromEntries(Object.entries(request).reverse());
    expect(await submit(turned)).toEqual({ accepted_at: now, expires_at: now + wait });
    expect(world.takeNotices()).toEqual([]);
  });

  test('the same again is what counts, not who or what comes with it', async () => {
    const before = await submit(group.recoveryRequest(dora));
    world.clock.advance(1);
    const bare = bareOf(group.recoveryRequest(dora));
    const after = await submit(group.sign({ ...bare, note: 1 }, { by: dora }));
    expect(after).not.toEqual(before);
  });

  test('other content replaces it, with times of its own', async () => {
    await group.requestRecovery(dora, 'laptop');
    world.takeNotices();
    world.clock.advance(10);
    const now = world.clock.now();
    const request = group.recoveryRequest(dora);
    expect(await submit(request)).toEqual({ accepted_at: now, expires_at: now + wait });
    expect(world.takeNotices()).toEqual([hint(ann, ben, cem, dora)]);
    const { requests } = await listPage(ann);
    expect(requests.map((each) => each.request)).toEqual([request]);
    expect(requests[0]?.signer_certificate).toEqual(dora.device().certificate);
  });

  test('the same object after its expiry is a new submission', async () => {
    const request = await group.requestRecovery(dora);
    world.takeNotices();
    world.clock.advance(wait);
    const now = world.clock.now();
    expect(await submit(request)).toEqual({ accepted_at: now, expires_at: now + wait });
    expect(world.takeNotices()).toHaveLength(1);
  });

  test('unknown members are kept and covered by the signature', async () => {
    const request = group.sign({ ...bareOf(group.recoveryRequest(dora)), note: 'é' }, { by: dora });
    await submit(request);
    expect((await listPage(ann)).requests[0]?.request).toEqual(request);
    expect(await submitCode({ ...request, note: 'e' })).toBe('invalid_signature');
  });

  test.each([
    ['another type', { $type: 'x' }, 'bad_request'],
    ['a key that is none', { member_encryption_public_key: 'AA' }, 'bad_request'],
    ['an account that is none', { account: 'x' }, 'bad_request'],
    ['a group ID that is none', { group_id: 'grp_x' }, 'bad_request'],
    ['a group that is not here', { group_id: `grp_${'A'.repeat(22)}` }, 'not_found'],
    ['null', { note: null }, 'bad_request'],
  ])('%s is refused', async (_, facts, code) => {
    const request = group.sign({ ...bareOf(group.recoveryRequest(dora)), ...facts }, { by: dora });
    expect(await submitCode(request)).toBe(code);
    expect(await stored()).toEqual([]);
  });

  test('the key in use is refused', async () => {
    const { publicKey } = group.keyOf(dora);
    const request = group.recoveryRequest(dora, { member_encryption_public_key: publicKey });
    expect(await submitCode(request)).toBe('bad_request');
  });

  test('only members ask, for themselves, while the group is open', async () => {
    const request = group.recoveryRequest(dora);
    expect(await submitCode(request, emil)).toBe('forbidden');
    const frank = await Person.atHome(world, 'frank');
    expect(await submitCode(group.recoveryRequest(frank), frank)).toBe('forbidden');
    expect(await world.codeOf(submitting, request)).toBe('unauthorized');
    const session = dora.accountSession();
    expect(await world.codeOf(submitting, request, { session })).toBe('forbidden');
    await group.ban([emil]);
    expect(await submitCode(group.recoveryRequest(emil), emil)).toBe('forbidden');
    await group.leave(dora);
    expect(await submitCode(request)).toBe('forbidden');
    await group.close();
    expect(await submitCode(group.recoveryRequest(cem), cem)).toBe('state_conflict');
    expect(await stored()).toEqual([]);
  });

  test('who left while the signature was verified asks in vain', async () => {
    const request = group.recoveryRequest(dora);
    world.meanwhile = () => group.remove([dora]);
    expect(await submitCode(request)).toBe('forbidden');
    expect(await stored()).toEqual([]);
  });

  test('05 §12.6: all of it or nothing, whatever fails', async () => {
    const request = group.recoveryRequest(dora);
    expect(await throughEveryFault(world, () => submitCode(request))).toBeGreaterThan(0);
    expect(await stored()).toHaveLength(1);
  });
});

/** A request to be signed anew. */
function bareOf({ device_signature: _, ...bare }: GroupMemberRecoveryRequest) {
  return bare;
}

describe('05 §13.22: listing', () => {
  beforeEach(async () => {
    for (const person of [ann, ben, cem, dora, emil]) await group.requestRecovery(person);
  });

  test('05 §6: shows to each what the role allows', async () => {
    expect(await listed(ann)).toEqual(accountsOf(ann, ben, cem, dora, emil));
    expect(await listed(ben)).toEqual(accountsOf(ben, dora, emil));
    expect(await listed(cem)).toEqual(accountsOf(cem, dora, emil));
    expect(await listed(dora)).toEqual(accountsOf(dora));
  });

  test('05 §12.7: pages give every request once, in one order', async () => {
    for (const [by, all] of [
      [ann, accountsOf(ann, ben, cem, dora, emil)],
      [ben, accountsOf(ben, dora, emil)],
      [dora, accountsOf(dora)],
    ] as const) {
      const seen: string[] = [];
      let cursor: string | undefined;
      for (;;) {
        const page = await listPage(by, { limit: 1, ...(cursor && { cursor }) });
        seen.push(...page.requests.map(({ request }) => request.account));
        cursor = page.next;
        if (cursor === undefined) break;
      }
      expect(seen).toEqual(all);
    }
  });

  test('an ordinary member is never promised more', async () => {
    expect(await listPage(dora, { limit: 1 })).not.toHaveProperty('next');
  });

  test('the page ends exactly with the list', async () => {
    expect(await listPage(ann, { limit: 5 })).not.toHaveProperty('next');
    expect(await listPage(ann, { limit: 4 })).toHaveProperty('next');
    expect(await listPage(ben, { limit: 3 })).not.toHaveProperty('next');
  });

  test('large requests make short pages, one at least', async () => {
    const note = 'x'.repeat(600_000);
    for (const person of [dora, emil]) {
      const bare = bareOf(group.recoveryRequest(person));
      await submit(group.sign({ ...bare, note }, { by: person }), person);
    }
    expect((await listPage(ann)).requests.length).toBeLessThan(5);
    const huge = { ...bareOf(group.recoveryRequest(dora)), note: 'x'.repeat(1_000_000) };
    await submit(group.sign(huge, { by: dora }));
    expect((await listPage(dora)).requests).toHaveLength(1);
  });

  test('from its expiry on a request is not listed', async () => {
    world.clock.advance(wait - 1);
    expect(await listed(ann)).toHaveLength(5);
    world.clock.advance(1);
    for (const person of [ann, ben, dora]) expect(await listed(person)).toEqual([]);
  });

  test('a cursor outlives changes and a restart, but not the right to what it shows', async () => {
    const { next } = await listPage(ann, { limit: 1 });
    const cursor = next as string;
    await world.restart();
    expect((await listPage(ann, { cursor })).requests).toHaveLength(4);
    expect(await listCode(ben, { cursor })).toBe('forbidden');
    expect(await listCode(dora, { cursor })).toBe('forbidden');
    const own = (await listPage(ben, { limit: 1 })).next as string;
    await group.transfer(ben);
    expect(await listCode(ann, { cursor })).toBe('forbidden');
    expect((await listPage(ben, { cursor: own })).requests.length).toBeGreaterThan(0);
    expect(await listCode(ann)).toBe('ok');
  });

  test.each([
    ['a limit of nothing', { limit: 0 }, 'bad_request'],
    ['a cursor that is none', { cursor: 'x' }, 'bad_request'],
    ['an empty cursor', { cursor: '' }, 'bad_request'],
    ['a group that is not here', { group_id: `grp_${'A'.repeat(22)}` }, 'not_found'],
  ])('%s', async (_, params, code) => {
    expect(await listCode(ann, params)).toBe(code);
  });

  test('strangers and banned accounts are refused', async () => {
    const frank = await Person.atHome(world, 'frank');
    expect(await listCode(frank)).toBe('forbidden');
    await group.ban([emil]);
    expect(await listCode(emil)).toBe('forbidden');
    expect(await listed(ann)).toEqual(accountsOf(ann, ben, cem, dora));
  });

  test('opens no interval and tells nobody', async () => {
    const { group_intervals } = await world.dump();
    world.takeNotices();
    const params = { group_id: group.groupId };
    await world.call(listing, params, { session: dora.session('laptop') });
    expect((await world.dump()).group_intervals).toEqual(group_intervals);
    expect(world.takeNotices()).toEqual([]);
  });
});

describe('05 §13.23: approving', () => {
  test('gives the new key, with access for the device that asked', async () => {
    await readPage(world, group, dora);
    await group.requestRecovery(dora, 'laptop');
    world.takeNotices();
    await group.recover([dora]);
    expect(world.takeNotices()).toEqual([timeline(4), hint(ann, ben, cem, dora)]);
    const { state } = await readChain(world, group, ann);
    expect(state).toMatchObject({ sequence: 4, epoch: 2, head: group.head });
    expect(state.members.get(dora.account)).toMatchObject({
      member_encryption_public_key: group.keyOf(dora).publicKey,
      role: 'member',
      since: 1,
    });
    const keys = await readKeys(world, group, dora, { device: 'laptop' });
    expect([...verified(keys).keys()]).toEqual([2]);
    expect(await stored()).toEqual([]);
  });

  test('05 §10.3: ends all access the account had; others begin with their next call', async () => {
    await group.requestRecovery(dora, 'laptop');
    await group.recover([dora]);
    await group.admit(await Person.atHome(world, 'frank'));
    expect(shape(await readPage(world, group, dora, { device: 'laptop' }))).toBe('2* 3');
    expect(shape(await readPage(world, group, dora))).toBe('3*');
    expect(shape(await readPage(world, group, emil))).toBe('1* 2 3');
  });

  test('05 §10.2: a device whose access had just begun begins again with the event', async () => {
    // Its next message was to be the very event that ends this access.
    expect(shape(await readPage(world, group, dora, { device: 'laptop' }))).toBe('1*');
    await group.requestRecovery(dora, 'laptop');
    await group.recover([dora]);
    await group.admit(await Person.atHome(world, 'frank'));
    expect(shape(await readPage(world, group, dora, { device: 'laptop' }))).toBe('2* 3');
  });

  test('one event, epoch and hint for a batch; all of it can be opened', async () => {
    for (const person of [ann, ben, dora, emil]) await group.requestRecovery(person);
    world.takeNotices();
    await group.recover([ann, ben, dora, emil]);
    expect(world.takeNotices()).toEqual([timeline(4), hint(ann, ben, cem, dora, emil)]);
    for (const person of [ann, ben, dora, emil]) {
      expect([...verified(await readKeys(world, group, person)).keys()]).toEqual([2]);
    }
    expect([...verified(await readKeys(world, group, cem)).keys()]).toEqual([1, 2]);
  });

  test('05 §12.6: the certificate of the request stays the one it was accepted with', async () => {
    await group.requestRecovery(dora, 'laptop');
    await dora.publishState(await dora.state({ devices: ['phone'] }));
    await group.recover([dora]);
    expect(shape(await readPage(world, group, dora))).toBe('2*');
  });

  test('an administrator approves ordinary members, of other roles nobody', async () => {
    for (const person of [ann, ben, cem, dora]) await group.requestRecovery(person);
    const before = await world.dump();
    for (const people of [[ann], [ben], [cem], [dora, cem]]) {
      expect(await approveCode(approvalOf(people, ben), ben)).toBe('forbidden');
    }
    expect(await world.dump()).toEqual(before);
    await group.recover([dora], { by: ben });
    await group.recover([ann, ben]);
  });

  test('nobody else approves anything', async () => {
    await group.requestRecovery(dora);
    expect(await approveCode(approvalOf([dora], dora), dora)).toBe('forbidden');
    expect(await approveCode(approvalOf([dora], emil), emil)).toBe('forbidden');
    const frank = await Person.atHome(world, 'frank');
    expect(await approveCode(approvalOf([dora], frank), frank)).toBe('forbidden');
    expect(await approveCode(approvalOf([dora], ben), ann)).toBe('invalid_signature');
    await group.ban([emil]);
    expect(await approveCode(approvalOf([dora], emil), emil)).toBe('forbidden');
  });

  test.each([
    ['a batch without accounts', () => emptied(), 'bad_request'],
    ['an account twice', () => doubled(), 'bad_request'],
    ['boxes of other accounts', () => ({ ...both(), client_secret_boxes: {} }), 'bad_request'],
    ['a box too many', () => withBox(ben.account), 'bad_request'],
    ['a box that is none', () => withBox(dora.account, { alg: 'X' }), 'bad_request'],
    [
      'a commitment that is none',
      () => ({ ...both(), client_secret_commitment: 'x' }),
      'bad_request',
    ],
    ['another commitment', () => ({ ...both(), ...uncommitted }), 'state_conflict'],
    ['a key that is not asked for', () => rekeyed(), 'state_conflict'],
    ['an account without a request', () => approvalOfAll(dora, emil, cem), 'not_found'],
    ['an account that is no member', () => approvalOfAll(dora, outside), 'state_conflict'],
    ['an old head', () => staleBatch(), 'state_conflict'],
  ])('%s fails the whole batch', async (_, params, code) => {
    outside = await Person.atHome(world, 'frank');
    for (const person of [dora, emil]) await group.requestRecovery(person);
    for (const person of [cem, outside]) group.candidates.set(person.account, newMemberKey());
    const sent = params();
    const before = await world.dump();
    expect(await approveCode(sent)).toBe(code);
    expect(await world.dump()).toEqual(before);
  });

  let outside: Person;
  const uncommitted = { client_secret_commitment: `sha256:${'A'.repeat(43)}` };
  const both = () => approvalOf([dora, emil]);
  const approvalOfAll = (...people: Person[]) => approvalOf(people);
  const signed = (members: readonly unknown[], prev_hash = group.head) =>
    group.link(approval, { members: members as never, prev_hash });
  const emptied = () => ({ ...both(), approval: signed([]), client_secret_boxes: {} });
  const doubled = () => {
    const { members } = both().approval;
    return { ...both(), approval: signed([...members, ...members]) };
  };
  const rekeyed = () => {
    const [first, second] = both().approval.members;
    const other = { ...first, member_encryption_public_key: newMemberKey().publicKey };
    return { ...both(), approval: signed([other, second]) };
  };
  const staleBatch = () => {
    const { members } = both().approval;
    return { ...both(), approval: signed(members, `sha256:${'A'.repeat(43)}`) };
  };
  const withBox = (account: string, facts: object = {}) => {
    const params = both();
    const boxes = { ...params.client_secret_boxes, [account]: { ...group.box(ben), ...facts } };
    return { ...params, client_secret_boxes: boxes };
  };

  test('05 §9.3: from the expiry on it is too late', async () => {
    await group.requestRecovery(dora);
    const params = approvalOf([dora]);
    world.clock.advance(wait);
    expect(await approveCode(params)).toBe('not_found');
    world.clock.advance(-1);
    expect(await approveCode(params)).toBe('ok');
  });

  test('05 §12.6: what runs out while signatures are verified has run out', async () => {
    await group.requestRecovery(dora);
    world.clock.advance(wait - 1);
    world.afterProof = async () => world.clock.advance(1);
    expect(await approveCode(approvalOf([dora]))).toBe('not_found');
  });

  test('a request that is replaced while it is verified is not approved', async () => {
    const request = await group.requestRecovery(dora);
    const params = approvalOf([dora]);
    const note = { ...bareOf(request), note: 'with the same key' };
    world.afterProof = async () => void (await submit(group.sign(note, { by: dora })));
    expect(await approveCode(params)).toBe('state_conflict');
    expect(await stored()).toHaveLength(1);
  });

  test('a request that is withdrawn while it is verified is not approved', async () => {
    await group.requestRecovery(dora);
    world.afterProof = async () => void (await rejectCode([dora], dora));
    expect(await approveCode(approvalOf([dora]))).toBe('not_found');
  });

  test('a target that left meanwhile fails the batch', async () => {
    for (const person of [dora, emil]) await group.requestRecovery(person);
    await group.leave(emil);
    expect(await approveCode(approvalOf([dora, emil]))).toBe('state_conflict');
    expect(await listed(ann)).toEqual(accountsOf(dora));
  });

  test('05 §13.15: sent again it finds another head; signed again, no request', async () => {
    await group.requestRecovery(dora);
    const params = approvalOf([dora]);
    await group.write(approving, params.approval, { params });
    expect(await approveCode(params)).toBe('state_conflict');
    expect(await approveCode(approvalOf([dora]))).toBe('not_found');
  });

  test('a stored certificate of another account makes no approval', async () => {
    await group.requestRecovery(dora);
    await world.context.storage.write(`group:${group.groupId}`, async (tx) => {
      const [{ certificate_id }] = (await tx.all(
        'SELECT certificate_id FROM group_events WHERE sequence = 0',
      )) as [{ certificate_id: string }];
      await tx.run('UPDATE group_recoveries SET certificate_id = ?', certificate_id);
    });
    expect(await approveCode(approvalOf([dora]))).toBe('bad_request');
  });

  test('a closed group approves none', async () => {
    await group.requestRecovery(dora);
    await group.close();
    expect(await approveCode(approvalOf([dora]))).toBe('state_conflict');
  });

  test('05 §12.6: all of it or nothing, whatever fails', async () => {
    for (const person of [dora, emil]) await group.requestRecovery(person);
    const params = approvalOf([dora, emil]);
    expect(await throughEveryFault(world, () => approveCode(params))).toBeGreaterThan(8);
  });
});

describe('05 §13.24: rejecting and withdrawing', () => {
  beforeEach(async () => {
    for (const person of [ann, ben, cem, dora, emil]) await group.requestRecovery(person);
    world.takeNotices();
  });

  test('deletes the requests and nothing else', async () => {
    const { group_recoveries: _, ...before } = await world.dump();
    expect(await rejectCode([dora, ben])).toBe('ok');
    const { group_recoveries, ...after } = await world.dump();
    expect(after).toEqual(before);
    expect(await listed(ann)).toEqual(accountsOf(ann, cem, emil));
    expect(world.takeNotices()).toEqual([hint(ann, ben, cem, dora)]);
    expect(await approveCode(approvalOf([dora]))).toBe('not_found');
  });

  test('05 §15.4: a withdrawal is told to who could process it', async () => {
    expect(await rejectCode([ben], ben)).toBe('ok');
    expect(world.takeNotices()).toEqual([hint(ann, ben)]);
    expect(await rejectCode([dora], dora)).toBe('ok');
    expect(world.takeNotices()).toEqual([hint(ann, ben, cem, dora)]);
  });

  test.each([
    ['the owner all', () => ann, () => [ann, ben, cem, dora, emil], 'ok'],
    ['an administrator ordinary members and itself', () => ben, () => [ben, dora, emil], 'ok'],
    ['no administrator another one', () => ben, () => [dora, cem], 'forbidden'],
    ['no administrator the owner', () => ben, () => [ann], 'forbidden'],
    ['an ordinary member itself', () => dora, () => [dora], 'ok'],
    ['no ordinary member others', () => dora, () => [dora, emil], 'forbidden'],
  ])('05 §6: %s', async (_, by, people, code) => {
    const before = await world.dump();
    expect(await rejectCode(people(), by())).toBe(code);
    if (code !== 'ok') expect(await world.dump()).toEqual(before);
    const left = code === 'ok' ? 5 - people().length : 5;
    expect(await stored()).toHaveLength(left);
  });

  test('one that is missing or over keeps all', async () => {
    await rejectCode([emil]);
    expect(await rejectCode([dora, emil])).toBe('not_found');
    const frank = await Person.atHome(world, 'frank');
    expect(await rejectCode([dora, frank])).toBe('not_found');
    expect(await rejectCode([frank], dora)).toBe('forbidden');
    expect(await listed(dora)).toEqual(accountsOf(dora));
    world.clock.advance(wait);
    expect(await rejectCode([dora])).toBe('not_found');
    expect(await rejectCode([dora], dora)).toBe('not_found');
  });

  test('a new request may follow at once', async () => {
    await rejectCode([dora]);
    await group.requestRecovery(dora);
    await group.recover([dora]);
  });

  test('strangers, banned accounts and bad batches are refused', async () => {
    const frank = await Person.atHome(world, 'frank');
    expect(await rejectCode([dora], frank)).toBe('forbidden');
    expect(await rejectCode([])).toBe('bad_request');
    expect(await rejectCode([dora, dora])).toBe('bad_request');
    const params = { group_id: `grp_${'A'.repeat(22)}`, accounts: [dora.account] };
    expect(await world.codeOf(rejecting, params, { session: ann.session() })).toBe('not_found');
    await group.ban([emil]);
    expect(await rejectCode([emil], emil)).toBe('forbidden');
    await group.close();
    expect(await rejectCode([dora])).toBe('state_conflict');
  });

  test('05 §12.6: all of them or none, whatever fails', async () => {
    expect(await throughEveryFault(world, () => rejectCode([dora, emil]))).toBe(2);
  });
});

describe('05 §9.3: what else ends a request', () => {
  test.each([
    ['leaving', () => group.leave(dora)],
    ['removal', () => group.remove([dora])],
    ['a ban', () => group.ban([dora])],
  ])('%s; rejoining does not bring it back', async (how, end) => {
    await group.requestRecovery(dora);
    world.takeNotices();
    await end();
    expect(world.takeNotices()).toEqual([timeline(4, 4), hint(ann, ben, cem)]);
    if (how === 'a ban') await group.unban([dora]);
    await group.admit(dora);
    expect(await listed(ann)).toEqual([]);
  });

  test("05 §15.4: an administrator's end is told to the owner alone", async () => {
    await group.requestRecovery(ben);
    world.takeNotices();
    await group.remove([ben]);
    expect(world.takeNotices()).toEqual([timeline(4, 4), hint(ann)]);
  });

  test('where there was none, or one that was over, nobody is told', async () => {
    await group.requestRecovery(dora);
    world.clock.advance(wait);
    world.takeNotices();
    await group.remove([dora, emil]);
    expect(world.takeNotices()).toEqual([timeline(4, 4)]);
  });
});
