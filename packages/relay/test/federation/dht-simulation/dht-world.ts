/** One simulation of the DHT: relays, accounts, what goes wrong, and the rules that must hold. */
import {
  type AccountSigner,
  accountSigner,
  cosignRoute,
  type FinalRoute,
  hex,
  signRouteDraft,
  utf8,
} from '@posthouse/protocol';
import type { KadRequest } from '@posthouse/protocol/federation';
import { canonicalJson } from '@posthouse/protocol/json';
import { nodePrimitives as primitives } from '@posthouse/protocol/node';
import { defaultLimits } from '../../../src/limits.ts';
import { Journal } from '../../simulation/journal.ts';
import { Chance } from '../../simulation/machine/chance.ts';
import { SimulatedNetwork } from '../../simulation/machine/network.ts';
import { Scheduler } from '../../simulation/machine/scheduler.ts';
import { network as context } from '../../support/modules.ts';
import type { DhtDefect } from './defect.ts';
import { DhtRelay, type DhtSurroundings, type Found } from './dht-relay.ts';
import { Liars, lies } from './liars.ts';
import { Records } from './records.ts';

/** Unix seconds at which every simulation begins. */
export const start = 1_750_000_000;
export const hour = 3_600_000;

export interface DhtSimulation {
  readonly seed: number;
  readonly relays: number;
  readonly accounts: number;
  /** Share of relays that lie. */
  readonly lying?: number;
  readonly defect?: DhtDefect | undefined;
  readonly shown?: ((line: string) => void) | undefined;
}

export interface Account {
  readonly name: string;
  readonly signer: AccountSigner;
  /** The newest route, and the relay that it names. */
  route: FinalRoute;
  home: DhtRelay;
  /** Simulated milliseconds at which it came to its home. */
  since: number;
}

/** Relays that each one knows when it starts. */
const bootstrapPeers = 12;
/** Milliseconds of one count of requests. */
const window = 10_000;

export class DhtWorld {
  readonly options: DhtSimulation;
  readonly chance: Chance;
  readonly scheduler: Scheduler;
  readonly network: SimulatedNetwork;
  readonly journal: Journal;
  readonly relays: readonly DhtRelay[];
  readonly accounts: Account[] = [];
  readonly stop = new AbortController();
  /** Every lookup's cost, in the order of their ends. */
  readonly lookups: Found[] = [];
  /** Requests of republication in each {@link window}. */
  readonly #windows = new Map<number, number>();
  readonly #signed = new Set<string>();
  readonly #byPeer = new Map<string, DhtRelay>();
  readonly #publicKeys = new Map<string, string>();
  readonly #highest = new Map<string, number>();
  requests = 0;

  constructor(options: DhtSimulation) {
    this.options = options;
    const { seed, relays: count, lying = 0.2, defect, shown } = options;
    const chanceFor = (part: string) => new Chance(seed, part);
    this.chance = chanceFor('world');
    const scheduler = new Scheduler(chanceFor('order'));
    this.scheduler = scheduler;
    this.journal = new Journal(() => scheduler.milliseconds, shown);
    const delay = { shortest: 5, longest: 80 };
    this.network = new SimulatedNetwork({ scheduler, chance: chanceFor('network'), delay });
    const limits = { ...defaultLimits, ...defect?.limits };
    const liars = new Liars(chanceFor('liars'));
    const around: DhtSurroundings = {
      ...{ scheduler, limits, start, liars, defect, active: count },
      records: new Records(limits, this.#publicKeys),
      send: (from, to, handle) => this.network.request(from, to, handle),
      ofPeer: (peerId) => this.#byPeer.get(hex(peerId)),
      requested: (relay, request) => this.#requested(relay, request),
      stored: (relay, route) => this.#stored(relay, route),
    };
    const keys = chanceFor('keys');
    this.relays = Array.from({ length: count }, (_, index) => {
      const lie = this.chance.is(lying) ? this.chance.pick(lies) : undefined;
      const relay = new DhtRelay(index, around, { chance: keys, lie });
      this.#byPeer.set(hex(relay.peer.peerId), relay);
      this.#publicKeys.set(relay.relayId, relay.signer.publicKey);
      if (lie !== undefined) liars.join(relay.peer.peerId);
      return relay;
    });
  }

  /** Honest relays that run. */
  get honest(): DhtRelay[] {
    return this.relays.filter(({ lie, isUp }) => lie === undefined && isUp);
  }

  relayOf(peerId: Uint8Array): DhtRelay | undefined {
    return this.#byPeer.get(hex(peerId));
  }

  /** The most requests of republication in one window. */
  get busiest(): number {
    return Math.max(0, ...this.#windows.values());
  }

  /** The highest revision that a relay ever stored of an account. */
  highest(relay: DhtRelay, account: string): number {
    return this.#highest.get(`${relay.name} ${account}`) ?? -1;
  }

  /** Starts a relay, which knows a few others; or all, if it has run for long. */
  boot(relay: DhtRelay, knows = bootstrapPeers): void {
    relay.start();
    const others = this.relays.filter((other) => other !== relay);
    const known =
      knows >= others.length ? shuffled(others, this.chance) : this.#some(others, knows);
    for (const other of known) if (other.isUp || knows >= others.length) relay.admit(other.peer);
  }

  /** Runs work as a part of a relay's process; nothing comes of it if the process ends. */
  within(relay: DhtRelay, work: () => Promise<void>): void {
    const { process } = relay;
    if (process === undefined) return;
    this.scheduler.within(process, () => {
      this.scheduler.soon(() => {
        work().catch((error: unknown) => this.journal.failed(error));
      });
    });
  }

  /** Signs a route of higher revision and makes it current at its home. */
  async adopt(account: Account, home: DhtRelay, life = 315_000_000): Promise<void> {
    const now = start + Math.floor(this.scheduler.milliseconds / 1_000);
    const draft = await signRouteDraft(context, account.signer, {
      revision: (account.route?.revision ?? 0) + 1,
      ...{ relay_id: home.relayId, updated_at: now, expires_at: now + life },
    });
    account.route = await cosignRoute(context, home.signer, draft);
    account.home = home;
    account.since = this.scheduler.milliseconds;
    this.#signed.add(canonicalJson(account.route));
    home.observe(account.route);
    home.due.set(account.signer.account, this.scheduler.milliseconds);
  }

  async addAccount(index: number, home: DhtRelay, life?: number): Promise<Account> {
    const name = `account ${index}`;
    const signer = accountSigner(context, primitives.sha256(utf8(name)));
    const account = { name, signer, home, since: 0 } as unknown as Account;
    await this.adopt(account, home, life);
    this.accounts.push(account);
    return account;
  }

  /** Notes what a lookup took, and that it is within its bound (07 §B7). */
  noted(found: Found): Found {
    this.lookups.push(found);
    const { dhtLookupRequests } = defaultLimits;
    this.journal.must(
      found.requests <= dhtLookupRequests,
      () => `${found.requests} requests in a lookup`,
    );
    return found;
  }

  #some(relays: readonly DhtRelay[], count: number): DhtRelay[] {
    return Array.from({ length: count }, () => this.chance.pick(relays));
  }

  #requested(_: DhtRelay, request: KadRequest): void {
    this.requests += 1;
    if (request.type !== 0) return;
    const at = Math.floor(this.scheduler.milliseconds / window);
    this.#windows.set(at, (this.#windows.get(at) ?? 0) + 1);
  }

  /** No forged record is stored, and the memory of an honest relay only grows (07 §B10, §B11). */
  #stored(relay: DhtRelay, route: FinalRoute): void {
    this.journal.must(
      this.#signed.has(canonicalJson(route)),
      () => `${relay.name} stored a forgery`,
    );
    const before = this.highest(relay, route.account);
    this.journal.must(route.revision >= before, () => `the memory of ${relay.name} fell`);
    const key = `${relay.name} ${route.account}`;
    this.#highest.set(key, Math.max(before, route.revision));
  }
}

export function shuffled<T>(items: readonly T[], chance: Chance): T[] {
  const mixed = [...items];
  for (let index = mixed.length - 1; index > 0; index -= 1) {
    const other = chance.below(index + 1);
    [mixed[index], mixed[other]] = [mixed[other] as T, mixed[index] as T];
  }
  return mixed;
}
