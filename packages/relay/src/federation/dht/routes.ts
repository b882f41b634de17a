import { type PeerStream, rejectOnAbort } from '@posthouse/peer';
import type { FinalRoute } from '@posthouse/protocol';
import { utf8 } from '@posthouse/protocol';
import {
  checkKadReply,
  decodeKadMessage,
  deriveRouteKey,
  encodeKadMessage,
  type KadMessage,
  type KadRequest,
  kadTypes,
} from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { BoundedMap } from '../../bounded-map.ts';
import type { FoundRoutes, RelayContext, Replication, RouteDirectory } from '../../context.ts';
import { dhtAsked, relaysLeftOut, routeRecordRefused } from '../../observability/peer-events.ts';
import type { PeerConnections } from '../connections.ts';
import type { Eligibility } from '../eligibility.ts';
import { finishStream } from '../finish-stream.ts';
import type { PeerFaults } from '../peer-faults.ts';
import { dhtProtocol } from '../protocol-ids.ts';
import type { RelayHealth } from '../relay-health.ts';
import { timeLimit } from '../time-limit.ts';
import { dhtFaultOf, dhtTypeName } from './messages.ts';
import { NewAccounts } from './new-accounts.ts';
import { RequestPace } from './request-pace.ts';
import { storeKeys } from './route-keys.ts';
import { readRouteRecord, verifyRouteRecord } from './route-record.ts';

export interface DhtRoutesParts {
  readonly eligibility: Eligibility;
  readonly connections: PeerConnections;
  readonly health: RelayHealth;
  readonly faults: PeerFaults;
  /** Returns the relays that the registry lists as active, without this one. */
  readonly relays: () => readonly string[];
  readonly stopping: AbortSignal;
}

/**
 * Finds routes by asking every active relay, which is a complete lookup in a network of a few relays
 * (07 §B7), and sends routes to the relays that must have them.
 */
export class DhtRoutes implements RouteDirectory {
  readonly #context: RelayContext;
  readonly #parts: DhtRoutesParts;
  /** Monotonic milliseconds until which a relay is not asked, after an invalid or no answer. */
  readonly #paused: BoundedMap<string, number>;
  readonly #newAccounts: NewAccounts;
  readonly #pace: RequestPace;
  /** Whether the last lookup asked fewer relays than are active. */
  #leavesOut = false;

  constructor(context: RelayContext, parts: DhtRoutesParts) {
    this.#context = context;
    this.#parts = parts;
    this.#paused = new BoundedMap(context.limits.federationRegistryRelays);
    this.#newAccounts = new NewAccounts(context);
    this.#pace = new RequestPace(context);
  }

  get hasRelays(): boolean {
    return this.#parts.relays().length > 0;
  }

  /** Ends the pause of a relay that has connected again. */
  resume(relayId: string): void {
    this.#paused.delete(relayId);
  }

  async resolveRemote(account: string, only?: string): Promise<FoundRoutes> {
    const { network, clock, limits } = this.#context;
    const key = deriveRouteKey(network, account);
    using limit = timeLimit(clock, limits.dhtLookupTimeout, this.#parts.stopping);
    const request: KadRequest = { type: kadTypes.getValue, key };
    // A higher route may be anywhere, so an answer counts when all have answered or had their time.
    const relays = only === undefined ? this.#relaysToAsk() : [only];
    const ask = { request, signal: limit.signal };
    const found = await Promise.all(relays.map((relayId) => this.#find(relayId, ask)));
    const routes = distinct(found.flatMap((answer) => answer?.route ?? []));
    return {
      routes,
      missed: relays.filter((_, index) => found[index] === undefined),
      claimed: relays.filter((relayId, index) => found[index]?.route?.relay_id === relayId),
    };
  }

  /** Chooses the relays to ask: connected ones first, failing ones last, each group by its ID. */
  #relaysToAsk(): readonly string[] {
    const { dhtRelays } = this.#context.limits;
    const relays = this.#parts.relays();
    const isTooMany = relays.length > dhtRelays;
    if (isTooMany && !this.#leavesOut) {
      relaysLeftOut(this.#context, { active: relays.length, asked: dhtRelays });
    }
    this.#leavesOut = isTooMany;
    if (!isTooMany) return relays;
    const { connections, health } = this.#parts;
    const order = relays.map((relayId) => {
      if (connections.isConnected(relayId)) return `0 ${relayId}`;
      return `${health.isFailing(relayId) ? 2 : 1} ${relayId}`;
    });
    return order
      .sort()
      .slice(0, dhtRelays)
      .map((key) => key.slice(2));
  }

  async replicate(route: FinalRoute, leaving: string | undefined): Promise<Replication> {
    const { network, clock, limits, storage } = this.#context;
    const { account } = route;
    await storage.write(`account:${account}`, (tx) => storeKeys(tx, network, [account]));
    if (leaving === undefined) return { isEnough: true, reachedLeaving: true };
    using limit = timeLimit(clock, limits.dhtLookupTimeout, this.#parts.stopping);
    const key = deriveRouteKey(network, account);
    const record = { key, value: utf8(canonicalJson(route)) };
    const request: KadRequest = { type: kadTypes.putValue, key, record };
    const reply = await this.#ask(leaving, { request, signal: limit.signal });
    const stored = reply?.record?.value;
    // 07 §B12: the relay that the account leaves may be gone, which does not block the move.
    const reachedLeaving = stored !== undefined && Buffer.compare(stored, record.value) === 0;
    return { isEnough: true, reachedLeaving };
  }

  /**
   * Asks one relay for a route, for a limited time, and verifies its record; `undefined` without an
   * answer.
   */
  async #find(relayId: string, ask: Ask): Promise<Answer | undefined> {
    const { clock, limits } = this.#context;
    const { eligibility, faults } = this.#parts;
    using limit = timeLimit(clock, limits.dhtQuestionTimeout, ask.signal);
    const reply = await this.#ask(relayId, { ...ask, signal: limit.signal });
    if (reply === undefined) return undefined;
    const { record } = reply;
    if (record?.key === undefined || record.value === undefined) return { route: undefined };
    try {
      const { key, value } = record;
      const route = readRouteRecord(this.#context, { key, value });
      if (!(await this.#newAccounts.admit(relayId, route.account))) return { route: undefined };
      const verified = verifyRouteRecord(this.#context, eligibility, { route, cause: relayId });
      // The descriptor of the relay that it names may have to be fetched.
      await rejectOnAbort(ask.signal, verified);
      return { route };
    } catch (error) {
      routeRecordRefused(this.#context, { relay: relayId, error });
      const fault = dhtFaultOf(error);
      if (fault !== undefined) faults.add(relayId, fault);
      return { route: undefined };
    }
  }

  /** Sends one request; `undefined` without a valid answer, after which the relay has a pause. */
  async #ask(relayId: string, { request, signal }: Ask): Promise<KadMessage | undefined> {
    const { clock, limits } = this.#context;
    const { faults, health } = this.#parts;
    const pausedUntil = this.#paused.get(relayId) ?? 0;
    const type = dhtTypeName(request.type);
    const isPaused = health.pausedUntil(relayId) !== undefined || clock.monotonic() < pausedUntil;
    if (isPaused || !(await this.#pace.turn(relayId, signal))) {
      dhtAsked(this.#context, { type, outcome: 'paused' });
      return undefined;
    }
    try {
      const reply = await this.#exchange(relayId, { request, signal });
      dhtAsked(this.#context, { type, outcome: 'ok' });
      health.succeeded(relayId);
      return reply;
    } catch (error) {
      const fault = dhtFaultOf(error);
      if (fault !== undefined) faults.add(relayId, fault);
      this.#paused.set(relayId, clock.monotonic() + limits.dhtPause * 1_000);
      dhtAsked(this.#context, { type, outcome: 'failed' });
      return undefined;
    }
  }

  /** @throws FrameError, ProtocolError for an invalid answer; the error of the connection */
  async #exchange(relayId: string, { request, signal }: Ask): Promise<KadMessage> {
    const { connections } = this.#parts;
    const protocol = dhtProtocol(this.#context.network);
    let opened = await connections.openStream(relayId, protocol, signal);
    for (;;) {
      try {
        return await this.#exchangeOn(opened.stream, request);
      } catch (error) {
        opened.stream.reset();
        // Every request may be repeated, so the end of one process of that relay delays no lookup.
        const other = await connections.openInstead(opened.connection, protocol, signal);
        if (other === undefined) throw error;
        opened = other;
      }
    }
  }

  async #exchangeOn(stream: PeerStream, request: KadRequest): Promise<KadMessage> {
    const { clock, limits } = this.#context;
    await stream.writeFrame(encodeKadMessage(request));
    const frame = await stream.readFrame();
    if (frame === undefined) throw new Error('the stream ended without an answer');
    const reply = decodeKadMessage(frame, { peers: 0, addresses: 0 });
    checkKadReply(request, reply);
    void finishStream(stream, clock, limits.peerLinger);
    return reply;
  }
}

interface Ask {
  readonly request: KadRequest;
  readonly signal: AbortSignal;
}

/** A relay's answer, with the valid route that it has, if any. */
interface Answer {
  readonly route: FinalRoute | undefined;
}

/** Leaves out routes with the same text, which several relays have. */
function distinct(routes: readonly FinalRoute[]): FinalRoute[] {
  return [...new Map(routes.map((route) => [canonicalJson(route), route])).values()];
}
