/** Steps of a sequence, as fast-check generates, shrinks and prints them. */
import fc from 'fast-check';

/** People by number; the names stand for an account with that role at that moment. */
const parts = (owner: number, manager: number, outsider: number) =>
  fc.oneof(
    { weight: 4, arbitrary: fc.nat(4) },
    { weight: owner, arbitrary: fc.constant('owner' as const) },
    { weight: manager, arbitrary: fc.constant('manager' as const) },
    { weight: outsider, arbitrary: fc.constant('outsider' as const) },
    { weight: 2, arbitrary: fc.constant('member' as const) },
  );
const who = parts(2, 2, 1);
export type Who = typeof who extends fc.Arbitrary<infer T> ? T : never;

/** From 8 on also a device that is no longer valid. */
const device = fc.nat(9);
const target = fc.nat(4);
const targets = fc.uniqueArray(target, { minLength: 1, maxLength: 3 });
const rarely = fc.nat(7).map((value) => value === 7);
const half = fc.boolean();
const mostly = fc.nat(3).map((value) => value !== 3);
const which = fc.nat(20);
const newest = fc.oneof(fc.constant(0), which);
const by = { by: who, device };
/** A chain event; `isStale` names an earlier head. */
const link = { ...by, isStale: rarely };
const owners = { ...link, by: parts(12, 1, 1) };
const managers = { ...link, by: parts(5, 7, 1) };
const page = { after: fc.integer({ min: -1, max: 20 }), limit: fc.integer({ min: 1, max: 8 }) };

const step = <K extends string, T extends object>(
  weight: number,
  kind: K,
  parts: { [P in keyof T]: fc.Arbitrary<T[P]> },
) => ({
  weight,
  arbitrary: fc.record<{ kind: K } & T>({ kind: fc.constant(kind), ...parts } as never),
});

/** Absent in most cases. */
const seldom = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary });

export const steps = fc.oneof(
  // What a step shrinks to: nothing happens.
  { withCrossShrink: true },
  step(2, 'wait', {
    seconds: fc.oneof(
      { weight: 12, arbitrary: fc.nat(300) },
      { weight: 2, arbitrary: fc.nat(2_000) },
      { weight: 1, arbitrary: fc.constant(700_000) },
    ),
  }),
  step(3, 'end', { which: fc.nat(3), isEarly: half }),
  step(2, 'update', {
    ...owners,
    name: seldom(fc.constantFrom('club', 'team')),
    capacity: seldom(fc.integer({ min: 2, max: 8 })),
    policy: seldom(
      fc.constantFrom('administrators', 'members_targeted', 'members_shareable' as const),
    ),
  }),
  step(3, 'role', {
    ...owners,
    target: fc.nat(9),
    role: fc.constantFrom('administrator', 'member' as const),
  }),
  step(2, 'transfer', { ...owners, target: fc.nat(9) }),
  step(1, 'close', { ...owners, isMeant: rarely }),
  step(4, 'invite', {
    ...by,
    by: parts(6, 6, 1),
    invitee: seldom(target),
    maxUses: fc.option(fc.integer({ min: 1, max: 3 }), { nil: undefined, freq: 2 }),
    life: fc.integer({ min: 100, max: 6_000 }),
    again: seldom(which),
  }),
  step(1, 'resolve-invite', { ...by, which }),
  step(2, 'revoke', { ...by, which }),
  step(8, 'apply', { ...by, by: parts(0, 0, 8), which: newest, again: rarely }),
  step(8, 'approve', { ...managers, targets, isWrong: rarely, all: mostly }),
  step(2, 'reject-applications', { ...managers, targets, all: mostly }),
  step(2, 'leave', link),
  step(2, 'remove', { ...managers, targets, all: half }),
  step(2, 'ban', { ...managers, targets, all: half }),
  step(2, 'unban', { ...managers, targets, all: half }),
  step(6, 'ask-recovery', { ...by, again: rarely }),
  step(4, 'recover', { ...managers, targets, isWrong: rarely, all: mostly }),
  step(2, 'reject-recoveries', { ...managers, targets, all: mostly }),
  step(6, 'prepare', {
    ...owners,
    targets,
    all: mostly,
    isFresh: fc.nat(3).map((value) => value === 3),
    newKey: half,
    isWrong: rarely,
  }),
  step(6, 'commit', owners),
  step(6, 'send', { ...by, again: seldom(which), isChanged: rarely, isOld: rarely }),
  step(4, 'sync', { ...by, ...page }),
  step(4, 'keys', {
    ...by,
    after: fc.integer({ min: -1, max: 12 }),
    limit: fc.integer({ min: 1, max: 4 }),
  }),
  step(1, 'subscribe', by),
  step(1, 'resolve', { ...by, which: seldom(which) }),
  step(1, 'lists', { ...by, limit: fc.integer({ min: 1, max: 3 }) }),
  step(3, 'devices', { whose: target, laptop: half }),
  step(4, 'job', { which: fc.nat(3) }),
  step(1, 'restart', {}),
);
export type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;
