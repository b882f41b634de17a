import { describe, expect, test } from 'vitest';
import {
  checkGroupBody,
  checkRotationCommit,
  decideGroupEvent,
  type GroupChainKind,
  type GroupSecretBox,
  type JsonObject,
  prepareRotation,
  type RotationStaging,
  stagingAfter,
} from '../../src/index.ts';
import {
  alice,
  bob,
  carol,
  codeOf,
  commitment,
  dave,
  memberOf,
  network,
  now,
  type Person,
  Story,
} from './kit.ts';

const next = `sha256:${'A'.repeat(43)}`;
const period = 600;

function trio(): Story {
  const story = new Story();
  story.admit(bob, carol);
  return story;
}

/** What is in a box does not matter here, only whose it is. */
const box = (mark: string) => ({ enc: mark }) as unknown as GroupSecretBox;
const boxes = (mark: string, ...who: Person[]) =>
  Object.fromEntries(who.map((each) => [each.account, box(`${mark}${each.account}`)]));
const batch = (mark: string, who: Person[], changes: JsonObject = {}) => ({
  base_commitment: commitment,
  client_secret_commitment: next,
  client_secret_boxes: boxes(mark, ...who),
  ...changes,
});
const call = { account: alice.account, now, period };
const prepare = (
  { group }: Story,
  staging: RotationStaging | undefined,
  input = batch('1', [alice]),
  by: typeof call = call,
) => prepareRotation({ group, staging }, input, by);

describe('05 §13.26: preparing', () => {
  test('the first batch fixes account, commitments and expiry', () => {
    expect(prepare(trio(), undefined)).toEqual({
      account: alice.account,
      base_commitment: commitment,
      client_secret_commitment: next,
      expires_at: now + period,
      boxes: new Map(Object.entries(boxes('1', alice))),
    });
  });

  test('later batches add and replace by account; the expiry stays, the old value too', () => {
    const story = trio();
    const first = prepare(story, undefined);
    const later = { ...call, now: now + 10 };
    const second = prepare(story, first, batch('2', [alice, bob]), later);
    expect(second.boxes).toEqual(new Map(Object.entries(boxes('2', alice, bob))));
    expect(second.expires_at).toBe(now + period);
    expect(first.boxes.size).toBe(1);
    const third = prepare(story, second, batch('3', [carol]), later);
    expect(third.boxes.size).toBe(3);
  });

  test('another new commitment replaces the staging whole', () => {
    const story = trio();
    const first = prepare(story, undefined, batch('1', [alice, bob]));
    const other = `sha256:${'B'.repeat(42)}A`;
    const changes = { client_secret_commitment: other };
    const later = { ...call, now: now + 10 };
    const second = prepare(story, first, batch('2', [carol], changes), later);
    expect(second.client_secret_commitment).toBe(other);
    expect(second.expires_at).toBe(now + 10 + period);
    expect([...second.boxes.keys()]).toEqual([carol.account]);
  });

  test('an expired preparation of the same commitment cannot be continued', () => {
    const story = trio();
    const first = prepare(story, undefined);
    const at = (time: number) => () =>
      prepare(story, first, batch('2', [bob]), { ...call, now: time });
    expect(at(now + period - 1)).not.toThrow();
    expect(codeOf(at(now + period))).toBe('state_conflict');
  });

  test('only the owner of an open group prepares, on the current commitment, for members', () => {
    const story = trio();
    const by = (who: Person) => ({ ...call, account: who.account });
    for (const who of [bob, dave]) {
      expect(codeOf(() => prepare(story, undefined, batch('1', [alice]), by(who)))).toBe(
        'forbidden',
      );
    }
    const base = batch('1', [alice], { base_commitment: next });
    expect(codeOf(() => prepare(story, undefined, base))).toBe('state_conflict');
    const stranger = batch('1', [alice, dave]);
    expect(codeOf(() => prepare(story, undefined, stranger))).toBe('bad_request');
    const staged = prepare(story, undefined);
    const foreign = { ...staged, account: bob.account };
    expect(codeOf(() => prepare(story, foreign))).toBe('state_conflict');
    const rebased = { ...staged, base_commitment: next };
    expect(codeOf(() => prepare(story, rebased))).toBe('state_conflict');
    story.do(alice, 'group.close');
    expect(codeOf(() => prepare(story, undefined))).toBe('state_conflict');
  });
});

describe('05 §13.26: what happens meanwhile', () => {
  const staged = (story: Story) => prepare(story, undefined, batch('1', [alice, bob, carol]));
  /** Appends an event and gives the staging after it, with the accounts it still has. */
  const after = (kind: GroupChainKind, by: Person, members: JsonObject) => {
    const story = trio();
    const staging = staged(story);
    const verified = story.verified(story.event(by, kind, members));
    const result = stagingAfter(staging, decideGroupEvent(story.group, verified));
    if (result !== undefined) expect(result.expires_at).toBe(staging.expires_at);
    return result && [...result.boxes.keys()];
  };
  const all = [alice, bob, carol].map((each) => each.account);
  const withoutBob = all.filter((account) => account !== bob.account);

  test('updates, roles, bans of strangers and admissions keep everything', () => {
    expect(after('group.update', alice, { name: 'x' })).toEqual(all);
    const role = { account: bob.account, role: 'administrator' };
    expect(after('group.role.update', alice, role)).toEqual(all);
    expect(after('group.member.ban', alice, { accounts: [dave.account] })).toEqual(all);
    const members = [memberOf(dave)];
    expect(after('group.application.approval', alice, { members })).toEqual(all);
  });

  test('leaving, removal, a ban of a member and a new key drop that box only', () => {
    expect(after('group.member.leave', bob, { account: bob.account })).toEqual(withoutBob);
    expect(after('group.member.removal', alice, { accounts: [bob.account] })).toEqual(withoutBob);
    const accounts = [bob.account, dave.account];
    expect(after('group.member.ban', alice, { accounts })).toEqual(withoutBob);
    const members = [memberOf(bob, dave.memberKey)];
    expect(after('group.member.recovery.approval', alice, { members })).toEqual(withoutBob);
  });

  test('a transfer and a rotation end it', () => {
    const transfer = { new_owner_account: bob.account };
    expect(after('group.owner.transfer', alice, transfer)).toBeUndefined();
    const rotation = { client_secret_commitment: next };
    expect(after('group.secret.rotation', alice, rotation)).toBeUndefined();
  });
});

describe('05 §13.27: committing', () => {
  const story = trio();
  const staging = prepare(story, undefined, batch('1', [alice, bob, carol]));
  const bodyOf = (client_secret_commitment = next) =>
    checkGroupBody(
      network,
      'group.secret.rotation',
      story.body(alice, 'group.secret.rotation', { client_secret_commitment }),
    ).body;
  const commit = (changes: Partial<RotationStaging> | undefined, by = {}, body = bodyOf()) =>
    checkRotationCommit(
      { group: story.group, staging: changes && { ...staging, ...changes } },
      body,
      { account: alice.account, now, ...by },
    );

  test('a staging in time that covers all members can be committed', () => {
    expect(commit({})).toEqual(staging);
    expect(commit({}, { now: now + period - 1 })).toEqual(staging);
  });

  test('everything else is a conflict and leaves the staging as it is', () => {
    const conflicts = [
      () => commit(undefined),
      () => commit({}, { now: now + period }),
      () => commit({}, { account: bob.account }),
      () => commit({}, {}, bodyOf(`sha256:${'B'.repeat(42)}A`)),
      () => commit({ base_commitment: next }),
      () => commit({ boxes: new Map([...staging.boxes].slice(1)) }),
    ];
    for (const each of conflicts) expect(codeOf(each)).toBe('state_conflict');
    expect(staging.boxes.size).toBe(3);
  });
});
