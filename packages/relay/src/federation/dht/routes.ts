import { rejectOnAbort } from '@posthouse/peer';
import { type FinalRoute, utf8 } from '@posthouse/protocol';
import {
  deriveRouteKey,
  type KadMessage,
  type KadRecord,
  type KadRequest,
  kadTypes,
  parsePeerId,
} from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import type { FoundRoutes, RelayContext, Replication, RouteDirectory } from '../../context.ts';
import {
  dhtLookedUp,
  replicasMissed,
  routeRecordRefused,
  routeReplicated,
} from '../../observability/peer-events.ts';
import type { PeerConnections } from '../connections.ts';
import type { Eligibility } from '../eligibility.ts';
import type { PeerFaults } from '../peer-faults.ts';
import type { RelayHealth } from '../relay-health.ts';
import { timeLimit } from '../time-limit.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';
import { DhtCandidates } from './candidates.ts';
import { DhtClient } from './client.ts';
import type { KadDecoder } from './decoder.ts';
import { IterativeLookups, type LookupResult } from './iterative-lookup.ts';
import { dhtFaultOf } from './messages.ts';
import { NewAccounts } from './new-accounts.ts';
import { Publications, replicaPolicy } from './publication.ts';
import { storeKeys } from './route-keys.ts';
import { checkRouteTimes, parseRouteRecord, verifyRouteRecord } from './route-record.ts';
import { DhtTable } from './table.ts';

export interface DhtRoutesParts {
  readonly eligibility: Eligibility;
  readonly connections: PeerConnections;
  readonly health: RelayHealth;
  readonly faults: PeerFaults;
  readonly decoder: Pick<KadDecoder, 'decode'>;
  /** Returns the relays that the registry lists as active, without this one. */
  readonly relays: () => readonly string[];
  /** Tells whether the registry was read since the start: before, `relays` lacks most of them. */
  readonly isRegistryRead: () => boolean;
  readonly stopping: AbortSignal;
}

/**
 * Finds routes in the relay DHT, and sends it those of accounts at home here (07 §B7, §B12). If the
 * registry lists no more relays than a bucket has, each question goes to all of them at once, which
 * is a complete lookup; otherwise to the nearest ones, which an iterative lookup finds.
 */
export class DhtRoutes implements RouteDirectory, AsyncDisposable {
  readonly #context: RelayContext;
  readonly #parts: DhtRoutesParts;
  readonly #newAccounts: NewAccounts;
  readonly #client: DhtClient;
  readonly #lookups: IterativeLookups<EligiblePeer>;
  readonly #publications: Publications<string>;
  /** `PUT_VALUE` requests that go on after their publication was answered. */
  readonly #sending = new Set<Promise<unknown>>();
  readonly table: DhtTable;

  constructor(context: RelayContext, parts: DhtRoutesParts) {
    const { clock, identity, limits, network } = context;
    const { eligibility, connections, stopping } = parts;
    this.#context = context;
    this.#parts = parts;
    this.#newAccounts = new NewAccounts(context);
    const onOutcome = (relayId: string, isAnswered: boolean) =>
      this.table.noteOutcome(relayId, isAnswered);
    this.#client = new DhtClient(context, { ...parts, onOutcome });
    const self = parsePeerId(identity.peerId) ?? new Uint8Array();
    const probe = (peer: EligiblePeer) => this.isAnswering(peer);
    this.table = new DhtTable(context, { eligibility, self, probe });
    const candidates = new DhtCandidates(context, {
      eligibility,
      dials: connections.dials,
      stopping,
    });
    const ask = (relayId: string, request: KadRequest, signal: AbortSignal) =>
      this.#client.ask(relayId, request, signal);
    this.#lookups = new IterativeLookups({
      primitives: network.primitives,
      clock,
      limits,
      self,
      network: {
        closest: (raw, count) => this.table.closest(raw, count),
        candidate: (candidate, signal) => candidates.find(candidate, signal),
        ask: ({ relayId }, request, signal) => ask(relayId, request, signal),
      },
    });
    this.#publications = new Publications({ clock, limits, network: { ask } });
  }

  get hasRelays(): boolean {
    return this.#parts.relays().length > 0;
  }

  get isAlone(): boolean {
    return this.#parts.isRegistryRead() && !this.hasRelays;
  }

  get areAllAway(): boolean {
    const { isRegistryRead, relays } = this.#parts;
    return isRegistryRead() && relays().every((relayId) => this.#isAway(relayId));
  }

  /** Whether each question goes to every active relay. */
  get asksAll(): boolean {
    return this.#parts.relays().length <= this.#context.limits.dhtBucket;
  }

  /** Ends the pause of a relay that has connected again. */
  resume(relayId: string): void {
    this.#client.resume(relayId);
    this.table.reconnected(relayId);
  }

  async resolveRemote(account: string, only?: string, known?: string): Promise<FoundRoutes> {
    const key = deriveRouteKey(this.#context.network, account);
    const request: KadRequest = { type: kadTypes.getValue, key };
    if (only !== undefined) return await this.#askEach([only], request);
    if (this.asksAll) return await this.#askEach(this.#parts.relays(), request);
    const answers = new Map<string, RecordFinding>();
    const onRecord = async ({ relayId }: EligiblePeer, record: KadRecord) =>
      void answers.set(relayId, await this.#routeOf(relayId, record, this.#parts.stopping));
    // The relay that was the home last is asked wherever it is: it knows first of a move.
    const home = known === undefined ? undefined : this.#askEach([known], request);
    const lookup = this.lookUp(request, onRecord);
    const [{ nearest }, atHome] = await Promise.all([lookup, home]);
    const found = foundIn([...answers]);
    return {
      routes: distinct([...found.routes, ...(atHome?.routes ?? [])]),
      unverified: distinct([...found.unverified, ...(atHome?.unverified ?? [])]),
      // The others of the nearest have what these would have had.
      missed: [],
      claimed: [...new Set([...found.claimed, ...(atHome?.claimed ?? [])])],
      nearest: nearest.map(({ relayId }) => relayId),
    };
  }

  /** Runs an iterative lookup. @throws the reason with which this relay stops */
  async lookUp(
    request: KadRequest,
    onRecord?: (peer: EligiblePeer, record: KadRecord) => Promise<void>,
  ): Promise<LookupResult<EligiblePeer>> {
    const { clock } = this.#context;
    const started = clock.monotonic();
    const task = { request, signal: this.#parts.stopping, ...(onRecord && { onRecord }) };
    const result = await this.#lookups.run(task);
    const milliseconds = clock.monotonic() - started;
    dhtLookedUp(this.#context, { outcome: result.outcome, milliseconds });
    return result;
  }

  /** Asks a relay with `FIND_NODE`; returns whether it gave a valid answer. */
  async isAnswering({ relayId, peerId }: EligiblePeer): Promise<boolean> {
    const { clock, limits } = this.#context;
    using limit = timeLimit(clock, limits.dhtQuestionTimeout, this.#parts.stopping);
    const request: KadRequest = { type: kadTypes.findNode, key: peerId };
    return (await this.#client.ask(relayId, request, limit.signal)) !== undefined;
  }

  async replicate(
    route: FinalRoute,
    leaving: string | undefined,
    nearest?: readonly string[],
  ): Promise<Replication> {
    const { network, clock, limits, storage } = this.#context;
    const { account } = route;
    await storage.write(`account:${account}`, (tx) => storeKeys(tx, network, [account]), {
      keepsFacts: true,
    });
    if (!(await this.#mayPublish(route))) return { isEnough: false, reachedLeaving: false };
    const started = clock.monotonic();
    const key = deriveRouteKey(network, account);
    const record = { key, value: utf8(canonicalJson(route)) };
    const near = nearest ?? (await this.#nearestTo(key));
    const targets = [...new Set(leaving === undefined ? near : [...near, leaving])];
    // 07 §B12: the relay that the account leaves may be gone, which does not block the move.
    const others = this.#parts
      .relays()
      .filter((relayId) => relayId !== leaving && !this.#isAway(relayId));
    const enough = replicaPolicy(limits, others.length);
    const within = limits.dhtPublishTimeout - (clock.monotonic() - started);
    const signal = this.#parts.stopping;
    const task = { record, targets, enough, within, signal };
    const { isEnough, echoes, stored } = await this.#publications.publish(task);
    const sending = stored.then((relays) => routeReplicated(this.#context, relays.length));
    this.#sending.add(sending);
    void sending.finally(() => this.#sending.delete(sending));
    const reachedLeaving = leaving === undefined || (await echoes.get(leaving)) === true;
    if (!isEnough && nearest === undefined) replicasMissed(this.#context, { enough });
    return { isEnough, reachedLeaving };
  }

  /** Revalidates the route of an account at home elsewhere, which a relay sends on (07 §B12). */
  async #mayPublish(route: FinalRoute): Promise<boolean> {
    if (route.relay_id === this.#context.identity.relayId) return true;
    try {
      const { eligibility } = this.#parts;
      await verifyRouteRecord(this.#context, eligibility, { route, cause: undefined });
      return true;
    } catch (error) {
      routeRecordRefused(this.#context, { relay: route.relay_id, error });
      return false;
    }
  }

  /** Whether a relay was out of reach for so long that publications do not wait for its copy. */
  #isAway(relayId: string): boolean {
    return this.#parts.health.failingFor(relayId) >= this.#context.limits.dhtReplicaGrace;
  }

  async #nearestTo(key: Uint8Array): Promise<readonly string[]> {
    if (this.asksAll) return this.#parts.relays();
    const { nearest } = await this.lookUp({ type: kadTypes.findNode, key });
    return nearest.map(({ relayId }) => relayId);
  }

  /** Asks relays at once: a higher route may be anywhere, so each has its time to answer. */
  async #askEach(relays: readonly string[], request: KadRequest): Promise<FoundRoutes> {
    const { clock, limits } = this.#context;
    using limit = timeLimit(clock, limits.dhtLookupTimeout, this.#parts.stopping);
    const asked = await Promise.all(
      relays.map(async (relayId) => {
        using question = timeLimit(clock, limits.dhtQuestionTimeout, limit.signal);
        const reply = await this.#client.ask(relayId, request, question.signal);
        return reply && ([relayId, await this.#routeIn(relayId, reply, limit.signal)] as const);
      }),
    );
    const answers = asked.filter((answer) => answer !== undefined);
    return {
      ...foundIn(answers),
      missed: relays.filter((_, index) => asked[index] === undefined),
      nearest: answers.map(([relayId]) => relayId),
    };
  }

  async #routeIn(
    relayId: string,
    { record }: KadMessage,
    signal: AbortSignal,
  ): Promise<RecordFinding> {
    return record === undefined ? {} : await this.#routeOf(relayId, record, signal);
  }

  /** Verifies a relay's record (07 §B10). */
  async #routeOf(
    relayId: string,
    { key, value }: KadRecord,
    signal: AbortSignal,
  ): Promise<RecordFinding> {
    const { eligibility, faults } = this.#parts;
    if (key === undefined || value === undefined) return {};
    let route: FinalRoute | undefined;
    try {
      route = parseRouteRecord(this.#context, { key, value });
      checkRouteTimes(this.#context, route);
      if (!(await this.#newAccounts.admit(relayId, route.account))) return {};
      const verified = verifyRouteRecord(this.#context, eligibility, { route, cause: relayId });
      // The descriptor of the relay that it names may have to be fetched.
      await rejectOnAbort(signal, verified);
      return { route };
    } catch (error) {
      routeRecordRefused(this.#context, { relay: relayId, error });
      const fault = dhtFaultOf(error);
      if (fault !== undefined) faults.add(relayId, fault);
      return fault === undefined && route !== undefined ? { unverified: route } : {};
    }
  }

  /** Waits for the requests under way, which end when the relay stops. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.table[Symbol.dispose]();
    await Promise.allSettled([...this.#sending]);
  }
}

/** What a relay's record has: a valid route, one that could not be confirmed now, or none. */
interface RecordFinding {
  readonly route?: FinalRoute;
  readonly unverified?: FinalRoute;
}

type Answer = readonly [relayId: string, finding: RecordFinding];

/** Returns what relays answered: the routes, and the relays that name themselves. */
function foundIn(
  answers: readonly Answer[],
): Pick<FoundRoutes, 'routes' | 'unverified' | 'claimed'> {
  const claimed = answers.filter(([relayId, { route }]) => route?.relay_id === relayId);
  return {
    routes: distinct(answers.flatMap(([, { route }]) => route ?? [])),
    unverified: distinct(answers.flatMap(([, { unverified }]) => unverified ?? [])),
    claimed: claimed.map(([relayId]) => relayId),
  };
}

/** Leaves out routes with the same text, which several relays have. */
function distinct(routes: readonly FinalRoute[]): FinalRoute[] {
  return [...new Map(routes.map((route) => [canonicalJson(route), route])).values()];
}
