/** Relays of the simulated DHT that are broken on purpose: each must be found. */
import type { RelayLimits } from '../../../src/limits.ts';

/** What is wrong with every honest relay. */
export interface DhtDefect {
  readonly name: string;
  /** What is wrong. */
  readonly what: string;
  readonly limits?: Partial<RelayLimits>;
  readonly flags?: ReadonlySet<DhtFlag>;
}

type DhtFlag =
  | 'accepts-lower'
  | 'unverified'
  | 'no-republication'
  | 'at-once'
  | 'forgets'
  | 'names-farthest'
  | 'keeps-values'
  | 'any-echo'
  | 'trusts-named'
  | 'serves-expired';

const broken = (name: DhtFlag, what: string): DhtDefect => ({
  name,
  what,
  flags: new Set([name]),
});

export const dhtDefects: readonly DhtDefect[] = [
  broken('accepts-lower', 'a route of a lower revision replaces the known one'),
  broken('unverified', 'signatures of records are not verified'),
  broken('no-republication', 'a home relay publishes a route once only'),
  broken('at-once', 'all accounts are republished at the same moment'),
  broken('forgets', 'the version memory does not survive a restart'),
  broken('names-farthest', 'the farthest relays are asked and named, not the nearest'),
  broken('keeps-values', 'values of others never end'),
  broken('any-echo', 'an answer without the record counts as a replica'),
  broken('trusts-named', 'peers that answers name enter the routing table unauthenticated'),
  broken('serves-expired', 'a route serves after its expiry'),
  {
    name: 'hasty-lookup',
    what: 'a lookup gives up after four requests',
    limits: { dhtLookupRequests: 4, dhtBucket: 4 },
  },
  {
    name: 'endless-lookup',
    what: 'a lookup makes ten times as many requests as it may',
    limits: { dhtLookupRequests: 400 },
  },
];
