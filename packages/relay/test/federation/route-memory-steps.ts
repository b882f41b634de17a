/** What happens to one account's routes in the model test: random steps. */
import fc from 'fast-check';

type Side = 0 | 1;

/** Routes of one account that differ in revision, content, relay, times and validity. */
export interface RouteFacts {
  readonly revision: number;
  /** Which other relay it names; the registry does not list the last one. */
  readonly relay: 0 | 1 | 2;
  /** Seconds after the start. */
  readonly updated: number;
  readonly expires: number;
  /** What is changed after it was signed. */
  readonly forged?: 'account' | 'relay' | 'revision';
}

export type Step =
  | { readonly kind: 'put'; readonly at: Side; readonly route: RouteFacts }
  | { readonly kind: 'replay'; readonly at: Side; readonly index: number }
  | {
      readonly kind: 'faultyPut';
      readonly at: Side;
      readonly route: RouteFacts;
      /** Writes that succeed before one that fails; the commit fails without a number. */
      readonly writes: number | undefined;
    }
  | { readonly kind: 'observe'; readonly at: Side; readonly route: RouteFacts }
  | { readonly kind: 'lookUp'; readonly at: Side }
  | { readonly kind: 'resolve'; readonly at: Side }
  | {
      readonly kind: 'publish';
      readonly at: Side;
      readonly revision: number;
      readonly lives: number;
    }
  | { readonly kind: 'clock'; readonly at: Side; readonly seconds: number }
  | { readonly kind: 'restart'; readonly at: Side }
  | { readonly kind: 'partition'; readonly isCut: boolean };

export const start = 1_750_000_000;
const side = fc.constantFrom<Side>(0, 1);
/** Seconds after the start; the last one was signed too far ahead. */
const periods = [
  { updated: 0, expires: 500 },
  { updated: 0, expires: 2_000 },
  { updated: 0, expires: 100_000 },
  { updated: 4_000, expires: 100_000 },
] as const;
const facts: fc.Arbitrary<RouteFacts> = fc
  .record({
    revision: fc.integer({ min: 1, max: 4 }),
    relay: fc.constantFrom<0 | 1 | 2>(0, 0, 0, 1, 1, 2),
    period: fc.constantFrom(...periods),
    forged: fc.constantFrom(undefined, undefined, undefined, 'account', 'relay', 'revision'),
  })
  .map(({ period, forged, ...route }) => ({ ...route, ...period, ...(forged && { forged }) }));

const step = <K extends Step['kind']>(
  kind: K,
  members: { [M in keyof Omit<Extract<Step, { kind: K }>, 'kind'>]: fc.Arbitrary<unknown> },
) => fc.record({ kind: fc.constant(kind), ...members }) as unknown as fc.Arbitrary<Step>;

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: step('put', { at: side, route: facts }) },
    { weight: 4, arbitrary: step('replay', { at: side, index: fc.nat(4) }) },
    {
      weight: 2,
      arbitrary: step('faultyPut', {
        ...{ at: side, route: facts },
        writes: fc.constantFrom(undefined, 0, 1, 2, 3),
      }),
    },
    { weight: 1, arbitrary: step('observe', { at: side, route: facts }) },
    { weight: 2, arbitrary: step('lookUp', { at: side }) },
    { weight: 1, arbitrary: step('resolve', { at: side }) },
    {
      weight: 3,
      arbitrary: step('publish', {
        ...{ at: side, revision: fc.integer({ min: 1, max: 7 }) },
        lives: fc.constantFrom(300, 5_000, 100_000),
      }),
    },
    {
      weight: 2,
      arbitrary: step('clock', { at: side, seconds: fc.constantFrom(-600, 30, 400, 2_500) }),
    },
    { weight: 1, arbitrary: step('restart', { at: side }) },
    { weight: 1, arbitrary: step('partition', { isCut: fc.boolean() }) },
  ),
  { maxLength: 25 },
);
