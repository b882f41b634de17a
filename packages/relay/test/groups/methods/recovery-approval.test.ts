import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readChain, readKeys, readPage, shape, verified } from '../../fixtures/group-reader.ts';
import { newMemberKey } from '../../fixtures/member-key.ts';
import { Person } from '../../fixtures/person.ts';
import {
  accountsOf,
  bareOf,
  createRecoveryGroup,
  type RecoveryGroup,
  wait,
} from '../../fixtures/recovery-group.ts';
import { throughEveryFault } from '../../support/faults.ts';

let relay: RecoveryGroup['relay'];
let group: RecoveryGroup['group'];
let ann: RecoveryGroup['ann'];
let ben: RecoveryGroup['ben'];
let cem: RecoveryGroup['cem'];
let dora: RecoveryGroup['dora'];
let emil: RecoveryGroup['emil'];
let submit: RecoveryGroup['submit'];
let approveCode: RecoveryGroup['approveCode'];
let rejectCode: RecoveryGroup['rejectCode'];
let listed: RecoveryGroup['listed'];
let stored: RecoveryGroup['stored'];
let approvalOf: RecoveryGroup['approvalOf'];
let hint: RecoveryGroup['hint'];
let timeline: RecoveryGroup['timeline'];

beforeEach(async () => {
  ({
    relay,
    group,
    ann,
    ben,
    cem,
    dora,
    emil,
    submit,
    approveCode,
    rejectCode,
    listed,
    stored,
    approvalOf,
    hint,
    timeline,
  } = await createRecoveryGroup());
});
afterEach(() => relay[Symbol.asyncDispose]());

describe('05 §13.23: approving', () => {
  test('gives the new key, with access for the device that asked', async () => {
    await readPage(relay, group, dora);
    await group.requestRecovery(dora, 'laptop');
    relay.takeNotices();
    await group.recover([dora]);
    expect(relay.takeNotices()).toEqual([timeline(4), hint(ann, ben, cem, dora)]);
    const { state } = await readChain(relay, group, ann);
    expect(state).toMatchObject({ sequence: 4, epoch: 2, head: group.head });
    expect(state.members.get(dora.account)).toMatchObject({
      member_encryption_public_key: group.keyOf(dora).publicKey,
      role: 'member',
      since: 1,
    });
    const keys = await readKeys(relay, group, dora, { device: 'laptop' });
    expect([...verified(keys).keys()]).toEqual([2]);
    expect(await stored()).toEqual([]);
  });

  test('05 §10.3: ends all access of the account; its other devices begin with their next call', async () => {
    await group.requestRecovery(dora, 'laptop');
    await group.recover([dora]);
    await group.admit(await Person.register(relay, 'frank'));
    expect(shape(await readPage(relay, group, dora, { device: 'laptop' }))).toBe('2* 3');
    expect(shape(await readPage(relay, group, dora))).toBe('3*');
    expect(shape(await readPage(relay, group, emil))).toBe('1* 2 3');
  });

  test('05 §10.2: a device whose access had just begun begins again with the event', async () => {
    // Its next message was to be the very event that ends this access.
    expect(shape(await readPage(relay, group, dora, { device: 'laptop' }))).toBe('1*');
    await group.requestRecovery(dora, 'laptop');
    await group.recover([dora]);
    await group.admit(await Person.register(relay, 'frank'));
    expect(shape(await readPage(relay, group, dora, { device: 'laptop' }))).toBe('2* 3');
  });

  test('one event, epoch and hint for a batch; all of it can be opened', async () => {
    for (const person of [ann, ben, dora, emil]) await group.requestRecovery(person);
    relay.takeNotices();
    await group.recover([ann, ben, dora, emil]);
    expect(relay.takeNotices()).toEqual([timeline(4), hint(ann, ben, cem, dora, emil)]);
    for (const person of [ann, ben, dora, emil]) {
      expect([...verified(await readKeys(relay, group, person)).keys()]).toEqual([2]);
    }
    expect([...verified(await readKeys(relay, group, cem)).keys()]).toEqual([1, 2]);
  });

  test('05 §12.6: the request keeps the certificate it was accepted with', async () => {
    await group.requestRecovery(dora, 'laptop');
    await dora.publishState(await dora.state({ devices: ['phone'] }));
    await group.recover([dora]);
    expect(shape(await readPage(relay, group, dora))).toBe('2*');
  });

  test('an administrator approves ordinary members only', async () => {
    for (const person of [ann, ben, cem, dora]) await group.requestRecovery(person);
    const before = await relay.dump();
    for (const people of [[ann], [ben], [cem], [dora, cem]]) {
      expect(await approveCode(approvalOf(people, ben), ben)).toBe('forbidden');
    }
    expect(await relay.dump()).toEqual(before);
    await group.recover([dora], { by: ben });
    await group.recover([ann, ben]);
  });

  test('other accounts approve nothing', async () => {
    await group.requestRecovery(dora);
    expect(await approveCode(approvalOf([dora], dora), dora)).toBe('forbidden');
    expect(await approveCode(approvalOf([dora], emil), emil)).toBe('forbidden');
    const frank = await Person.register(relay, 'frank');
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
    outside = await Person.register(relay, 'frank');
    for (const person of [dora, emil]) await group.requestRecovery(person);
    for (const person of [cem, outside]) group.candidates.set(person.account, newMemberKey());
    const sent = params();
    const before = await relay.dump();
    expect(await approveCode(sent)).toBe(code);
    expect(await relay.dump()).toEqual(before);
  });

  let outside: Person;
  const uncommitted = { client_secret_commitment: `sha256:${'A'.repeat(43)}` };
  const both = () => approvalOf([dora, emil]);
  const approvalOfAll = (...people: Person[]) => approvalOf(people);
  const signed = (members: readonly unknown[], prev_hash = group.head) =>
    group.link('group.member.recovery.approval', { members: members as never, prev_hash });
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

  test('05 §9.3: from the expiry on an approval is refused', async () => {
    await group.requestRecovery(dora);
    const params = approvalOf([dora]);
    relay.clock.advance(wait);
    expect(await approveCode(params)).toBe('not_found');
    relay.clock.advance(-1);
    expect(await approveCode(params)).toBe('ok');
  });

  test('05 §12.6: a request that expires while signatures are verified is expired', async () => {
    await group.requestRecovery(dora);
    relay.clock.advance(wait - 1);
    relay.afterProof = async () => relay.clock.advance(1);
    expect(await approveCode(approvalOf([dora]))).toBe('not_found');
  });

  test('a request that is replaced while it is verified is not approved', async () => {
    const request = await group.requestRecovery(dora);
    const params = approvalOf([dora]);
    const note = { ...bareOf(request), note: 'with the same key' };
    relay.afterProof = async () => void (await submit(group.sign(note, { by: dora })));
    expect(await approveCode(params)).toBe('state_conflict');
    expect(await stored()).toHaveLength(1);
  });

  test('a request that is withdrawn while it is verified is not approved', async () => {
    await group.requestRecovery(dora);
    relay.afterProof = async () => void (await rejectCode([dora], dora));
    expect(await approveCode(approvalOf([dora]))).toBe('not_found');
  });

  test('a target that left meanwhile fails the batch', async () => {
    for (const person of [dora, emil]) await group.requestRecovery(person);
    await group.leave(emil);
    expect(await approveCode(approvalOf([dora, emil]))).toBe('state_conflict');
    expect(await listed(ann)).toEqual(accountsOf(dora));
  });

  test('05 §13.15: a repeat has an old head; signed again, there is no request', async () => {
    await group.requestRecovery(dora);
    const params = approvalOf([dora]);
    await group.write('group.member.recovery.approve', params.approval, { params });
    expect(await approveCode(params)).toBe('state_conflict');
    expect(await approveCode(approvalOf([dora]))).toBe('not_found');
  });

  test('a stored certificate of another account is refused', async () => {
    await group.requestRecovery(dora);
    await relay.context.storage.write(`group:${group.groupId}`, async (tx) => {
      const [{ certificate_id }] = (await tx.all(
        'SELECT certificate_id FROM group_events WHERE sequence = 0',
      )) as [{ certificate_id: string }];
      await tx.run('UPDATE group_recoveries SET certificate_id = ?', certificate_id);
    });
    expect(await approveCode(approvalOf([dora]))).toBe('bad_request');
  });

  test('a closed group refuses approvals', async () => {
    await group.requestRecovery(dora);
    await group.close();
    expect(await approveCode(approvalOf([dora]))).toBe('state_conflict');
  });

  test('05 §12.6: a fault at any write leaves no trace', async () => {
    for (const person of [dora, emil]) await group.requestRecovery(person);
    const params = approvalOf([dora, emil]);
    expect(await throughEveryFault(relay, () => approveCode(params))).toBeGreaterThan(8);
  });
});

describe('05 §13.24: rejecting and withdrawing', () => {
  beforeEach(async () => {
    for (const person of [ann, ben, cem, dora, emil]) await group.requestRecovery(person);
    relay.takeNotices();
  });

  test('deletes the requests and nothing else', async () => {
    const { group_recoveries: _, ...before } = await relay.dump();
    expect(await rejectCode([dora, ben])).toBe('ok');
    const { group_recoveries, ...after } = await relay.dump();
    expect(after).toEqual(before);
    expect(await listed(ann)).toEqual(accountsOf(ann, cem, emil));
    expect(relay.takeNotices()).toEqual([hint(ann, ben, cem, dora)]);
    expect(await approveCode(approvalOf([dora]))).toBe('not_found');
  });

  test('05 §15.4: a withdrawal notifies the accounts that could process it', async () => {
    expect(await rejectCode([ben], ben)).toBe('ok');
    expect(relay.takeNotices()).toEqual([hint(ann, ben)]);
    expect(await rejectCode([dora], dora)).toBe('ok');
    expect(relay.takeNotices()).toEqual([hint(ann, ben, cem, dora)]);
  });

  test.each([
    ['the owner all', () => ann, () => [ann, ben, cem, dora, emil], 'ok'],
    ['an administrator ordinary members and itself', () => ben, () => [ben, dora, emil], 'ok'],
    ['an administrator no other administrator', () => ben, () => [dora, cem], 'forbidden'],
    ['an administrator not the owner', () => ben, () => [ann], 'forbidden'],
    ['an ordinary member only itself', () => dora, () => [dora], 'ok'],
    ['an ordinary member no others', () => dora, () => [dora, emil], 'forbidden'],
  ])('05 §6: %s', async (_, by, people, code) => {
    const before = await relay.dump();
    expect(await rejectCode(people(), by())).toBe(code);
    if (code !== 'ok') expect(await relay.dump()).toEqual(before);
    const left = code === 'ok' ? 5 - people().length : 5;
    expect(await stored()).toHaveLength(left);
  });

  test('if one request is missing or expired, none is deleted', async () => {
    await rejectCode([emil]);
    expect(await rejectCode([dora, emil])).toBe('not_found');
    const frank = await Person.register(relay, 'frank');
    expect(await rejectCode([dora, frank])).toBe('not_found');
    expect(await rejectCode([frank], dora)).toBe('forbidden');
    expect(await listed(dora)).toEqual(accountsOf(dora));
    relay.clock.advance(wait);
    expect(await rejectCode([dora])).toBe('not_found');
    expect(await rejectCode([dora], dora)).toBe('not_found');
  });

  test('a new request may follow at once', async () => {
    await rejectCode([dora]);
    await group.requestRecovery(dora);
    await group.recover([dora]);
  });

  test('strangers, banned accounts and bad batches are refused', async () => {
    const frank = await Person.register(relay, 'frank');
    expect(await rejectCode([dora], frank)).toBe('forbidden');
    expect(await rejectCode([])).toBe('bad_request');
    expect(await rejectCode([dora, dora])).toBe('bad_request');
    const params = { group_id: `grp_${'A'.repeat(22)}`, accounts: [dora.account] };
    expect(
      await relay.codeOf('group.member.recovery.reject', params, { session: ann.session() }),
    ).toBe('not_found');
    await group.ban([emil]);
    expect(await rejectCode([emil], emil)).toBe('forbidden');
    await group.close();
    expect(await rejectCode([dora])).toBe('state_conflict');
  });

  test('05 §12.6: a fault at any write deletes none', async () => {
    expect(await throughEveryFault(relay, () => rejectCode([dora, emil]))).toBe(2);
  });
});

describe('05 §9.3: other ends of a request', () => {
  test.each([
    ['leaving', () => group.leave(dora)],
    ['removal', () => group.remove([dora])],
    ['a ban', () => group.ban([dora])],
  ])('%s; rejoining does not bring it back', async (how, end) => {
    await group.requestRecovery(dora);
    relay.takeNotices();
    await end();
    expect(relay.takeNotices()).toEqual([timeline(4, 4), hint(ann, ben, cem)]);
    if (how === 'a ban') await group.unban([dora]);
    await group.admit(dora);
    expect(await listed(ann)).toEqual([]);
  });

  test("05 §15.4: the end of an administrator's request notifies only the owner", async () => {
    await group.requestRecovery(ben);
    relay.takeNotices();
    await group.remove([ben]);
    expect(relay.takeNotices()).toEqual([timeline(4, 4), hint(ann)]);
  });

  test('without a request, or with an expired one, no notice is published', async () => {
    await group.requestRecovery(dora);
    relay.clock.advance(wait);
    relay.takeNotices();
    await group.remove([dora, emil]);
    expect(relay.takeNotices()).toEqual([timeline(4, 4)]);
  });
});
