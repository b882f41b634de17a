/** Inbound streams of the relay DHT (07 §B6, §B7). */

import type { PeerConnection, PeerStream } from '@posthouse/peer';
import { type FinalRoute, ProtocolError } from '@posthouse/protocol';
import {
  checkKadRequest,
  encodeKadMessage,
  type KadMessage,
  type KadRequest,
  kadTypes,
} from '@posthouse/protocol/federation';
import { observeRoute, readUsableRoute } from '../../accounts/index.ts';
import type { RelayContext } from '../../context.ts';
import { RateLimiter } from '../../dispatch/rate-limiter.ts';
import { dhtServed } from '../../observability/peer-events.ts';
import type { Eligibility } from '../eligibility.ts';
import type { PeerFaults } from '../peer-faults.ts';
import { PeerRefusal } from '../peer-refusal.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';
import { closerPeers } from './closer-peers.ts';
import type { KadDecoder } from './decoder.ts';
import { dhtFaultOf, dhtTypeName } from './messages.ts';
import { NewAccounts } from './new-accounts.ts';
import { readKeyAccount, storeKeys } from './route-keys.ts';
import { readRouteRecord, verifyRouteRecord } from './route-record.ts';
import type { DhtTable } from './table.ts';

/** A request above a quota: the stream is reset, which is no fault of the peer's messages. */
class OverQuota extends Error {}

export interface DhtServerParts {
  readonly eligibility: Eligibility;
  readonly faults: PeerFaults;
  readonly table: DhtTable;
  readonly decoder: Pick<KadDecoder, 'decode'>;
}

type PutRequest = Extract<KadRequest, { type: 0 }>;

/** Serves requests of the relay DHT. */
export class DhtServer {
  readonly #context: RelayContext;
  readonly #eligibility: Eligibility;
  readonly #faults: PeerFaults;
  readonly #table: DhtTable;
  readonly #decoder: Pick<KadDecoder, 'decode'>;
  readonly #requests: RateLimiter;
  readonly #bytes: RateLimiter;
  readonly #puts: RateLimiter;
  readonly #newAccounts: NewAccounts;

  constructor(context: RelayContext, { eligibility, faults, table, decoder }: DhtServerParts) {
    this.#context = context;
    this.#decoder = decoder;
    this.#table = table;
    this.#eligibility = eligibility;
    this.#faults = faults;
    const { clock, limits } = context;
    const { dhtRate, dhtBurst, dhtBytes, dhtBytesBurst, dhtPutRate, dhtPutBurst } = limits;
    const keys = limits.federationRegistryRelays;
    this.#requests = new RateLimiter({ rate: dhtRate, burst: dhtBurst, clock, keys });
    this.#bytes = new RateLimiter({ rate: dhtBytes, burst: dhtBytesBurst, clock, keys });
    this.#puts = new RateLimiter({ rate: dhtPutRate, burst: dhtPutBurst, clock, keys });
    this.#newAccounts = new NewAccounts(context);
  }

  /**
   * Serves the requests of one stream until the peer ends it. There are no error answers: an invalid
   * request, or one above a quota, resets the stream.
   */
  async serve(stream: PeerStream, { peer }: PeerConnection<EligiblePeer>): Promise<void> {
    const { relayId } = peer;
    if (this.#requests.take(relayId) > 0) return stream.reset();
    try {
      for (let isFirst = true; ; isFirst = false) {
        const frame = await stream.readFrame();
        if (frame === undefined) return;
        // Charged once it has come: a reset any earlier could take back the answer before it.
        if (!isFirst && this.#requests.take(relayId) > 0) break;
        // Before decoding, which takes longer than anything else for a message of many fields.
        if (this.#bytes.charge(relayId, frame.length) > 0) break;
        const reply = await this.#answer(frame, peer);
        await stream.writeFrame(encodeKadMessage(reply));
      }
    } catch (error) {
      const fault = dhtFaultOf(error);
      if (fault !== undefined) this.#faults.add(relayId, fault);
      else if (!(error instanceof OverQuota || error instanceof ProtocolError)) throw error;
    }
    stream.reset();
  }

  async #answer(frame: Uint8Array, peer: EligiblePeer): Promise<KadMessage> {
    // A request names no peers.
    const message = await this.#decoder.decode(peer.relayId, frame, { peers: 0, addresses: 0 });
    checkKadRequest(message);
    const type = dhtTypeName(message.type);
    try {
      const reply = await this.#reply(message, peer);
      dhtServed(this.#context, { type, outcome: reply.record === undefined ? 'none' : 'record' });
      return reply;
    } catch (error) {
      dhtServed(this.#context, { type, outcome: 'reset' });
      throw error;
    }
  }

  async #reply(request: KadRequest, peer: EligiblePeer): Promise<KadMessage> {
    const { type, key } = request;
    if (request.type === kadTypes.putValue) {
      const isStored = await this.#put(request, peer);
      return { type, key, ...(isStored && { record: request.record }) };
    }
    const peers = closerPeers(this.#context, this.#table, { key, asking: peer });
    const value = request.type === kadTypes.getValue ? await this.#value(key) : undefined;
    return { type, key, ...(value && { record: { key, value } }), closerPeers: peers };
  }

  /** Returns the usable route with this key, the document unchanged (07 §B7). */
  async #value(key: Uint8Array): Promise<Uint8Array | undefined> {
    const { storage, clock } = this.#context;
    const now = clock.now();
    const route = await storage.read(async (tx) => {
      const account = await readKeyAccount(tx, key);
      return account === undefined ? undefined : await readUsableRoute(tx, account, now);
    });
    return route === undefined ? undefined : Buffer.from(route);
  }

  /**
   * Stores the route of a record. Quotas come first: a refused record is not verified, so that
   * nothing of it has to be remembered for good (07 §B11).
   *
   * @returns whether it is stored now, durably
   */
  async #put(request: PutRequest, { relayId }: EligiblePeer): Promise<boolean> {
    const { network, registryStatus, storage } = this.#context;
    if (this.#puts.take(relayId) > 0) throw new OverQuota();
    const route = readRouteRecord(this.#context, request.record);
    if (!(await this.#newAccounts.admit(relayId, route.account))) throw new OverQuota();
    if (!(await registryStatus.isActive())) return false;
    if (!(await this.#isVerified(route, relayId))) return false;
    const outcome = await observeRoute(this.#context, route);
    const key = await storage.read(async (tx) => await readKeyAccount(tx, request.key));
    if (key === undefined) {
      await storage.write(
        `account:${route.account}`,
        (tx) => storeKeys(tx, network, [route.account]),
        { keepsFacts: true },
      );
    }
    return outcome === 'accepted' || outcome === 'same';
  }

  /** Verifies a route; false if the relay that it names cannot be confirmed now. */
  async #isVerified(route: FinalRoute, cause: string): Promise<boolean> {
    try {
      await verifyRouteRecord(this.#context, this.#eligibility, { route, cause });
      return true;
    } catch (error) {
      if (error instanceof PeerRefusal) return false;
      throw error;
    }
  }
}
