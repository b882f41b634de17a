import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  noRelationship,
  type Relationship,
  type RelationshipEvent,
  relationshipStep,
} from '../../src/index.ts';

const active: Relationship = { status: 'active', pending: false, awaiting: false };
const state = (members: Partial<Relationship>): Relationship => ({ ...noRelationship, ...members });
const after = (start: Relationship, ...events: RelationshipEvent[]) =>
  events.reduce((at, event) => relationshipStep(at, event).state, start);
const statuses = ['none', 'deleted'] as const;

describe('03 §15.2: the table', () => {
  test.each(statuses)('%s: adding sends the own consent and waits', (status) => {
    expect(relationshipStep(state({ status }), 'user-adds')).toEqual({
      state: state({ status, awaiting: true }),
      effects: ['send-consent'],
    });
  });

  test.each(statuses)('%s and awaiting: a consent establishes, nothing is sent back', (status) => {
    expect(relationshipStep(state({ status, awaiting: true }), 'consent')).toEqual({
      state: active,
      effects: ['save-incoming-grant'],
    });
    const both = state({ status, awaiting: true, pending: true });
    expect(relationshipStep(both, 'consent').state).toEqual(active);
  });

  test.each(statuses)('%s, not awaiting: a consent waits for the user', (status) => {
    expect(relationshipStep(state({ status }), 'consent')).toEqual({
      state: state({ status, pending: true }),
      effects: ['store-request'],
    });
  });

  test.each(statuses)('%s: accepting saves, sends and establishes', (status) => {
    expect(relationshipStep(state({ status, pending: true }), 'user-accepts')).toEqual({
      state: active,
      effects: ['save-incoming-grant', 'send-consent'],
    });
    const both = state({ status, pending: true, awaiting: true });
    expect(relationshipStep(both, 'user-accepts').state).toEqual(active);
  });

  test('active: a consent updates the grant, without request or answer', () => {
    expect(relationshipStep(active, 'consent')).toEqual({
      state: active,
      effects: ['save-incoming-grant'],
    });
  });

  test('active: deleting leaves a tombstone and clears the grants', () => {
    for (const event of ['user-deletes', 'deletion-adopted'] as const) {
      expect(relationshipStep(active, event)).toEqual({
        state: state({ status: 'deleted' }),
        effects: ['clear-grants'],
      });
    }
  });

  test('an adopted deletion ends waiting, and leaves a request for the user to decide', () => {
    const both = state({ awaiting: true, pending: true });
    expect(relationshipStep(both, 'deletion-adopted').state).toEqual(
      state({ status: 'deleted', pending: true }),
    );
  });

  test('an adopted active record establishes the contact from every state', () => {
    for (const start of [noRelationship, state({ status: 'deleted', pending: true }), active]) {
      expect(relationshipStep(start, 'activation-adopted')).toEqual({ state: active, effects: [] });
    }
  });

  test('declining forgets the request and nothing else', () => {
    const both = state({ pending: true, awaiting: true });
    expect(relationshipStep(both, 'user-declines')).toEqual({
      state: state({ awaiting: true }),
      effects: [],
    });
  });

  test('what does not apply changes nothing', () => {
    for (const [start, event] of [
      [active, 'user-adds'],
      [active, 'user-accepts'],
      [noRelationship, 'user-accepts'],
      [noRelationship, 'user-deletes'],
      [state({ status: 'deleted' }), 'user-deletes'],
    ] as const) {
      expect(relationshipStep(start, event)).toEqual({ state: start, effects: [] });
    }
  });
});

describe('03 §15.2: stories', () => {
  test('both sides declare at once: each establishes with the other’s declaration', () => {
    expect(after(noRelationship, 'user-adds', 'consent')).toEqual(active);
  });

  test('a late consent after deletion never revives by itself', () => {
    const deleted = after(noRelationship, 'user-adds', 'consent', 'user-deletes', 'consent');
    expect(deleted).toEqual(state({ status: 'deleted', pending: true }));
    expect(after(deleted, 'user-accepts')).toEqual(active);
  });

  test('deletion while waiting on another device: the answer is a request only', () => {
    const start = after(noRelationship, 'user-adds', 'deletion-adopted', 'consent');
    expect(start).toEqual(state({ status: 'deleted', pending: true }));
  });

  test('after deletion, a new consent and its answer restore the contact', () => {
    const deleted = state({ status: 'deleted' });
    expect(after(deleted, 'user-adds', 'consent')).toEqual(active);
  });
});

const events = fc.array(
  fc.constantFrom<RelationshipEvent>(
    'user-adds',
    'consent',
    'user-accepts',
    'user-declines',
    'user-deletes',
    'deletion-adopted',
    'activation-adopted',
  ),
);

describe('03 §15.2: any sequence of events', () => {
  test('an active relationship has neither flag, and a tombstone stays until both agree', () => {
    fc.assert(
      fc.property(events, (sequence) => {
        let at = noRelationship;
        for (const event of sequence) {
          const { state: next, effects } = relationshipStep(at, event);
          if (next.status === 'active') expect(next).toEqual(active);
          if (at.status !== 'none') expect(next.status).not.toBe('none');
          const established = at.status !== 'active' && next.status === 'active';
          if (established) {
            // Both have agreed: own consent and theirs, or another own device says so.
            const agreed =
              (event === 'consent' && at.awaiting) ||
              (event === 'user-accepts' && at.pending) ||
              event === 'activation-adopted';
            expect(agreed).toBe(true);
          }
          if (effects.includes('send-consent')) expect(event).toMatch(/^user-/);
          const ended = at.status === 'active' && next.status !== 'active';
          if (ended) expect(effects).toContain('clear-grants');
          at = next;
        }
      }),
    );
  });

  test('the same event again without another in between sends nothing new when active', () => {
    fc.assert(
      fc.property(events, (sequence) => {
        const at = after(noRelationship, ...sequence);
        fc.pre(at.status === 'active');
        expect(relationshipStep(at, 'user-adds').effects).toEqual([]);
        expect(relationshipStep(at, 'consent').state).toEqual(at);
      }),
    );
  });
});
