/**
 * A relay of the simulated DHT: the relay's own lookups, publication, routing table, record checks and
 * rules of versions, with values in memory.
 */
import { rejectOnAbort } from '@posthouse/peer';
import {
  type AccountSigner,
  accountSigner,
  deriveRelayId,
  type FinalRoute,
  hex,
  utf8,
} from '@posthouse/protocol';
import {
  checkKadReply,
  deriveRouteKey,
  type KadCandidate,
  type KadMessage,
  type KadRecord,
  type KadRequest,
  kadTypes,
  peerIdOfKey,
} from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { nodePrimitives as primitives } from '@posthouse/protocol/node';
import { knownRoute } from '../../../src/accounts/home.ts';
import { observedRoute } from '../../../src/accounts/rules.ts';
import type { KnownRoute } from '../../../src/accounts/store.ts';
import { IterativeLookups } from '../../../src/federation/dht/iterative-lookup.ts';
import { Publications, replicaPolicy } from '../../../src/federation/dht/publication.ts';
import { DhtTable } from '../../../src/federation/dht/table.ts';
import type { EligiblePeer } from '../../../src/federation/verify-descriptor.ts';
import type { RelayLimits } from '../../../src/limits.ts';
import type { Chance } from '../../simulation/machine/chance.ts';
import type { NetworkNode } from '../../simulation/machine/network.ts';
import { type Scheduler, SimulatedProcess } from '../../simulation/machine/scheduler.ts';
import { SimulatedClock } from '../../simulation/relay/clock.ts';
import { network } from '../../support/modules.ts';
import { AdmittedPeers } from './admitted.ts';
import type { DhtDefect } from './defect.ts';
import type { Liars, Lie } from './liars.ts';
import { type Records, routeKey } from './records.ts';

/** Seconds for which another relay's value is stored after it was last sent. */
export const valueLife = 36 * 3_600;

/** What relays share: the simulation around them. */
export interface DhtSurroundings {
  readonly scheduler: Scheduler;
  readonly limits: RelayLimits;
  /** Unix seconds at which the simulation began. */
  readonly start: number;
  readonly liars: Liars;
  readonly defect: DhtDefect | undefined;
  /** Relays that the registry lists as active. */
  readonly active: number;
  /** Sends a request over the simulated network. @throws NoAnswer */
  send<T>(from: DhtRelay, to: DhtRelay, handle: () => Promise<T>): Promise<T>;
  ofPeer(peerId: Uint8Array): DhtRelay | undefined;
  readonly records: Records;
  /** Is called with each request of the DHT, and what it is for. */
  requested(relay: DhtRelay, request: KadRequest): void;
  /** Is called when a route was stored that some other relay sent. */
  stored(relay: DhtRelay, route: FinalRoute): void;
}

export interface Found {
  readonly route: FinalRoute | undefined;
  readonly requests: number;
  readonly rounds: number;
  readonly milliseconds: number;
  readonly isComplete: boolean;
  readonly nearest: readonly EligiblePeer[];
}

interface Value {
  readonly account: string;
  readonly text: string;
  /** Unix seconds. */
  readonly until: number;
}

export class DhtRelay implements NetworkNode {
  readonly name: string;
  readonly signer: AccountSigner;
  readonly relayId: string;
  readonly peer: EligiblePeer;
  readonly clock: SimulatedClock;
  /** What it does instead of serving, if it lies. */
  readonly lie: Lie | undefined;
  process: SimulatedProcess | undefined;
  /** On disk: routes of highest revision, by account. */
  readonly memory = new Map<string, KnownRoute>();
  /** On disk: values of others, by key in hex. */
  readonly values = new Map<string, Value>();
  /** On disk: when each account at home here is republished, in simulated milliseconds. */
  readonly due = new Map<string, number>();
  #admitted = new AdmittedPeers();
  #table: DhtTable;
  /** Monotonic milliseconds until which a relay is not asked. */
  #paused = new Map<string, number>();
  readonly #around: DhtSurroundings;

  constructor(
    index: number,
    around: DhtSurroundings,
    { chance, lie }: { readonly chance: Chance; readonly lie: Lie | undefined },
  ) {
    this.name = `relay ${index}`;
    this.#around = around;
    this.lie = lie;
    this.signer = accountSigner(network, primitives.sha256(utf8(this.name)));
    this.relayId = deriveRelayId(network, this.signer.publicKey);
    const peerId = peerIdOfKey(primitives, { type: 'ed25519', data: chance.bytes(32) });
    this.peer = { relayId: this.relayId, peerId, addresses: [] } as unknown as EligiblePeer;
    this.clock = new SimulatedClock(around.scheduler, around.start);
    this.#table = this.#newTable();
  }

  get isUp(): boolean {
    return this.process !== undefined;
  }

  /** Peer IDs in the routing table, multihash bytes. */
  get tablePeers(): Uint8Array[] {
    return this.#table.closest(this.peer.peerId, this.#table.size).map(({ peerId }) => peerId);
  }

  /** Starts with an empty routing table; what is on disk is still there. */
  start(): void {
    this.process = new SimulatedProcess(this.name);
    this.#admitted = new AdmittedPeers();
    this.#table = this.#newTable();
    this.#paused = new Map();
    if (this.#has('forgets')) this.memory.clear();
  }

  /** Ends at once. */
  stop(): void {
    this.process?.end();
    this.process = undefined;
  }

  /** Takes note of a relay that was authenticated: it connected, or was dialled. */
  admit(peer: EligiblePeer): void {
    this.#admitted.enter(peer);
  }

  /** Finds the account's route: a complete lookup, then the rules of versions (07 §B11, §B12). */
  async resolve(account: string, signal: AbortSignal): Promise<Found> {
    const key = deriveRouteKey(network, account);
    const onRecord = async (_: EligiblePeer, record: KadRecord) => {
      const route = await this.#validated(record);
      if (route?.account === account) this.observe(route);
    };
    const found = await this.#lookUp({ type: kadTypes.getValue, key }, signal, onRecord);
    return { ...found, route: this.usable(account) };
  }

  /** Looks up peers near a raw input, which fills the routing table. */
  async refresh(raw: Uint8Array, signal: AbortSignal): Promise<void> {
    await this.#lookUp({ type: kadTypes.findNode, key: raw }, signal);
  }

  /** Looks up the own Peer ID, and an input for each bucket. */
  async refreshTable(chance: Chance, signal: AbortSignal): Promise<void> {
    await this.refresh(this.peer.peerId, signal);
    const inputs = this.#table.refreshInputs((length) => chance.bytes(length));
    for (const input of inputs) await this.refresh(input, signal);
  }

  /**
   * Publishes the route of an account at home here: a lookup, then PUT to the nearest relays and to
   * the one that the account left (07 §B12).
   *
   * @returns `undefined` if the account has left, or its route has expired
   */
  async publish(
    account: string,
    signal: AbortSignal,
    leaving?: EligiblePeer,
  ): Promise<{ readonly isEnough: boolean; readonly stored: readonly EligiblePeer[] } | undefined> {
    const { nearest } = await this.resolve(account, signal);
    const known = this.memory.get(account);
    if (known?.relayId !== this.relayId || this.usable(account) === undefined) return undefined;
    const { limits, active } = this.#around;
    const record = { key: deriveRouteKey(network, account), value: utf8(known.text) };
    const publications = new Publications<EligiblePeer>({
      ...{ clock: this.clock, limits },
      network: { ask: (peer, request, until) => this.#ask(peer, request, until) },
    });
    const isNear = nearest.some(({ relayId }) => relayId === leaving?.relayId);
    const targets = leaving === undefined || isNear ? nearest : [...nearest, leaving];
    const enough = replicaPolicy(limits, active - 1);
    const task = { record, targets, enough, within: limits.dhtPublishTimeout, signal };
    const { isEnough, stored } = await publications.publish(task);
    return { isEnough, stored: await stored };
  }

  /** Applies a verified route to the version memory; returns whether it is the current one. */
  observe(route: FinalRoute): boolean {
    const { account } = route;
    const known = this.memory.get(account);
    const base = this.#has('accepts-lower') ? undefined : known;
    const { observation, next } = observedRoute(knownRoute(network, route), base);
    if (next !== undefined) {
      this.memory.set(account, next);
      this.#around.stored(this, route);
    }
    return observation === 'accepted' || observation === 'same';
  }

  /** Returns the route of highest revision, if it may be used now. */
  usable(account: string): FinalRoute | undefined {
    const known = this.memory.get(account);
    if (known === undefined || known.conflict) return undefined;
    const hasExpired = this.clock.now() >= known.expiresAt && !this.#has('serves-expired');
    return hasExpired ? undefined : (JSON.parse(known.text) as FinalRoute);
  }

  /** Answers a request of another relay (07 §B7); runs in this relay's process. */
  async serve(request: KadRequest, from: DhtRelay): Promise<KadMessage> {
    const { lie } = this;
    if (lie !== undefined) return await this.#around.liars.answer(lie, request);
    this.admit(from.peer);
    const { type, key } = request;
    if (request.type === kadTypes.putValue) {
      const isStored = await this.#put(request.record);
      return { type, key, ...(isStored && { record: request.record }) };
    }
    const value = type === kadTypes.getValue ? this.value(key) : undefined;
    const closerPeers = this.#closest(key, this.#around.limits.dhtCloserPeers + 1)
      .filter(({ relayId }) => relayId !== from.relayId)
      .slice(0, this.#around.limits.dhtCloserPeers)
      .map(({ peerId }) => ({ id: peerId, addrs: [] }));
    return { type, key, closerPeers, ...(value !== undefined && { record: { key, value } }) };
  }

  /** What GET_VALUE returns for a key. */
  value(key: Uint8Array): Uint8Array | undefined {
    const id = hex(key);
    const own = [...this.due.keys()].find((account) => routeKey(account) === id);
    const value = this.values.get(id);
    const account = own ?? value?.account;
    if (account === undefined) return undefined;
    const isOver = value === undefined || this.clock.now() >= value.until;
    if (own === undefined && isOver && !this.#has('keeps-values')) return undefined;
    const route = this.usable(account);
    return route && utf8(canonicalJson(route));
  }

  async #put(record: KadRecord): Promise<boolean> {
    const route = await this.#validated(record);
    if (route === undefined || !this.observe(route)) return false;
    const { account, expires_at } = route;
    const until = Math.min(this.clock.now() + valueLife, expires_at);
    this.values.set(routeKey(account), { account, text: canonicalJson(route), until });
    return true;
  }

  async #validated(record: KadRecord): Promise<FinalRoute | undefined> {
    return await this.#around.records.validated(record, this.clock, this.#has('unverified'));
  }

  async #lookUp(
    request: KadRequest,
    signal: AbortSignal,
    onRecord?: (peer: EligiblePeer, record: KadRecord) => Promise<void>,
  ): Promise<Omit<Found, 'route'>> {
    const began = this.clock.monotonic();
    const depths = new Map<string, number>();
    let deepest = 0;
    const lookups = new IterativeLookups<EligiblePeer>({
      ...{ primitives, clock: this.clock, limits: this.#around.limits, self: this.peer.peerId },
      network: {
        closest: (raw, count) => this.#closest(raw, count),
        candidate: (candidate, until) => this.#authenticate(candidate, until),
        ask: async (peer, asked, until) => {
          const depth = depths.get(peer.relayId) ?? 1;
          deepest = Math.max(deepest, depth);
          const reply = await this.#ask(peer, asked, until);
          for (const { id } of reply?.closerPeers ?? []) {
            const named = id && this.#around.ofPeer(id)?.relayId;
            if (named && !depths.has(named)) depths.set(named, depth + 1);
          }
          return reply;
        },
      },
    });
    for (const { relayId } of this.#closest(request.key, this.#around.limits.dhtLookupRequests)) {
      depths.set(relayId, 1);
    }
    const found = await lookups.run({ request, signal, ...(onRecord && { onRecord }) });
    const { requests, nearest, outcome } = found;
    const milliseconds = this.clock.monotonic() - began;
    return { requests, nearest, rounds: deepest, milliseconds, isComplete: outcome === 'complete' };
  }

  /** Asks one relay; one that fails has a pause, and leaves the table after several failures. */
  async #ask(
    peer: EligiblePeer,
    request: KadRequest,
    signal: AbortSignal,
  ): Promise<KadMessage | undefined> {
    const { relayId } = peer;
    const around = this.#around;
    if (this.clock.monotonic() < (this.#paused.get(relayId) ?? 0)) return undefined;
    around.requested(this, request);
    try {
      const target = around.ofPeer(peer.peerId);
      if (target === undefined) throw new Error('there is no such relay');
      const sent = around.send(this, target, () => target.serve(request, this));
      sent.catch(() => {});
      const reply = await rejectOnAbort(signal, sent);
      if (this.#has('any-echo') && request.type === kadTypes.putValue) return request;
      checkKadReply(request, reply);
      this.#table.noteOutcome(relayId, true);
      return reply;
    } catch {
      this.#paused.set(relayId, this.clock.monotonic() + around.limits.dhtPause * 1_000);
      this.#table.noteOutcome(relayId, false);
      return undefined;
    }
  }

  /** A handshake with a peer that an answer names (07 §B4). */
  async #authenticate(
    { peerId }: KadCandidate,
    signal: AbortSignal,
  ): Promise<EligiblePeer | undefined> {
    const around = this.#around;
    const target = around.ofPeer(peerId);
    if (this.#has('trusts-named')) {
      const relayId = target?.relayId ?? `0x${hex(peerId).slice(-40)}`;
      const peer = { relayId, peerId, addresses: [] } as unknown as EligiblePeer;
      this.admit(peer);
      return peer;
    }
    if (target === undefined || target === this) return undefined;
    const known = this.#admitted.find(target.relayId);
    if (known !== undefined) return known;
    const sent = around.send(this, target, async () => target.admit(this.peer));
    sent.catch(() => {});
    try {
      await rejectOnAbort(signal, sent);
      this.admit(target.peer);
      return target.peer;
    } catch {
      return undefined;
    }
  }

  #closest(raw: Uint8Array, count: number): readonly EligiblePeer[] {
    if (!this.#has('names-farthest')) return this.#table.closest(raw, count);
    return this.#table.closest(raw, this.#table.size).toReversed().slice(0, count);
  }

  #newTable(): DhtTable {
    return new DhtTable(
      { network, limits: this.#around.limits },
      {
        eligibility: this.#admitted as never,
        self: this.peer.peerId,
        probe: (peer) => this.#probe(peer),
      },
    );
  }

  async #probe(peer: EligiblePeer): Promise<boolean> {
    const abort = new AbortController();
    const { dhtQuestionTimeout } = this.#around.limits;
    using _timer = this.clock.after(dhtQuestionTimeout, () => abort.abort());
    const request: KadRequest = { type: kadTypes.findNode, key: this.peer.peerId };
    return (await this.#ask(peer, request, abort.signal)) !== undefined;
  }

  #has(flag: Parameters<NonNullable<DhtDefect['flags']>['has']>[0]): boolean {
    return this.#around.defect?.flags?.has(flag) ?? false;
  }
}
