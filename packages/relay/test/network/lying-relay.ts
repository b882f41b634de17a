/** A relay that lies: registered, admitted and connected, with handlers that answer as a test says. */
import type { PeerStream } from '@posthouse/peer';
import { type FinalRoute, utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  deriveRouteKey,
  encodeKadMessage,
  type KadMessage,
  kadTypes,
} from '@posthouse/protocol/federation';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import { ForeignRelay, type ForeignRelayOptions } from '../federation/foreign-relay.ts';
import { Person } from '../fixtures/person.ts';
import { network } from '../support/in-process-relay.ts';
import type { ServedRelay } from '../support/served-relay.ts';

/** A response without its envelope, or the members of an envelope to send instead. */
export type Lie = (params: JsonObject, request: JsonObject) => object | Promise<object>;

/**
 * @example
 * await using liar = await LyingRelay.start(relay);
 * const liam = await liar.account('liam');
 * liar.lies['profile.resolve'] = () => ({ result: anotherProfile });
 */
export class LyingRelay implements AsyncDisposable {
  readonly foreign: ForeignRelay;
  /** Answers by method; without one it refuses with `internal_error`. */
  lies: Record<string, Lie> = {};
  /** Routes that it returns to GET_VALUE, by key in hex, and whether it echoes PUT_VALUE. */
  readonly routes = new Map<string, FinalRoute>();
  /** Requests that it got, in order. */
  readonly asked: { readonly method: string; readonly params: JsonObject }[] = [];
  readonly #relay: ServedRelay;

  private constructor(relay: ServedRelay, foreign: ForeignRelay) {
    this.#relay = relay;
    this.foreign = foreign;
    foreign.serveRpc = (stream) => this.#answer(stream);
    foreign.serveDht = (stream) => this.#serveDht(stream);
  }

  static async start(relay: ServedRelay, options: ForeignRelayOptions = {}): Promise<LyingRelay> {
    return new LyingRelay(relay, await ForeignRelay.start(relay, options));
  }

  get relayId(): string {
    return this.foreign.relayId;
  }

  /** Makes an account at home here, whose route the relay under test has stored. */
  async account(name: string): Promise<Person> {
    const { clock, people } = this.#relay;
    const call = () => Promise.reject(new Error('the test answers for this relay'));
    const person = new Person({ clock, relayId: this.relayId, people, call }, name);
    await person.addDevice('phone');
    await this.put(await this.foreign.route(person, 1_000));
    return person;
  }

  /** Sends PUT_VALUE; returns whether the relay under test echoed the record. */
  async put(route: FinalRoute): Promise<boolean> {
    const key = deriveRouteKey(network, route.account);
    const record = { key, value: utf8(canonicalJson(route)) };
    try {
      const reply = await this.foreign.askDht({ type: kadTypes.putValue, key, record });
      return reply?.record !== undefined;
    } catch {
      return false;
    }
  }

  /** Sends a request; returns the response, or `undefined` if the stream was reset. */
  async ask(method: string, params: unknown): Promise<JsonObject | undefined> {
    try {
      const stream = await this.foreign.openRpc();
      await stream.writeFrame(utf8(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })));
      stream.end();
      const frame = await stream.readFrame();
      return frame && JSON.parse(Buffer.from(frame).toString());
    } catch {
      return undefined;
    }
  }

  /** Sends a notification; resolves when the relay under test has ended the stream. */
  async notify(method: string, params: unknown): Promise<void> {
    const stream = await this.foreign.openRpc();
    await stream.writeFrame(utf8(JSON.stringify({ jsonrpc: '2.0', method, params })));
    stream.end();
    await stream.readFrame();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.foreign[Symbol.asyncDispose]();
  }

  async #answer(stream: PeerStream): Promise<void> {
    const frame = await stream.readFrame();
    if (frame === undefined) return;
    const request = JSON.parse(Buffer.from(frame).toString()) as JsonObject;
    const { method, params } = request as { method: string; params: JsonObject };
    this.asked.push({ method, params });
    const lie = this.lies[method] ?? (() => ({ error: { code: -32603, message: 'no' } }));
    const answer = { jsonrpc: '2.0', id: request.id, ...(await lie(params, request)) };
    await stream.writeFrame(utf8(JSON.stringify(answer)));
  }

  async #serveDht(stream: PeerStream): Promise<void> {
    const frame = await stream.readFrame();
    if (frame === undefined) return;
    const request = decodeKadMessage(frame, { peers: 0, addresses: 0 });
    await stream.writeFrame(encodeKadMessage(this.#reply(request)));
  }

  #reply({ type, key = new Uint8Array(), record }: KadMessage): KadMessage {
    // It stores nothing, whatever it says.
    if (type === kadTypes.putValue) return { type, key, ...(record && { record }) };
    const route = this.routes.get(Buffer.from(key).toString('hex'));
    if (type !== kadTypes.getValue || route === undefined) return { type, key };
    return { type, key, record: { key, value: utf8(canonicalJson(route)) } };
  }
}
