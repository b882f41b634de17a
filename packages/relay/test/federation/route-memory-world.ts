/** Two relays of the model test with the DHT between them, and routes that a third relay made. */
import {
  type AccountSigner,
  accountSigner,
  cosignRoute,
  deriveRelayId,
  type FinalRoute,
  signRouteDraft,
} from '@posthouse/protocol';
import { canonicalJson } from '@posthouse/protocol/json';
import { expect } from 'vitest';
import { routeKeysJob, storeKeys } from '../../src/federation/dht/route-keys.ts';
import { Person } from '../fixtures/person.ts';
import { InProcessRelay, network } from '../support/in-process-relay.ts';
import { relayKeys } from '../support/modules.ts';
import { DhtLink, NoReply } from './dht-link.ts';
import { RouteMemory } from './route-memory.ts';
import { type RouteFacts, start } from './route-memory-steps.ts';

const others = [0x55, 0x56, 0x57].map((byte) =>
  accountSigner(network, new Uint8Array(32).fill(byte)),
);
const idOf = ({ publicKey }: AccountSigner) => deriveRelayId(network, publicKey);
/** The relay that sends what the test makes up. */
export const foreignId = idOf(others[0] as AccountSigner);
const ownBytes = [0x71, 0x72] as const;
const active = new Map([
  ...ownBytes.map(relayKeys).map(({ relayId, publicKey }) => [relayId, publicKey] as const),
  ...others.slice(0, 2).map((signer) => [idOf(signer), signer.publicKey] as const),
]);

const finals = new Map<string, Promise<FinalRoute>>();

export async function finalRoute(person: Person, route: RouteFacts): Promise<FinalRoute> {
  const { revision, relay, updated, expires } = route;
  const key = canonicalJson({ revision, relay, updated, expires });
  const signer = others[relay] as AccountSigner;
  const made =
    finals.get(key) ??
    signRouteDraft(network, person.signer, {
      ...{ revision, relay_id: deriveRelayId(network, signer.publicKey) },
      ...{ updated_at: start + updated, expires_at: start + expires },
    }).then((draft) => cosignRoute(network, signer, draft));
  finals.set(key, made);
  return forge(await made, route.forged);
}

/** Changes a route so that a signature does not verify. */
function forge(route: FinalRoute, what: RouteFacts['forged']): FinalRoute {
  const { account_signature, relay_signature } = route;
  switch (what) {
    case 'account':
      return { ...route, account_signature: relay_signature };
    case 'relay':
      return { ...route, relay_signature: account_signature };
    case 'revision':
      return { ...route, revision: route.revision + 100 };
    case undefined:
      return route;
  }
}

/** One of the two relays, with what the model says of it. */
export class Member implements AsyncDisposable {
  readonly relay: InProcessRelay;
  readonly link: DhtLink;
  memory = new RouteMemory();

  constructor(relay: InProcessRelay) {
    this.relay = relay;
    this.link = new DhtLink(relay, active);
  }

  get now(): number {
    return this.relay.clock.now();
  }

  /** Tells whether a route may be used by this relay's clock (07 §B10, rules 2 and 4). */
  isTimely(route: FinalRoute): boolean {
    const { futureTolerance } = this.relay.context.limits;
    return route.updated_at - this.now <= futureTolerance && this.now < route.expires_at;
  }

  async restart(): Promise<void> {
    await this.relay.restart();
    this.link.restarted();
    await routeKeysJob().run(this.relay.context, new AbortController().signal, () => noListener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.relay[Symbol.asyncDispose]();
  }
}

const noListener = { [Symbol.dispose]: () => {} };

export class World implements AsyncDisposable {
  readonly members: readonly [Member, Member];
  readonly ann: Person;
  isCut = false;
  readonly published: FinalRoute[] = [];
  /** Every valid route that was published or sent, to be sent again later. */
  readonly sent: FinalRoute[] = [];

  private constructor(members: readonly [Member, Member]) {
    this.members = members;
    this.ann = new Person(members[0].relay, 'ann');
  }

  static async start(): Promise<World> {
    const [first, second] = ownBytes.map((byte) => new Member(new InProcessRelay({}, byte)));
    const world = new World([first as Member, second as Member]);
    for (const member of world.members) {
      await member.relay.start();
      world.#connect(member);
    }
    await world.ann.addDevice('phone');
    return world;
  }

  other(member: Member): Member {
    return this.members[0] === member ? this.members[1] : this.members[0];
  }

  /** Applies a valid route to the model of a relay, as PUT_VALUE does; returns whether it is echoed. */
  put(member: Member, route: FinalRoute): boolean {
    const isEchoed = member.memory.accept(route);
    if (isEchoed) member.memory.isServed = true;
    return isEchoed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const member of this.members) await member[Symbol.asyncDispose]();
  }

  #connect(member: Member): void {
    const other = this.other(member);
    const { relay } = member;
    relay.missed = () => (this.isCut ? [other.relay.relayId] : []);
    relay.routes = async (account) => {
      const found = this.isCut ? [] : await other.link.find(relay, account);
      for (const route of found) if (member.isTimely(route)) member.memory.accept(route);
      return found;
    };
    relay.replicate = async (route, leaving) => {
      // The commit precedes replication (07 §B12).
      expect(member.memory.accept(route)).toBe(true);
      member.memory.isServed = true;
      this.published.push(route);
      this.sent.push(route);
      const { account } = route;
      await relay.context.storage.write(`account:${account}`, (tx) =>
        storeKeys(tx, network, [account]),
      );
      const reached = !this.isCut && (await this.#send(other, route, relay.relayId));
      return { isEnough: true, reachedLeaving: leaving === undefined || reached };
    };
  }

  async #send(to: Member, route: FinalRoute, from: string): Promise<boolean> {
    try {
      const isEchoed = await to.link.put(route as never, from);
      expect(isEchoed).toBe(to.isTimely(route) && this.put(to, route));
      return isEchoed;
    } catch (error) {
      if (!(error instanceof NoReply)) throw error;
      expect(to.isTimely(route)).toBe(false);
      return false;
    }
  }
}
