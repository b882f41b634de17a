/** What a relay of the kit does in the relay DHT, unless a check says otherwise. */
import type { PeerStream } from '@posthouse/peer';
import type { Network } from '@posthouse/protocol';
import {
  checkKadRequest,
  decodeKadMessage,
  deriveRouteKey,
  encodeKadMessage,
  type KadMessage,
  type KadPeer,
  type KadRequest,
  kadTypes,
} from '@posthouse/protocol/federation';
import type { JsonObject } from '@posthouse/protocol/json';
import { type HomeAccount, recordOf } from './home-account.ts';

/** A request of the relay under test. */
export interface ReceivedRequest {
  readonly request: KadRequest;
  /** The message's bytes, without their length. */
  readonly frame: Uint8Array;
}

/** What is sent for a request. */
export type ReplyToRequest =
  | KadMessage
  /** The bytes of a message, valid or not. */
  | { readonly frame: Uint8Array }
  /** The stream is reset, or ended without an answer. */
  | 'reset'
  | 'ended';

export type AnsweringRequest = (
  received: ReceivedRequest,
) => ReplyToRequest | Promise<ReplyToRequest>;

type RouteText = JsonObject & { readonly account: string };

const nameOf = (key: Uint8Array) => Buffer.from(key).toString('hex');

/**
 * Stores what it is sent, without any check, and returns it; returns the routes of the accounts at
 * home at this relay. It names no other peers, unless it is told to.
 */
export class DhtService {
  /** Every request, in order. */
  readonly received: ReceivedRequest[] = [];
  /** What was wrong with requests that break a rule of their form (07 §B7). */
  readonly malformed: string[] = [];
  readonly #network: Network;
  readonly #homes: readonly HomeAccount[];
  readonly #values = new Map<string, Uint8Array>();
  readonly #answers = new Map<string, AnsweringRequest>();
  readonly #closer = new Map<string, readonly KadPeer[]>();

  /** @param homes the accounts at home at this relay; a caller may add some later */
  constructor(network: Network, homes: readonly HomeAccount[]) {
    this.#network = network;
    this.#homes = homes;
  }

  /** Stores a route, valid or not, as if it had been sent. */
  hold(route: RouteText): void {
    const { key, value } = recordOf(this.#network, route);
    this.#values.set(nameOf(key), value);
  }

  /** Forgets the route of an account. */
  drop(account: string): void {
    this.#values.delete(this.#name(account));
  }

  /** Replaces the answers to requests with the key of an account. */
  answer(account: string, answering: AnsweringRequest): void {
    this.#answers.set(this.#name(account), answering);
  }

  /** Names peers in the answers to GET_VALUE and FIND_NODE with the key of an account. */
  nameCloser(account: string, peers: readonly KadPeer[]): void {
    this.#closer.set(this.#name(account), peers);
  }

  /** Answers as at first again to requests with the key of an account; what it stores stays. */
  reset(account: string): void {
    this.#answers.delete(this.#name(account));
    this.#closer.delete(this.#name(account));
  }

  /** Returns the received requests of one type with the key of an account. */
  requests(type: KadRequest['type'], account: string): ReceivedRequest[] {
    const name = this.#name(account);
    return this.received.filter(
      ({ request }) => request.type === type && nameOf(request.key) === name,
    );
  }

  /** Returns the texts of the routes of an account that it was sent, in order. */
  puts(account: string): string[] {
    return this.requests(kadTypes.putValue, account).map(({ request }) =>
      Buffer.from(request.record?.value ?? []).toString(),
    );
  }

  /** Serves a stream of the relay DHT, with several requests if they come. */
  async serve(stream: PeerStream): Promise<void> {
    for (;;) {
      const frame = await stream.readFrame();
      if (frame === undefined) return;
      const request = this.#read(frame);
      if (request === undefined) return stream.reset();
      const received = { request, frame };
      this.received.push(received);
      const answering = this.#answers.get(nameOf(request.key));
      const reply = await (answering?.(received) ?? this.honest(request));
      if (reply === 'reset') return stream.reset();
      if (reply === 'ended') return;
      await stream.writeFrame('frame' in reply ? reply.frame : encodeKadMessage(reply));
    }
  }

  /** Answers a request as it does without an order of a check. */
  honest({ type, key, record }: KadRequest): KadMessage {
    const name = nameOf(key);
    if (type === kadTypes.putValue) {
      this.#values.set(name, record.value);
      return { type, key, record };
    }
    const value = type === kadTypes.getValue ? this.#value(name) : undefined;
    const closerPeers = this.#closer.get(name) ?? [];
    return { type, key, ...(value && { record: { key, value } }), closerPeers };
  }

  #value(name: string): Uint8Array | undefined {
    const home = this.#homes.find(({ id }) => this.#name(id) === name);
    return home === undefined ? this.#values.get(name) : recordOf(this.#network, home.route).value;
  }

  #read(frame: Uint8Array): KadRequest | undefined {
    try {
      const message = decodeKadMessage(frame, { peers: 0, addresses: 0 });
      checkKadRequest(message);
      return message;
    } catch (error) {
      this.malformed.push((error as Error).message);
      return undefined;
    }
  }

  #name(account: string): string {
    return nameOf(deriveRouteKey(this.#network, account));
  }
}
