import { describe, expect, test } from 'vitest';
import type { RotationTerms } from '../../src/groups/rotation.ts';
import {
  checkGroupBody,
  checkRotationCommit,
  decideGroupEvent,
  type GroupChainKind,
  type GroupSecretBox,
  prepareRotation,
  type RotationStaging,
  stagingAfter,
} from '../../src/index.ts';
import type { JsonObject } from '../../src/json/index.ts';
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
} from './fixture.ts';

const next = `sha256:${'A'.repeat(43)}`;
const period = 600;

function trio(): Story {
  const story = new Story();
  story.admit(bob, carol);
  return story;
}

/** What is in a box does not matter here, only whose it is. */
const box = { enc: '' } as unknown as GroupSecretBox;
const boxes = (...who: Person[]) => Object.fromEntries(who.map((each) => [each.account, box]));
const batch = (who: Person[], changes: JsonObject = {}) => ({
  base_commitment: commitment,
  client_secret_commitment: next,
  client_secret_boxes: boxes(...who),
  ...changes,
});
const call = { account: alice.account, now, period };
const prepare = (
  { group }: Story,
  staging: RotationTerms | undefined,
  input = batch([alice]),
  by: typeof call = call,
) => prepareRotation({ group, staging }, input, by);
const terms: RotationTerms = {
  account: alice.account,
  base_commitment: commitment,
  client_secret_commitment: next,
  expires_at: now + period,
};

describe('05 §13.26: preparing', () => {
  test('the first batch fixes account, commitments and expiry', () => {
    expect(prepare(trio(), undefined)).toEqual({ begun: terms });
  });

  test('later batches continue it; its terms and the expiry stay', () => {
    const later = { ...call, now: now + 10 };
    const second = prepare(trio(), terms, batch([alice, bob, carol]), later);
    expect(second).toEqual({ continued: terms });
  });

  test('another new commitment begins another preparation, also if the former one expired', () => {
    const other = `sha256:${'B'.repeat(42)}A`;
    for (const passed of [10, period, period + 10]) {
      const later = { ...call, now: now + passed };
      const input = batch([carol], { client_secret_commitment: other });
      const expires_at = now + passed + period;
      expect(prepare(trio(), terms, input, later)).toEqual({
        begun: { ...terms, client_secret_commitment: other, expires_at },
      });
    }
  });

  test('an expired preparation of the same commitment cannot be continued', () => {
    const at = (time: number) => () => prepare(trio(), terms, batch([bob]), { ...call, now: time });
    expect(at(now + period - 1)).not.toThrow();
    expect(codeOf(at(now + period))).toBe('state_conflict');
  });

  test('only the owner of an open group prepares, on the current commitment, for members', () => {
    const story = trio();
    const by = (who: Person) => ({ ...call, account: who.account });
    for (const who of [bob, dave]) {
      expect(codeOf(() => prepare(story, undefined, batch([alice]), by(who)))).toBe('forbidden');
    }
    const base = batch([alice], { base_commitment: next });
    expect(codeOf(() => prepare(story, undefined, base))).toBe('state_conflict');
    const stranger = batch([alice, dave]);
    expect(codeOf(() => prepare(story, undefined, stranger))).toBe('bad_request');
    const foreign = { ...terms, account: bob.account };
    expect(codeOf(() => prepare(story, foreign))).toBe('state_conflict');
    const rebased = { ...terms, base_commitment: next };
    expect(codeOf(() => prepare(story, rebased))).toBe('state_conflict');
    story.do(alice, 'group.close');
    expect(codeOf(() => prepare(story, undefined))).toBe('state_conflict');
  });
});

describe('05 §13.26: what happens meanwhile', () => {
  const after = (kind: GroupChainKind, by: Person, members: JsonObject) => {
    const story = trio();
    const verified = story.verified(story.event(by, kind, members));
    return stagingAfter(decideGroupEvent(story.group, verified));
  };
  const all = { ends: false, withoutBoxOf: [] };
  const withoutBob = { ends: false, withoutBoxOf: [bob.account] };

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
    expect(after('group.owner.transfer', alice, transfer).ends).toBe(true);
    const rotation = { client_secret_commitment: next };
    expect(after('group.secret.rotation', alice, rotation).ends).toBe(true);
  });
});

describe('05 §13.27: committing', () => {
  const story = trio();
  const staging = { ...terms, boxCount: 3, boxSet: 7 };
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
      () => commit({ boxCount: 2 }),
    ];
    for (const each of conflicts) expect(codeOf(each)).toBe('state_conflict');
  });
});
