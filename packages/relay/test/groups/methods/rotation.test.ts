import { createGroupSecret, encodeBase64url, type GroupSecretBox } from '@posthouse/protocol';
import { nodeRandom } from '@posthouse/protocol/node';
import { beforeEach, describe, expect, test } from 'vitest';
import { inactiveDevicesJobName } from '../../../src/accounts/index.ts';
import { TestGroup } from '../../fixtures/group.ts';
import { readChain, readKeys, readPage, shape, verified } from '../../fixtures/group-reader.ts';
import { newMemberKey } from '../../fixtures/member-key.ts';
import { Person } from '../../fixtures/person.ts';
import { throughEveryFault } from '../../support/faults.ts';
import { inProcessRelay } from '../../support/in-process-relay.ts';

const preparing = 'group.secret.rotation.prepare';
const committing = 'group.secret.rotation.commit';
const period = 1_000;
/** A well-formed key of no account. */
const pointless = encodeBase64url(new Uint8Array(32).fill(9));
const relay = inProcessRelay({ groupStagingPeriod: period });
const ann = relay.person('ann', ['phone', 'laptop']);
const ben = relay.person('ben');
const cem = relay.person('cem');
let group: TestGroup;
let next: Uint8Array;

beforeEach(async () => {
  group = await TestGroup.create(relay, ann);
  await group.admit(ben, cem);
  next = createGroupSecret(nodeRandom);
  relay.takeNotices();
});

const batch = (people?: readonly Person[], secret = next) => group.preparation(secret, people);
const prepare = (params: object, by = ann, device = 'phone') =>
  relay.call(preparing, params, { session: by.session(device) });
const prepareCode = (params: object, by = ann) =>
  relay.codeOf(preparing, params, { session: by.session() });
const commitCode = (body: object = group.rotation(next), by = ann) =>
  relay.codeOf(committing, body, { session: by.session() });
/** Commits and lets the people of the group know. */
const commit = async (secret = next) => {
  await group.write(committing, group.rotation(secret));
  group.secret = secret;
};
/** What a member's device opens in the last epoch, base64url. */
const lastSecret = async (person: Person) =>
  [...verified(await readKeys(relay, group, person)).values()].at(-1);
const timeline = (head: number, accessEnded = 0) => ({
  kind: 'group-timeline',
  group: group.groupId,
  head,
  accessEnded,
});
/** Tables in which a staged rotation may be seen. */
const staged = async () => {
  const { groups, group_boxes, group_stagings, group_dropped_sets, ...rest } = await relay.dump();
  return { staging: { groups, group_boxes, group_stagings, group_dropped_sets }, rest };
};

describe('05 §13.26: preparing', () => {
  test('counts distinct accounts over all batches; the expiry is that of the first', async () => {
    const expires_at = relay.clock.now() + period;
    expect(await prepare(batch([ann]))).toEqual({ prepared: 1, expires_at });
    relay.clock.advance(10);
    expect(await prepare(batch([ann, ben]))).toEqual({ prepared: 2, expires_at });
    expect(await prepare(batch([cem]), ann, 'laptop')).toEqual({ prepared: 3, expires_at });
    expect(await prepare(batch([cem]))).toEqual({ prepared: 3, expires_at });
  });

  test('changes only the candidate material, and publishes no notice', async () => {
    const before = await staged();
    await prepare(batch());
    expect((await staged()).rest).toEqual(before.rest);
    const { state } = await readChain(relay, group, ben);
    expect(state).toMatchObject({ epoch: 1, client_secret_commitment: group.commitment });
    expect(await lastSecret(ben)).toBe(encodeBase64url(group.secret));
    expect(relay.takeNotices()).toEqual([]);
  });

  test('a later box of an account replaces the earlier one', async () => {
    const wrong = { ...batch([ben]), client_secret_boxes: { [ben.account]: group.box(ann) } };
    await prepare(batch([ann, cem]));
    await prepare(wrong);
    await prepare(batch([ben]));
    await commit();
    expect(await lastSecret(ben)).toBe(encodeBase64url(next));
  });

  test('another new commitment starts again and inherits no box', async () => {
    await prepare(batch());
    relay.clock.advance(10);
    const other = createGroupSecret(nodeRandom);
    const expires_at = relay.clock.now() + period;
    expect(await prepare(batch([ann], other))).toEqual({ prepared: 1, expires_at });
    expect(await commitCode(group.rotation(next))).toBe('state_conflict');
    expect(await commitCode(group.rotation(other))).toBe('state_conflict');
    await prepare(batch([ben, cem], other));
    await commit(other);
    expect(await lastSecret(cem)).toBe(encodeBase64url(other));
  });

  test('a job deletes the boxes of a replaced rotation', async () => {
    await prepare(batch());
    await prepare(batch([ann], createGroupSecret(nodeRandom)));
    const { group_dropped_sets } = await relay.dump();
    expect(group_dropped_sets).toEqual([{ group_id: group.groupId, box_set: 1 }]);
  });

  test('the expiry is fixed: no batch, restart or changed limit moves it', async () => {
    const expires_at = relay.clock.now() + period;
    await prepare(batch([ann]));
    await relay.restart({ groupStagingPeriod: 10 * period });
    expect(await prepare(batch([ben]))).toEqual({ prepared: 2, expires_at });
    relay.clock.advance(period - 1);
    expect(await prepare(batch([cem]))).toEqual({ prepared: 3, expires_at });
    relay.clock.advance(1);
    expect(await prepareCode(batch([cem]))).toBe('state_conflict');
    expect(await commitCode()).toBe('state_conflict');
  });

  test('after the expiry another new commitment starts again', async () => {
    await prepare(batch());
    relay.clock.advance(period);
    const other = createGroupSecret(nodeRandom);
    const expires_at = relay.clock.now() + period;
    expect(await prepare(batch(undefined, other))).toEqual({ prepared: 3, expires_at });
    await commit(other);
    expect(await lastSecret(ben)).toBe(encodeBase64url(other));
  });

  let stranger: Person;
  const rebased = () => ({ ...batch(), base_commitment: `sha256:${'A'.repeat(43)}` });
  const boxesFor = (account: string, facts: object = {}) => {
    const box: GroupSecretBox = { ...group.box(ben), ...facts };
    return { ...batch(), client_secret_boxes: { ...batch().client_secret_boxes, [account]: box } };
  };

  test.each([
    ['a base commitment that is not the current one', () => rebased(), 'state_conflict'],
    ['the current commitment as the new one', () => batch([ann], group.secret), 'bad_request'],
    ['no box at all', () => ({ ...batch(), client_secret_boxes: {} }), 'bad_request'],
    ['a box for no account', () => boxesFor('x'), 'bad_request'],
    ['a box for no member', () => boxesFor(stranger.account), 'bad_request'],
    ['a box of another algorithm', () => boxesFor(ben.account, { alg: 'X' }), 'bad_request'],
    ['a box a byte short', () => boxesFor(ben.account, { sealed_secret: 'A' }), 'bad_request'],
    ['a commitment that is none', () => ({ ...batch(), base_commitment: 'x' }), 'bad_request'],
    ['another group', () => ({ ...batch(), group_id: `grp_${'A'.repeat(22)}` }), 'not_found'],
    ['a group ID that is none', () => ({ ...batch(), group_id: 'grp_x' }), 'bad_request'],
    ['more than 1 MiB', () => ({ ...batch(), more: 'x'.repeat(1_048_576) }), 'request_too_large'],
  ])('%s is refused and harms nothing', async (_, params, code) => {
    stranger = await Person.register(relay, 'stranger');
    await prepare(batch([ann]));
    const before = await relay.dump();
    expect(await prepareCode(params())).toBe(code);
    expect(await relay.dump()).toEqual(before);
  });

  test('only the owner prepares', async () => {
    await group.setRole(ben, 'administrator');
    const before = await relay.dump();
    expect(await prepareCode(batch(), ben)).toBe('forbidden');
    expect(await prepareCode(batch(), cem)).toBe('forbidden');
    const stranger = await Person.register(relay, 'dora');
    expect(await prepareCode({ ...batch(), base_commitment: 'x' }, stranger)).toBe('bad_request');
    expect(await prepareCode(batch(), stranger)).toBe('forbidden');
    expect(await relay.rows('group_stagings')).toEqual(before.group_stagings);
    await group.ban([cem]);
    expect(await prepareCode(batch([ann]), cem)).toBe('forbidden');
    expect(await relay.codeOf(preparing, batch([ann]))).toBe('unauthorized');
    const session = ann.accountSession();
    expect(await relay.codeOf(preparing, batch([ann]), { session })).toBe('forbidden');
  });

  test('a closed group refuses it', async () => {
    const params = batch();
    await group.close();
    expect(await prepareCode(params)).toBe('state_conflict');
  });

  test('05 §12.6: a fault at any write stores no box of a batch', async () => {
    expect(await throughEveryFault(relay, () => prepareCode(batch()))).toBeGreaterThan(4);
    const more = batch([ann], createGroupSecret(nodeRandom));
    expect(await throughEveryFault(relay, () => prepareCode(more))).toBeGreaterThan(3);
  });

  test('05 §12.2: a batch near the size limit is accepted', async () => {
    const params = { ...batch(), note: 'x'.repeat(1_000_000) };
    expect(await prepareCode(params)).toBe('ok');
  });
});

describe('05 §13.27: committing', () => {
  test('puts the new secret into force for every member, in a new epoch', async () => {
    const former = group.secret;
    await prepare(batch());
    const body = group.rotation(next);
    await group.write(committing, body);
    group.secret = next;
    expect(relay.takeNotices()).toEqual([timeline(2)]);
    const { state } = await readChain(relay, group, cem);
    expect(state).toMatchObject({
      epoch: 2,
      sequence: 2,
      client_secret_commitment: body.client_secret_commitment,
      head: group.head,
    });
    for (const person of [ann, ben, cem]) {
      const page = await readPage(relay, group, person);
      expect(shape(page)).toBe(person === ann ? '0* 1 2*' : '1* 2*');
      const secrets = verified(await readKeys(relay, group, person));
      expect(secrets.get(1)).toBe(encodeBase64url(former));
      expect(secrets.get(2)).toBe(encodeBase64url(next));
    }
  });

  test('stores the signed object unchanged, with unknown members', async () => {
    await prepare(batch());
    const { device_signature: _, ...bare } = group.rotation(next);
    const body = group.sign({ ...bare, note: { deep: 'é' } });
    await group.write(committing, body);
    const params = { group_id: group.groupId, after: 1 };
    expect(await relay.call('group.sync', params, { session: ben.session() })).toMatchObject({
      events: [{ sequence: 2, epoch: 2, payload: body }],
    });
  });

  test('leaves intervals unchanged and deletes the staging', async () => {
    await prepare(batch());
    const before = await relay.dump();
    await commit();
    const after = await relay.dump();
    expect(after.group_intervals).toEqual(before.group_intervals);
    expect(after.group_stagings).toEqual([]);
    expect(await commitCode(group.rotation(next))).toBe('state_conflict');
  });

  test('an account that joins afterwards opens the box of the approval', async () => {
    await prepare(batch());
    await commit();
    const dora = await Person.register(relay, 'dora');
    await group.admit(dora);
    expect(await lastSecret(dora)).toBe(encodeBase64url(next));
    expect(await lastSecret(ben)).toBe(encodeBase64url(next));
  });

  test('05 §5.1: a repeat has an old head', async () => {
    await prepare(batch());
    const body = group.rotation(next);
    await group.write(committing, body);
    expect(await commitCode(body)).toBe('state_conflict');
  });

  test('boxes that do not cover all members are refused, and stay', async () => {
    await prepare(batch([ann, ben]));
    const before = await relay.dump();
    expect(await commitCode()).toBe('state_conflict');
    expect(await relay.dump()).toEqual(before);
    await prepare(batch([cem]));
    await commit();
    expect(await lastSecret(cem)).toBe(encodeBase64url(next));
  });

  test('without a staging, with another commitment or an old head it is refused', async () => {
    expect(await commitCode()).toBe('state_conflict');
    await prepare(batch());
    const before = await relay.dump();
    const other = createGroupSecret(nodeRandom);
    expect(await commitCode(group.rotation(other))).toBe('state_conflict');
    expect(await commitCode(group.rotation(group.secret))).toBe('state_conflict');
    const stale = group.rotation(next);
    expect(await relay.dump()).toEqual(before);
    await group.update({ name: 'other' });
    expect(await commitCode(stale)).toBe('state_conflict');
    await commit();
  });

  test('a commit is accepted until the last second', async () => {
    await prepare(batch());
    relay.clock.advance(period - 1);
    const dump = await relay.dump();
    relay.clock.advance(1);
    expect(await commitCode()).toBe('state_conflict');
    expect(await relay.dump()).toEqual(dump);
    relay.clock.advance(-1);
    expect(await commitCode()).toBe('ok');
  });

  test('05 §12.6: a staging that expires while the signature is verified is expired', async () => {
    await prepare(batch());
    relay.clock.advance(period - 1);
    relay.meanwhile = async () => relay.clock.advance(1);
    expect(await commitCode()).toBe('state_conflict');
  });

  test('only the owner commits', async () => {
    await prepare(batch());
    await group.setRole(ben, 'administrator');
    const by = (person: Person) => {
      const { device_signature: _, ...bare } = group.rotation(next);
      return group.sign(bare, { by: person });
    };
    expect(await commitCode(by(ben), ben)).toBe('forbidden');
    expect(await commitCode(by(cem), cem)).toBe('forbidden');
    const dora = await Person.register(relay, 'dora');
    expect(await commitCode(by(dora), dora)).toBe('forbidden');
    expect(await commitCode(by(ben), ann)).toBe('invalid_signature');
    await group.ban([cem]);
    expect(await commitCode(by(cem), cem)).toBe('forbidden');
  });

  test.each([
    ['another type', { $type: 'x' }, 'bad_request'],
    ['a commitment that is none', { client_secret_commitment: 'sha256:x' }, 'bad_request'],
    ['a hash that is none', { prev_hash: 'x' }, 'bad_request'],
    ['a key that is none', { owner_encryption_public_key: 'AA' }, 'bad_request'],
    ['a group that is not here', { group_id: `grp_${'A'.repeat(22)}` }, 'not_found'],
    [
      'another owner key than was signed',
      { owner_encryption_public_key: pointless },
      'invalid_signature',
    ],
  ])('%s', async (_, facts, code) => {
    await prepare(batch());
    const { device_signature, ...bare } = group.rotation(next);
    const body = group.sign({ ...bare, ...facts });
    const sent = code === 'invalid_signature' ? { ...body, device_signature } : body;
    expect(await commitCode(sent)).toBe(code);
  });

  test('a closed group refuses it', async () => {
    await prepare(batch());
    await group.close();
    expect(await commitCode()).toBe('state_conflict');
  });

  test('05 §12.6: a fault at any write leaves no trace', async () => {
    await prepare(batch());
    await group.requestRecovery(ann);
    const body = group.rotation(next, newMemberKey());
    expect(await throughEveryFault(relay, () => commitCode(body))).toBeGreaterThan(5);
  });
});

describe("05 §13.27: the owner's own new key", () => {
  test('is in force with the new epoch; the former key opens earlier epochs', async () => {
    const former = group.secret;
    await group.rotate(newMemberKey());
    const { state } = await readChain(relay, group, ben);
    const { publicKey } = group.keyOf(ann);
    expect(state.members.get(ann.account)?.member_encryption_public_key).toBe(publicKey);
    const secrets = verified(await readKeys(relay, group, ann));
    const [old, current] = [encodeBase64url(former), encodeBase64url(group.secret)];
    expect([...secrets.values()]).toEqual([old, old, current]);
  });

  test('must differ from the current key', async () => {
    await prepare(batch());
    expect(await commitCode(group.rotation(next, group.keyOf(ann)))).toBe('bad_request');
    expect(await commitCode()).toBe('ok');
  });

  test('leaves the intervals of all devices unchanged', async () => {
    await readPage(relay, group, ann, { device: 'laptop' });
    const { group_intervals } = await relay.dump();
    await group.rotate(newMemberKey());
    expect(await relay.rows('group_intervals')).toEqual(group_intervals);
    expect(shape(await readPage(relay, group, ann, { device: 'laptop' }))).toBe('1* 2*');
  });

  test("ends the owner's recovery request, and notifies the accounts that may see it", async () => {
    await group.setRole(ben, 'administrator');
    await group.requestRecovery(ann);
    await group.requestRecovery(cem);
    relay.takeNotices();
    await group.rotate(newMemberKey());
    expect(relay.takeNotices()).toEqual([
      timeline(3),
      { kind: 'group-recoveries', group: group.groupId, accounts: [ann.account] },
    ]);
    const params = { group_id: group.groupId };
    expect(
      await relay.call('group.member.recovery.list', params, { session: ann.session() }),
    ).toMatchObject({ requests: [{ request: { account: cem.account } }] });
    await group.recover([cem]);
    expect(await lastSecret(cem)).toBe(encodeBase64url(group.secret));
  });

  test("if absent, the owner's recovery request stays", async () => {
    await group.requestRecovery(ann);
    relay.takeNotices();
    await group.rotate();
    expect(relay.takeNotices()).toEqual([timeline(2)]);
    await group.recover([ann]);
  });

  test('publishes no notice for an expired request', async () => {
    await group.requestRecovery(ann);
    relay.clock.advance(relay.context.limits.groupRecoveryWait);
    relay.takeNotices();
    await group.rotate(newMemberKey());
    expect(relay.takeNotices()).toEqual([timeline(2)]);
  });
});

describe('05 §13.26: changes during a preparation', () => {
  beforeEach(() => prepare(batch()));

  test('an account that joined needs its own box', async () => {
    const dora = await Person.register(relay, 'dora');
    await group.admit(dora);
    expect(await commitCode()).toBe('state_conflict');
    expect(await prepare(batch([dora]))).toMatchObject({ prepared: 4 });
    await commit();
    for (const person of [ann, ben, cem, dora]) {
      expect(await lastSecret(person)).toBe(encodeBase64url(next));
    }
  });

  test.each([
    ['who left', () => group.leave(cem)],
    ['who was removed', () => group.remove([cem])],
    ['who was banned', () => group.ban([cem])],
  ])('%s loses the box; the others are enough', async (_, end) => {
    await end();
    expect(await prepare(batch([ann]))).toMatchObject({ prepared: 2 });
    await commit();
    expect(await lastSecret(ben)).toBe(encodeBase64url(next));
  });

  test('an account that joined again needs a new box', async () => {
    await group.leave(cem);
    await group.admit(cem);
    expect(await commitCode()).toBe('state_conflict');
    expect(await prepare(batch([cem]))).toMatchObject({ prepared: 3 });
    await commit();
    expect(await lastSecret(cem)).toBe(encodeBase64url(next));
  });

  test('an account with a new member key needs a box for that key', async () => {
    const { expires_at } = (await prepare(batch([cem]))) as { expires_at: number };
    relay.clock.advance(10);
    await group.requestRecovery(cem);
    await group.recover([cem]);
    expect(await commitCode()).toBe('state_conflict');
    expect(await prepare(batch([cem]))).toEqual({ prepared: 3, expires_at });
    await commit();
    expect(await lastSecret(cem)).toBe(encodeBase64url(next));
  });

  test('members without a box yet lose none', async () => {
    await prepare(batch([ann], createGroupSecret(nodeRandom)));
    next = createGroupSecret(nodeRandom);
    await prepare(batch([ann, ben]));
    await group.leave(cem);
    expect(await prepare(batch([ben]))).toMatchObject({ prepared: 2 });
    await commit();
  });

  test('no change revives an expired preparation', async () => {
    relay.clock.advance(period);
    await group.leave(cem);
    expect(await prepareCode(batch([ann]))).toBe('state_conflict');
    expect(await commitCode()).toBe('state_conflict');
  });

  test('roles, properties, bans of strangers and unbans keep it valid', async () => {
    const dora = await Person.register(relay, 'dora');
    await group.setRole(ben, 'administrator');
    await group.update({ name: 'other' });
    await group.ban([dora]);
    await group.unban([dora]);
    await commit();
    expect(await lastSecret(ben)).toBe(encodeBase64url(next));
  });

  test('05 §13.27: messages and a relay rotation keep it valid', async () => {
    await group.send(ben, 1);
    await readPage(relay, group, ann, { device: 'laptop' });
    await ann.publishState(await ann.state({ devices: ['phone'] }));
    await relay.runJob(inactiveDevicesJobName);
    expect((await readChain(relay, group, ben)).state).toMatchObject({ sequence: 3, epoch: 2 });
    await commit();
    expect(shape(await readPage(relay, group, ben))).toBe('1* 2 3*');
    expect(await lastSecret(ben)).toBe(encodeBase64url(next));
  });

  test('05 §13.8: a transfer of ownership ends it for good', async () => {
    await group.transfer(ben);
    const { group_stagings, group_dropped_sets } = await relay.dump();
    expect(group_stagings).toEqual([]);
    expect(group_dropped_sets).toEqual([{ group_id: group.groupId, box_set: 1 }]);
    expect(await commitCode(group.rotation(next), ben)).toBe('state_conflict');
    const back = group.link('group.owner.transfer', { new_owner_account: ann.account });
    await group.write('group.owner.transfer', back);
    group.owner = ann;
    expect(await commitCode()).toBe('state_conflict');
    expect(await prepare(batch([ann]))).toMatchObject({ prepared: 1 });
  });

  test('05 §13.8: the new owner prepares one of its own', async () => {
    await group.transfer(ben);
    expect(await prepareCode(batch(), ann)).toBe('forbidden');
    await prepare(batch(), ben);
    await group.write(committing, group.rotation(next));
    expect(await lastSecret(ann)).toBe(encodeBase64url(next));
  });
});
