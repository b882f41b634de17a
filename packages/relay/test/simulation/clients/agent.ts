/** A device, or an account key, as it calls relays: it repeats a call until the answer is certain. */
import {
  accountAuthInput,
  deviceAuthInput,
  encodeBase64url,
  type MethodName,
  methods,
  ProtocolError,
} from '@posthouse/protocol';
import { type JsonObject, type JsonValue, parseJson } from '@posthouse/protocol/json';
import { encodeResult } from '../../../src/dispatch/encode.ts';
import type { Person, TestDevice } from '../../fixtures/person.ts';
import { origin, network as protocolNetwork } from '../../support/modules.ts';
import type { Journal } from '../journal.ts';
import type { Chance } from '../machine/chance.ts';
import { type NetworkNode, NoAnswer, type SimulatedNetwork } from '../machine/network.ts';
import type { Scheduler } from '../machine/scheduler.ts';
import type { SimulatedRelay } from '../relay/simulated-relay.ts';
import { ClientSocket } from './client-socket.ts';

export interface AgentParts {
  /** The machine of all clients; it is never cut off from itself. */
  readonly node: NetworkNode;
  readonly network: SimulatedNetwork;
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  readonly journal: Journal;
}

/** A session as its relay answered it. */
interface Opened {
  readonly token: string;
  readonly expires_at: number;
}

/** A bound WebSocket. */
export interface BoundSocket {
  readonly socket: ClientSocket;
  readonly relay: SimulatedRelay;
  /** Unix seconds. */
  readonly expiresAt: number;
}

/** Milliseconds after which a call that has no certain answer breaks the rule that it gets one. */
const longestCall = 6 * 3_600_000;
/** Milliseconds between two attempts. */
const pauses = { shortest: 50, longest: 8_000 } as const;

/** Refusals of calls of which an earlier attempt may have been carried out. */
const uncertain = new WeakSet<object>();

/** Whether a device that does nothing wrong tries again. */
function isTemporary(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return false;
  const { code, message } = error;
  // The clock of the relay was set forward while the device signed in.
  const isLateProof = code === 'clock_skew' && message.startsWith('timestamp is too far');
  return isLateProof || code === 'temporarily_unavailable' || code === 'rate_limited';
}

/** Whether an attempt before this refusal may have been carried out. */
export function isUncertain(refusal: unknown): boolean {
  return uncertain.has(refusal as object);
}

interface AgentFacts {
  readonly person: Person;
  /** Name of the person. */
  readonly name: string;
  readonly device?: { readonly name: string; readonly keys: TestDevice };
}

export class Agent {
  readonly person: Person;
  /** The keys of the device; absent for the account key. */
  readonly device: TestDevice | undefined;
  readonly name: string;
  /** Called with each notification of a bound socket. */
  notified: (bound: BoundSocket, method: string, params: JsonObject) => void = () => {};
  readonly #parts: AgentParts;
  readonly #tokens = new Map<SimulatedRelay, string>();
  #bound: BoundSocket | undefined;

  constructor({ person, name, device }: AgentFacts, parts: AgentParts) {
    this.person = person;
    this.device = device?.keys;
    this.name = device === undefined ? name : `${name}'s ${device.name}`;
    this.#parts = parts;
  }

  /** The socket, if it is open. */
  get bound(): BoundSocket | undefined {
    return this.#bound?.socket.isOpen === true ? this.#bound : undefined;
  }

  /**
   * Calls a relay until the answer is certain.
   *
   * @param via `socket` if the method needs one
   * @throws ProtocolError what the relay refuses with; see {@link isUncertain}
   */
  async call(
    relay: SimulatedRelay,
    method: string,
    params: JsonValue,
    via: 'any' | 'socket' = 'any',
  ): Promise<JsonValue> {
    const { scheduler, chance, journal } = this.#parts;
    const began = scheduler.milliseconds;
    let mayBeDone = false;
    /** In a row: a call that lasts may see several steps of the clock, each of which ends sessions. */
    let unauthorized = 0;
    for (;;) {
      try {
        const answer = await this.#once(relay, { method, params, via });
        journal.record(`${this.name} ${method} ok`);
        return answer;
      } catch (error) {
        const code = error instanceof ProtocolError ? error.code : (error as Error).message;
        journal.record(`${this.name} ${method} ${code}`);
        if (code === 'internal_error') journal.broken(`${method} is answered internal_error`);
        unauthorized = code === 'unauthorized' ? unauthorized + 1 : 0;
        if (error instanceof NoAnswer) mayBeDone ||= !error.isUnsent;
        else if (code === 'unauthorized' && unauthorized <= 2) {
          this.#tokens.delete(relay);
          this.close();
        } else if (!isTemporary(error)) {
          if (mayBeDone) uncertain.add(error as object);
          throw error;
        }
      }
      if (scheduler.milliseconds - began > longestCall) {
        journal.broken(`${this.name} gets no certain answer to ${method}`);
      }
      await scheduler.pause(chance.between(pauses.shortest, pauses.longest));
    }
  }

  /**
   * Opens a socket and binds it to a session; once.
   *
   * @throws ProtocolError, NoAnswer
   */
  async connect(relay: SimulatedRelay): Promise<BoundSocket> {
    const { network, node, scheduler, journal } = this.#parts;
    this.close();
    const end = await network.connect(node, relay, (far) => relay.accept(far, this.#address));
    const socket = new ClientSocket(end, scheduler);
    try {
      // Hints may follow the answer at once.
      let bound: BoundSocket | undefined;
      socket.notified = (method, params) => {
        if (bound !== undefined) this.notified(bound, method, params);
      };
      const { expires_at } = await this.#authenticate(relay, (method, params) =>
        socket.call(method, params),
      );
      bound = { socket, relay, expiresAt: expires_at };
      this.#bound = bound;
      journal.record(`${this.name} connected to ${relay.name}`);
      return bound;
    } catch (error) {
      socket.close();
      throw error;
    }
  }

  close(): void {
    this.#bound?.socket.close();
    this.#bound = undefined;
  }

  /** Forgets sessions of a relay, as a client that starts anew. */
  forget(): void {
    this.close();
    this.#tokens.clear();
  }

  get #address(): string {
    return `10.0.0.${1 + (this.name.length % 200)}`;
  }

  async #once(
    relay: SimulatedRelay,
    {
      method,
      params,
      via,
    }: { readonly method: string; readonly params: JsonValue; readonly via: string },
  ): Promise<JsonValue> {
    const { chance } = this.#parts;
    const bound = this.bound;
    const canUse = bound?.relay === relay && this.device !== undefined;
    if (via === 'socket' && !canUse) throw new NoAnswer(true);
    if (canUse && (via === 'socket' || chance.is(0.5)))
      return await bound.socket.call(method, params);
    if (methods[method as MethodName].session === 'none') {
      return await this.#http(relay, method, params);
    }
    let token = this.#tokens.get(relay);
    if (token === undefined) {
      const call = (name: string, object: JsonValue) => this.#http(relay, name, object);
      token = (await this.#authenticate(relay, call)).token;
      this.#tokens.set(relay, token);
    }
    return await this.#http(relay, method, params, token);
  }

  async #http(
    relay: SimulatedRelay,
    method: string,
    params: JsonValue,
    token?: string,
  ): Promise<JsonValue> {
    const { network, node } = this.#parts;
    const body = JSON.stringify(params);
    const answer = await network.request(node, relay, async () => {
      const given = await relay.answerHttp({ method, address: this.#address, body }, token);
      return given.ok ? ({ ok: true, text: encodeResult(given.result) } as const) : given;
    });
    if (!answer.ok) throw answer.error;
    return parseJson(answer.text);
  }

  async #authenticate(
    relay: SimulatedRelay,
    call: (method: string, params: JsonValue) => Promise<JsonValue>,
  ): Promise<Opened> {
    const { person } = this;
    const { account } = person;
    const { nonce } = (await call('auth.challenge', { account })) as { nonce: string };
    const about = { relay_id: relay.relayId, origin, account, nonce };
    if (this.device === undefined) {
      const { publicKey, sign } = person.signer;
      const input = accountAuthInput(protocolNetwork, { ...about, account_public_key: publicKey });
      return (await call('auth.account.verify', {
        ...{ nonce, account_public_key: publicKey },
        account_signature: encodeBase64url(await sign(input)),
      })) as unknown as Opened;
    }
    const { certificate, deviceId, signer } = this.device;
    const timestamp = relay.clock.now();
    const input = deviceAuthInput(protocolNetwork, { ...about, device_id: deviceId, timestamp });
    return (await call('auth.device.verify', {
      ...{ nonce, timestamp, signer_certificate: certificate as unknown as JsonObject },
      device_signature: encodeBase64url(signer.sign(input)),
    })) as unknown as Opened;
  }
}
