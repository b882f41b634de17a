import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NicknameUpdate } from '../../src/groups/nicknames.ts';
import { applyNickname, forgetNicknames, type GroupNicknames } from '../../src/index.ts';
import { alice, bob, carol, dave, Story } from './fixture.ts';

/** Bob since 1, Carol since 2, Dave outside. */
const story = new Story();
story.admit(bob);
story.admit(carol);
const { group } = story;
const none: GroupNicknames = new Map();
const apply = (known: GroupNicknames, update: NicknameUpdate, reader = alice.account) =>
  applyNickname(known, { group, reader }, update);
const of = (account: string, nickname: string | null, sequence: number) => ({
  account,
  nickname,
  sequence,
});

describe('05 §14.4: nicknames', () => {
  test('the greatest sequence wins, not the order of arrival', () => {
    const updates = fc.uniqueArray(
      fc.record({
        nickname: fc.option(fc.string(), { nil: null }),
        sequence: fc.integer({ min: 3, max: 50 }),
      }),
      { selector: (update) => update.sequence, minLength: 1 },
    );
    fc.assert(
      fc.property(updates, (list) => {
        let known = none;
        for (const { nickname, sequence } of list) {
          known = apply(known, of(bob.account, nickname, sequence)).nicknames;
        }
        const newest = list.reduce((a, b) => (a.sequence > b.sequence ? a : b));
        expect(known.get(bob.account)).toEqual(newest);
        for (const each of list) {
          const again = apply(known, of(bob.account, each.nickname, each.sequence));
          expect(again.result).toBe(each === newest ? 'duplicate' : 'older');
          expect(again.nicknames).toBe(known);
        }
      }),
    );
  });

  test('clearing counts as the newest update', () => {
    const cleared = apply(none, of(bob.account, null, 9)).nicknames;
    expect(cleared.get(bob.account)).toEqual({ nickname: null, sequence: 9 });
    expect(apply(cleared, of(bob.account, 'old', 8)).result).toBe('older');
  });

  test('it counts only after the start of both memberships; nonmembers have none', () => {
    expect(apply(none, of(bob.account, 'x', 1)).result).toBe('previous_membership');
    expect(apply(none, of(bob.account, 'x', 2)).result).toBe('applied');
    expect(apply(none, of(bob.account, 'x', 2), carol.account).result).toBe('previous_membership');
    expect(apply(none, of(bob.account, 'x', 3), carol.account).result).toBe('applied');
    expect(apply(none, of(dave.account, 'x', 9)).result).toBe('previous_membership');
    expect(apply(none, of(bob.account, 'x', 9), dave.account).result).toBe('previous_membership');
  });

  test('accounts are apart, and duplicates allowed', () => {
    const one = apply(none, of(bob.account, 'x', 5)).nicknames;
    const two = apply(one, of(carol.account, 'x', 4)).nicknames;
    expect([...two.values()].map(({ nickname }) => nickname)).toEqual(['x', 'x']);
    expect(one.size).toBe(1);
  });

  test('the end of a membership forgets its nickname, the reader’s own end forgets all', () => {
    const one = apply(none, of(bob.account, 'x', 5)).nicknames;
    const two = apply(one, of(carol.account, 'y', 4)).nicknames;
    const after = (left: string[]) => [...forgetNicknames(two, { left }, alice.account).keys()];
    expect(after([bob.account])).toEqual([carol.account]);
    expect(after([alice.account])).toEqual([]);
    expect(forgetNicknames(two, { left: [dave.account] }, alice.account)).toBe(two);
    expect(forgetNicknames(two, { left: [] }, alice.account)).toBe(two);
  });
});
