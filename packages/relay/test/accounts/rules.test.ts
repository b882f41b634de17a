import { describe, expect, test } from 'vitest';
import {
  homeFrom,
  isRepeatedRoute,
  isRepeatedState,
  observedRoute,
  usableState,
} from '../../src/accounts/rules.ts';
import type { KnownRoute } from '../../src/accounts/store.ts';

const here = '0x1111111111111111111111111111111111111111';
const there = '0x2222222222222222222222222222222222222222';
const known = (facts: Partial<KnownRoute> = {}): KnownRoute => ({
  revision: 9,
  content: 'content',
  relayId: here,
  ...{ expiresAt: 1_000, heldUntil: 1_000 },
  conflict: false,
  text: '{}',
  ...facts,
});
const codeOf = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe('01 §15, 03 §3.4: home by the route of highest revision', () => {
  test.each([
    ['nothing known', undefined, { kind: 'unknown' }],
    ['this relay', known(), { kind: 'local' }],
    ['its last second', known({ heldUntil: 101 }), { kind: 'local' }],
    ['run out', known({ heldUntil: 100 }), { kind: 'unknown' }],
    ['another relay', known({ relayId: there }), { kind: 'elsewhere', relayId: there }],
    ['run out elsewhere', known({ relayId: there, heldUntil: 100 }), { kind: 'unknown' }],
    ['a conflict', known({ conflict: true }), { kind: 'conflict' }],
    ['a conflict that has run out', known({ conflict: true, heldUntil: 1 }), { kind: 'conflict' }],
  ])('%s', (_, route, home) => {
    expect(homeFrom(route, here, 100)).toEqual(home);
  });
});

describe('01 §10.1: a submitted state compared with the stored one', () => {
  const state = (revision: number, text = 'text') => ({ revision, text });
  test.each([
    ['none stored', state(1), undefined, false],
    ['higher', state(2), state(1), false],
    ['identical', state(1), state(1), true],
    ['the same revision, other content', state(1, 'other'), state(1), 'state_conflict'],
    ['lower', state(1), state(2), 'stale_state'],
    ['lower with the same content', state(1), state(2), 'stale_state'],
  ])('%s', (_, submitted, stored, outcome) => {
    expect(codeOf(() => isRepeatedState(submitted, stored))).toBe(outcome);
  });
});

describe('03 §9: a route to publish compared with the known one', () => {
  test.each([
    ['none known', undefined, false],
    ['a lower one known', known({ revision: 8 }), false],
    ['the same', known(), true],
    ['the same revision, other content', known({ content: 'other' }), 'state_conflict'],
    ['the same, but in conflict with another', known({ conflict: true }), 'state_conflict'],
    ['a higher one known', known({ revision: 10 }), 'stale_state'],
    ['a higher one in conflict', known({ revision: 10, conflict: true }), 'stale_state'],
    ['a lower one in conflict', known({ revision: 8, conflict: true }), false],
  ])('%s', (_, stored, outcome) => {
    expect(codeOf(() => isRepeatedRoute(known(), stored))).toBe(outcome);
  });
});

describe('03 §3.4: a route found elsewhere compared with the known one', () => {
  test.each([
    ['none known', undefined, 'accepted', known()],
    ['a lower one', known({ revision: 8, conflict: true }), 'accepted', known()],
    ['a higher one', known({ revision: 10 }), 'stale', undefined],
    ['the same', known({ text: 'other signatures' }), 'same', undefined],
    ['the same of a conflict', known({ conflict: true }), 'conflict', undefined],
    [
      'other content',
      known({ content: 'other' }),
      'conflict',
      known({ content: 'other', conflict: true }),
    ],
    ['a third content', known({ content: 'other', conflict: true }), 'conflict', undefined],
  ])('%s', (_, stored, observation, next) => {
    expect(observedRoute(known(), stored)).toEqual({ observation, next });
  });
});

describe('03 §9: the state that a route puts into force', () => {
  const stored = { revision: 5, text: 'stored' };
  const staged = (revision: number) => ({ revision, text: 'staged' });
  test.each([
    ['nothing', undefined, undefined, undefined, 'state_conflict'],
    ['the stored one while at home', known(), stored, undefined, 'stored'],
    [
      'not the one stored before a move',
      known({ relayId: there }),
      stored,
      undefined,
      'state_conflict',
    ],
    [
      'nor one stored before a conflict',
      known({ conflict: true }),
      stored,
      undefined,
      'state_conflict',
    ],
    ['a staged one on arrival', undefined, undefined, staged(1), 'staged'],
    ['the staged one after a move', known({ relayId: there }), stored, staged(5), 'staged'],
    ['the higher of both: staged', known(), stored, staged(6), 'staged'],
    ['the higher of both: stored', known(), stored, staged(4), 'stored'],
  ])('%s', (_, route, storedState, stagedState, outcome) => {
    const options = { known: route, relayId: here, stored: storedState, staged: stagedState };
    expect(codeOf(() => usableState(options).state.text)).toBe(outcome);
  });
});
