/** Steps of a channel as fast-check makes, shrinks and prints them. */
import fc from 'fast-check';

/** Ann owns the channel; ben and cem come and go as moderators, dora never is one. */
export const callers = ['ann phone', 'ann laptop', 'ben phone', 'cem phone', 'dora phone'] as const;
const caller = fc.constantFrom(...callers);
const writer = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...callers.slice(0, 3)) },
  { weight: 2, arbitrary: caller },
);
const owner = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...callers.slice(0, 2)) },
  { weight: 1, arbitrary: caller },
);

/** Most calls have no flaw. */
const flaw = <const T extends string>(...others: readonly T[]) =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constant('none' as const) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        'signature' as const,
        'context' as const,
        'channel' as const,
        ...others,
      ),
    },
  );

/** Absent, removed, or a value. */
const patched = <T>(values: fc.Arbitrary<T>) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constant(null) },
    { weight: 3, arbitrary: values },
  );
const present = <T>(values: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 1, arbitrary: fc.constant(undefined) }, { weight: 3, arbitrary: values });

const words = fc.constantFrom('one', 'two', 'three');
/** Attachments by number; twice the same is refused. */
const attachments = fc.oneof(
  { weight: 6, arbitrary: fc.uniqueArray(fc.nat(2), { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.constant([1, 1]) },
);
/** Unknown members at the root; `proto` is of the name `__proto__`, an ordinary one. */
const value = fc.constantFrom(1, '', 'x', [], { a: 1 }, { b: { c: [] } }, false);
const extras = <T>(member: fc.Arbitrary<T>) =>
  fc.record({ topic: member, mood: member, proto: member });

/** One of all posts ever made, counted from the newest, or sometimes a plain position. */
const target = fc.oneof(
  { weight: 7, arbitrary: fc.record({ readable: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.record({ post: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ position: fc.integer({ min: -1, max: 40 }) }) },
);

/** Moderators of an update; the owner, or an account twice, is refused. */
const moderators: readonly (readonly ('ann' | 'ben' | 'cem')[])[] = [
  [],
  ['ben'],
  ['cem'],
  ['ben', 'cem'],
  ['ben'],
  ['ann'],
  ['ben', 'ben'],
];

const step = <K extends string, T extends object>(
  weight: number,
  kind: K,
  parts: { [P in keyof T]: fc.Arbitrary<T[P]> },
) => ({
  weight,
  arbitrary: fc.record<{ kind: K } & T>({ kind: fc.constant(kind), ...parts } as never),
});

const position = fc.option(fc.integer({ min: -1, max: 40 }), { nil: undefined, freq: 2 });
const limit = fc.constantFrom(1, 2, 3, 5, 7, 600);

export const steps = fc.oneof(
  // What a step shrinks to: time passes.
  { withCrossShrink: true },
  step(5, 'wait', { seconds: fc.constantFrom<number[]>(0, 1, 9, 10, 11, 40, 100) }),
  step(12, 'post', {
    by: writer,
    body: present(words),
    attachments: present(attachments),
    extras: extras(present(value)),
    flaw: flaw('null'),
  }),
  step(5, 'repeat', {
    by: fc.option(caller, { nil: undefined }),
    which: fc.nat(5),
    change: fc.constantFrom('none' as const, 'none' as const, 'body' as const, 'device' as const),
  }),
  step(16, 'edit', {
    by: writer,
    target,
    body: patched(words),
    attachments: patched(attachments),
    extras: extras(patched(value)),
    flaw: flaw('message_id', 'null'),
  }),
  step(6, 'delete', {
    by: writer,
    target,
    reason: fc.constantFrom(undefined, undefined, 'Off topic', ' '),
    flaw: flaw('null'),
  }),
  step(3, 'report', { by: caller, target, reason: fc.constantFrom('Spam', 'Rude', ' ') }),
  step(6, 'update', {
    by: owner,
    moderators: fc.constantFrom(...moderators),
    description: fc.constantFrom(undefined, '', 'About', ' '),
    topic: present(value),
    ahead: fc.oneof(
      { weight: 10, arbitrary: fc.constant(1) },
      { weight: 1, arbitrary: fc.constantFrom(0, 2) },
    ),
    skew: fc.oneof(
      { weight: 8, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.constantFrom(-301, -300, 300, 301) },
    ),
    flaw: flaw('null', 'created_at', 'closed'),
  }),
  step(1, 'close', {
    by: owner,
    isMeant: fc.nat(2).map((chance) => chance === 2),
    ahead: fc.constantFrom(0, 1, 1, 1, 2),
    skew: fc.constantFrom(-301, 0, 0, 0, 300),
    flaw: flaw(),
  }),
  step(1, 'create', { by: caller, flaw: flaw() }),
  step(5, 'read', { by: caller, before: position, after: position, limit }),
  step(3, 'resolve', { by: caller, revision: position }),
  step(6, 'follow', { limit }),
  step(2, 'late', { limit }),
  step(5, 'job', {}),
  step(2, 'restart', { retention: fc.constantFrom<number[]>(10, 50, 200, 200) }),
);
export type Step = typeof steps extends fc.Arbitrary<infer T> ? T : never;
export type StepOf<K extends Step['kind']> = Extract<Step, { kind: K }>;
