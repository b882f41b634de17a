/** The DHT of a relay in this process: real serving and verification, frames without sockets. */
import type { PeerConnection, PeerStream } from '@posthouse/peer';
import type { FinalRoute } from '@posthouse/protocol';
import { utf8 } from '@posthouse/protocol';
import {
  decodeKadMessage,
  deriveRouteKey,
  encodeKadMessage,
  type KadMessage,
  type KadRequest,
  kadTypes,
} from '@posthouse/protocol/federation';
import { canonicalJson, type JsonObject } from '@posthouse/protocol/json';
import type { KadDecoder } from '../../src/federation/dht/decoder.ts';
import { readRouteRecord, verifyRouteRecord } from '../../src/federation/dht/route-record.ts';
import { DhtServer } from '../../src/federation/dht/serve.ts';
import { PeerRefusal } from '../../src/federation/peer-refusal.ts';
import type { EligiblePeer } from '../../src/federation/verify-descriptor.ts';
import { type InProcessRelay, network } from '../support/in-process-relay.ts';

/** Public keys of the relays that the registry lists as active, by relay ID. */
export type ActiveRelays = ReadonlyMap<string, string>;

const decoder: Pick<KadDecoder, 'decode'> = {
  decode: async (_, frame, bounds) => decodeKadMessage(frame, bounds),
};

/** The stream was reset, or storage failed: there is no answer. */
export class NoReply extends Error {}

/**
 * @example
 * const link = new DhtLink(relay, new Map([[relay.relayId, relayPublicKey]]));
 * const reply = await link.put(route, otherRelayId);
 */
export class DhtLink {
  readonly #relay: InProcessRelay;
  readonly #active: ActiveRelays;
  readonly #faults = { add: () => {} };
  #server: DhtServer | undefined;

  constructor(relay: InProcessRelay, active: ActiveRelays) {
    this.#relay = relay;
    this.#active = active;
  }

  /** To be called after the relay restarted: what it had in memory is gone. */
  restarted(): void {
    this.#server = undefined;
  }

  /** Sends PUT_VALUE as another relay; returns whether the exact record was echoed. */
  async put(route: JsonObject, from: string): Promise<boolean> {
    const key = deriveRouteKey(network, route.account as string);
    const record = { key, value: utf8(canonicalJson(route)) };
    const reply = await this.ask({ type: kadTypes.putValue, key, record }, from);
    const echoed = reply.record?.value;
    if (echoed === undefined) return false;
    if (Buffer.compare(echoed, record.value) !== 0) throw new Error('another record was echoed');
    return true;
  }

  /** Sends GET_VALUE as another relay; returns the text of the record, if there is one. */
  async get(account: string, from: string): Promise<string | undefined> {
    const key = deriveRouteKey(network, account);
    const { record } = await this.ask({ type: kadTypes.getValue, key }, from);
    return record?.value && Buffer.from(record.value).toString();
  }

  /** Sends GET_VALUE and validates the record as another relay does. */
  async find(asking: InProcessRelay, account: string): Promise<FinalRoute[]> {
    const key = deriveRouteKey(network, account);
    const { record } = await this.ask({ type: kadTypes.getValue, key }, asking.relayId);
    if (record?.value === undefined) return [];
    try {
      const route = readRouteRecord(asking.context, { key, value: record.value });
      const cause = this.#relay.relayId;
      await verifyRouteRecord(asking.context, eligibilityOf(this.#active), { route, cause });
      return [route];
    } catch {
      return [];
    }
  }

  /** @throws NoReply */
  async ask(request: KadRequest, from: string): Promise<KadMessage> {
    this.#server ??= new DhtServer(this.#relay.context, {
      eligibility: eligibilityOf(this.#active),
      faults: this.#faults,
      table: { closest: () => [] },
      decoder,
    } as never);
    const requests = [encodeKadMessage(request)];
    let answer: Uint8Array | undefined;
    const stream = {
      readFrame: async () => requests.shift(),
      writeFrame: async (frame: Uint8Array) => {
        answer = frame;
      },
      reset: () => {},
      end: () => {},
    };
    const peer = { relayId: from, peerId: utf8(from), addresses: [] };
    const connection = { peer } as unknown as PeerConnection<EligiblePeer>;
    try {
      await this.#server.serve(stream as unknown as PeerStream, connection);
    } catch (error) {
      throw new NoReply('serving failed', { cause: error });
    }
    if (answer === undefined) throw new NoReply('the stream was reset');
    return decodeKadMessage(answer, { peers: 40, addresses: 8 });
  }
}

function eligibilityOf(active: ActiveRelays) {
  return {
    verifyRouteRelay: async (relayId: string) => {
      const key = active.get(relayId);
      if (key === undefined) throw new PeerRefusal('not_listed', 'the registry does not list it');
      return key;
    },
  };
}
