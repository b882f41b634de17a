/** Relays that reach each other by function calls: real dispatch and storage, no sockets. */
import type { FinalRoute } from '@posthouse/protocol';
import {
  encodeRelayNotification,
  encodeRelayRequest,
  type RelayMethodName,
  type RelayNotificationName,
  readRelayResponse,
} from '@posthouse/protocol/federation';
import { type JsonObject, parseJson } from '@posthouse/protocol/json';
import { afterEach, beforeEach } from 'vitest';
import { observeRoute, readUsableRoute } from '../../src/accounts/index.ts';
import type { RelayAnswer } from '../../src/context.ts';
import type { RelayLimits } from '../../src/limits.ts';
import { InProcessRelay } from './in-process-relay.ts';

/** A request from one relay to another, as a test may answer it instead. */
export interface WiredCall {
  readonly from: string;
  readonly to: string;
  readonly method: string;
  readonly params: JsonObject;
}

/**
 * Several relays, each of its own storage and clock.
 *
 * @example
 * const wired = wiredRelays(2);
 * test('...', async () => {
 *   const [a, b] = wired.relays;
 *   const ann = await a.register('ann');
 * });
 */
export class WiredRelays implements AsyncDisposable {
  readonly relays: readonly InProcessRelay[];
  /** Every call that was sent, in order. */
  readonly calls: WiredCall[] = [];
  /** Answers a call instead of its target if it returns one; `forward` sends the call on. */
  intercept:
    | ((call: WiredCall, forward: () => Promise<RelayAnswer>) => Promise<RelayAnswer>)
    | undefined;
  readonly #cut = new Set<string>();

  constructor(count: number, limits: Partial<RelayLimits> = {}) {
    this.relays = Array.from(
      { length: count },
      (_, index) => new InProcessRelay(limits, 0x71 + index),
    );
  }

  async start(): Promise<void> {
    this.calls.length = 0;
    this.intercept = undefined;
    this.#cut.clear();
    for (const relay of this.relays) {
      await relay.start();
      this.#wire(relay);
    }
  }

  /** Cuts the way from one relay to another, in this direction only. */
  cut(from: InProcessRelay, to: InProcessRelay): void {
    this.#cut.add(`${from.relayId} ${to.relayId}`);
  }

  heal(): void {
    this.#cut.clear();
  }

  /** Moves the clocks of all relays. */
  advance(seconds: number): void {
    for (const { clock } of this.relays) clock.advance(seconds);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const relay of this.relays) await relay[Symbol.asyncDispose]();
  }

  #wire(relay: InProcessRelay): void {
    relay.routes = async (account, only) => {
      const asked = this.#reachableFrom(relay).filter(
        ({ relayId }) => relayId === (only ?? relayId),
      );
      return (await Promise.all(asked.map((other) => knownRoutes(other, account)))).flat();
    };
    relay.missed = () => {
      const reachable = this.#reachableFrom(relay);
      const others = this.relays.filter((other) => other !== relay && !reachable.includes(other));
      return others.map(({ relayId }) => relayId);
    };
    relay.replicate = async (route, leaving) => {
      const left = this.#reachableFrom(relay).find(({ relayId }) => relayId === leaving);
      if (left !== undefined) await observeRoute(left.context, route);
      return { isEnough: true, reachedLeaving: leaving === undefined || left !== undefined };
    };
    relay.callRelay = async (to, method, params) => {
      const call = { from: relay.relayId, to, method, params };
      this.calls.push(call);
      const forward = () => this.#call(relay, call);
      return (await this.intercept?.(call, forward)) ?? (await forward());
    };
    relay.notifyRelay = async (to, name, params) => {
      this.calls.push({ from: relay.relayId, to, method: name, params });
      const text = encodeRelayNotification(name as RelayNotificationName, params);
      const target = this.#reachableFrom(relay).find(({ relayId }) => relayId === to);
      await target?.answerRelay(new TextEncoder().encode(text), relay);
      return target !== undefined;
    };
  }

  async #call(relay: InProcessRelay, { to, method, params }: WiredCall): Promise<RelayAnswer> {
    const target = this.#reachableFrom(relay).find(({ relayId }) => relayId === to);
    if (target === undefined) return { kind: 'unreachable' };
    const id = this.calls.length;
    const text = encodeRelayRequest({ id, method: method as RelayMethodName, params });
    const reply = await target.answerRelay(new TextEncoder().encode(text), relay);
    if (reply.kind !== 'answer') throw new Error(`${method} was not answered`);
    return readRelayResponse(reply.text, id);
  }

  #reachableFrom({ relayId: from }: InProcessRelay): InProcessRelay[] {
    return this.relays.filter(({ relayId: to }) => to !== from && !this.#cut.has(`${from} ${to}`));
  }
}

/** What a relay answers to GET_VALUE: its usable route of the account. */
async function knownRoutes(relay: InProcessRelay, account: string): Promise<FinalRoute[]> {
  const { clock, storage } = relay.context;
  const route = await storage.read((tx) => readUsableRoute(tx, account, clock.now()));
  return route === undefined ? [] : [parseJson(route) as unknown as FinalRoute];
}

/** Starts relays before each test of the file and stops them afterwards. */
export function wiredRelays(count: number, limits: Partial<RelayLimits> = {}): WiredRelays {
  const wired = new WiredRelays(count, limits);
  beforeEach(() => wired.start());
  afterEach(() => wired[Symbol.asyncDispose]());
  return wired;
}
