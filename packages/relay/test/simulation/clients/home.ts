/** A simulated relay as the fixtures of other tests call it. */
import type { JsonObject, JsonValue } from '@posthouse/protocol/json';
import type { Session } from '../../../src/sessions/session.ts';
import type { HomeRelay } from '../../fixtures/person.ts';
import type { SimulatedClock } from '../relay/clock.ts';
import type { SimulatedRelay } from '../relay/simulated-relay.ts';
import { type Agent, isUncertain } from './agent.ts';
import { tookEffect } from './effect.ts';

export class Home implements HomeRelay {
  readonly relay: SimulatedRelay;
  readonly #agentOf: (session: Session) => Agent;

  /** @param agentOf finds who calls with the keys of a session */
  constructor(relay: SimulatedRelay, agentOf: (session: Session) => Agent) {
    this.relay = relay;
    this.#agentOf = agentOf;
  }

  get clock(): SimulatedClock {
    return this.relay.clock;
  }

  get relayId(): string {
    return this.relay.relayId;
  }

  async call(
    method: string,
    params: unknown,
    { session }: { readonly session?: Session | undefined } = {},
  ): Promise<JsonValue> {
    if (session === undefined) throw new Error('every call of a simulation has a caller');
    try {
      return await this.#agentOf(session).call(this.relay, method, params as JsonValue);
    } catch (error) {
      const isDone = isUncertain(error) && tookEffect(this.relay, method, params as JsonObject);
      if (isDone) return null;
      throw error;
    }
  }
}
