/** Three whole relays that federate, with a cable before the port that each has for the others. */

import { setImmediate } from 'node:timers/promises';
import type { DeliveryStatus } from '@posthouse/protocol';
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { PartialConfig } from '../../src/config/index.ts';
import { type HomeRelay, Person, type SendParams } from '../fixtures/person.ts';
import { Cable } from '../support/cable.ts';
import { freePort } from '../support/ports.ts';
import { ServedNetwork } from '../support/served-network.ts';
import type { ServedRelay } from '../support/served-relay.ts';
import type { SentMessage } from './received.ts';

/** Names of the relays, in the order of their start. */
const names = ['a', 'b', 'c'] as const;
export type RelayName = (typeof names)[number];

/** Settings of one relay, in addition to those of all. */
type Settings = (name: RelayName) => PartialConfig;

/**
 * @example
 * const network = relayNetwork();
 * test('...', async () => {
 *   const { a, b } = network;
 *   const ann = await network.register('ann', a);
 *   network.cables.b.cut();
 * });
 */
export class RelayNetwork implements AsyncDisposable {
  readonly #settings: Settings;
  readonly #parts = new AsyncDisposableStack();
  #relays: Record<RelayName, ServedRelay> | undefined;
  #cables: Record<RelayName, Cable> | undefined;
  #people = 0;

  constructor(settings: Settings = () => ({})) {
    this.#settings = settings;
  }

  static async start(settings?: Settings): Promise<RelayNetwork> {
    const network = new RelayNetwork(settings);
    await network.start();
    return network;
  }

  /** Starts the relays; resolves when each has reached the others. */
  async start(): Promise<void> {
    const ports = await Promise.all(names.map(() => freePort()));
    const cables = await Promise.all(ports.map((port) => Cable.to(port)));
    for (const cable of cables) this.#parts.use(cable);
    const byName = <T>(values: readonly T[]) =>
      Object.fromEntries(names.map((name, index) => [name, values[index]])) as Record<RelayName, T>;
    this.#cables = byName(cables);
    const served = await ServedNetwork.start(names.length, (index) => {
      const own = this.#settings(names[index] as RelayName);
      const { public: addresses, federation, ...others } = own;
      return {
        ...others,
        public: { peer: `/ip4/127.0.0.1/tcp/${cables[index]?.port}`, ...addresses },
        federation: { listen: `127.0.0.1:${ports[index]}`, ...federation },
      };
    });
    this.#parts.use(served);
    this.#relays = byName(served.relays);
    await this.#reachEachOther();
  }

  get a(): ServedRelay {
    return this.relays.a;
  }

  get b(): ServedRelay {
    return this.relays.b;
  }

  get c(): ServedRelay {
    return this.relays.c;
  }

  get relays(): Record<RelayName, ServedRelay> {
    if (this.#relays === undefined) throw new Error('the relays were not started');
    return this.#relays;
  }

  /** The way to each relay, for the two others. */
  get cables(): Record<RelayName, Cable> {
    if (this.#cables === undefined) throw new Error('the relays were not started');
    return this.#cables;
  }

  /** Makes a person, of a name that no other has, who is at home at a relay and uses all of them. */
  async register(
    name: string,
    home: ServedRelay,
    devices: readonly string[] = ['phone'],
  ): Promise<Person> {
    const person = this.#person(name, home);
    await person.register(devices);
    return person;
  }

  /** Makes a person with a phone whose account no relay has yet. */
  async stranger(name: string, home: ServedRelay): Promise<Person> {
    const person = this.#person(name, home);
    await person.addDevice('phone');
    return person;
  }

  #person(name: string, home: ServedRelay): Person {
    this.#people += 1;
    const person = new Person(home, `${name} ${this.#people}`);
    for (const { people } of Object.values(this.relays)) people.set(person.account, person);
    return person;
  }

  /** Moves all clocks, and runs the jobs whose deadlines have passed by that. */
  advance(seconds: number): void {
    for (const relay of Object.values(this.relays)) {
      relay.clock.advance(seconds);
      relay.server.wakeJobs();
    }
  }

  /** As {@link fateOf}, for deliveries that are tried again. */
  async fateAfterRetries(
    home: ServedRelay,
    sent: { from: Person; message: SendParams },
  ): Promise<string> {
    let result: DeliveryStatus | undefined;
    await this.untilInTime(async () => {
      result = await statusOf(home, sent);
      return result.status !== 'delivering';
    });
    return result?.error?.code ?? 'ok';
  }

  /** {@link untilInTime} for all relays. */
  async untilInTime(isSo: () => Promise<boolean>): Promise<void> {
    await untilInTime(isSo, (seconds) => this.advance(seconds));
  }

  /** Breaks the ways to all relays, so that none reaches another. */
  cutAll(): void {
    for (const cable of Object.values(this.cables)) cable.cut();
  }

  /** Restores all ways, and waits until the relays have reached each other again. */
  async heal(): Promise<void> {
    for (const cable of Object.values(this.cables)) cable.restore();
    await this.#reachEachOther();
  }

  /** Waits until each relay gets answers of the others; pauses pass for all, whose clocks agree. */
  async #reachEachOther(): Promise<void> {
    const all = Object.values(this.relays);
    for (const { server, clock } of all) {
      const { relayClient } = server.context;
      for (const to of all) {
        if (to.relayId === server.relayId) continue;
        await until(async () => {
          const pause = relayClient.pausedUntil(to.relayId);
          if (pause !== undefined) this.advance(Math.max(0, pause - clock.now()));
          const answer = await relayClient.call(to.relayId, 'profile.resolve', { account: 'none' });
          return answer.kind === 'refused';
        });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A relay that stops waits for answers, which a hanging way would never bring.
    for (const cable of Object.values(this.cables)) cable.restore();
    await this.#parts.disposeAsync();
  }
}

/** Repeats a question until the answer is yes; the test's time limit ends it. */
export async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await setImmediate();
}

/**
 * Repeats a question until the answer is yes, and makes what is to be tried again due.
 *
 * @param isSo calls a relay, so that calls under way have their time between the small steps
 * @param advance moves clocks
 */
export async function untilInTime(
  isSo: () => Promise<boolean>,
  advance: (seconds: number) => void,
): Promise<void> {
  for (let asked = 1; !(await isSo()); asked += 1) {
    await setImmediate();
    if (asked % 10 === 0) advance(6);
  }
}

/** Sends a message at the sender's home relay. */
export async function send(
  home: HomeRelay,
  { from, message, device = 'phone' }: { from: Person; message: SendParams; device?: string },
): Promise<DeliveryStatus> {
  const session = from.session(device);
  return (await home.call('message.send', message, { session })) as unknown as DeliveryStatus;
}

/** Sends a message that its recipient has granted, from the phone of each. */
export async function sendTo(home: HomeRelay, from: Person, to: Person): Promise<SentMessage> {
  const message = from.message(to, { authorization: to.grant(from), senders: ['phone'] });
  await send(home, { from, message });
  return { from, to, message };
}

/** Reads a message's delivery status as its sender. */
export async function statusOf(
  home: HomeRelay,
  { from, message }: { from: Person; message: SendParams },
): Promise<DeliveryStatus> {
  const { message_id } = message.envelope;
  const session = from.session();
  const status = await home.call('message.delivery.status', { message_id }, { session });
  return status as unknown as DeliveryStatus;
}

/** Waits until a message is delivered, or its delivery has failed; `ok` or the error's code. */
export async function fateOf(
  home: ServedRelay,
  sent: { from: Person; message: SendParams },
): Promise<string> {
  let result: DeliveryStatus | undefined;
  await until(async () => {
    result = await statusOf(home, sent);
    return result.status !== 'delivering';
  });
  return result?.error?.code ?? 'ok';
}

/** Starts three relays before the tests of the file and stops them after them. */
export function relayNetwork(settings?: Settings): RelayNetwork {
  const network = new RelayNetwork(settings);
  beforeAll(() => network.start());
  afterEach(() => network.heal());
  afterAll(() => network[Symbol.asyncDispose]());
  return network;
}
