/** Inbound streams of relay RPC: one frame, its answer, and the end (07 §C2). */

import type { PeerConnection, PeerStream } from '@posthouse/peer';
import { utf8 } from '@posthouse/protocol';
import { FrameError } from '@posthouse/protocol/federation';
import type { RelayContext } from '../../context.ts';
import { RateLimiter } from '../../dispatch/rate-limiter.ts';
import type { RelayDispatcher } from '../../dispatch/relay-dispatcher.ts';
import type { PeerFaults } from '../peer-faults.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';
import { RequestSlots } from './request-slots.ts';

/** Serves requests and notifications of other relays. */
export class RpcServer {
  readonly #dispatcher: Pick<RelayDispatcher, 'answer'>;
  readonly #faults: Pick<PeerFaults, 'add'>;
  readonly #streams: RateLimiter;
  readonly #bytes: RateLimiter;
  readonly #slots: RequestSlots;

  constructor(
    { clock, limits }: Pick<RelayContext, 'clock' | 'limits'>,
    {
      dispatcher,
      faults,
    }: {
      readonly dispatcher: Pick<RelayDispatcher, 'answer'>;
      readonly faults: Pick<PeerFaults, 'add'>;
    },
  ) {
    this.#dispatcher = dispatcher;
    this.#faults = faults;
    const { relayStreamRate, relayStreamBurst, relayBytes, relayBytesBurst } = limits;
    const keys = limits.federationRegistryRelays;
    const streams = { rate: relayStreamRate, burst: relayStreamBurst };
    this.#streams = new RateLimiter({ ...streams, clock, keys });
    this.#bytes = new RateLimiter({ rate: relayBytes, burst: relayBytesBurst, clock, keys });
    this.#slots = new RequestSlots(limits.relayRequestsAtOnce);
  }

  /** Serves one stream; one above a quota, without a readable frame, or with a second is reset. */
  async serve(stream: PeerStream, { peer }: PeerConnection<EligiblePeer>): Promise<void> {
    const { relayId } = peer;
    // These quotas save the decoding; dispatch answers `rate_limited` at lower ones (07 §C2, §C9).
    if (this.#streams.take(relayId) > 0) return stream.reset();
    try {
      const frame = await stream.readFrame();
      // A stream without a request: the peer tries whether this relay has the protocol.
      if (frame === undefined) return;
      stream.expectEnd();
      // What is reset costs nearly nothing, so that sending it again delays nothing else.
      if (this.#bytes.takeOnCredit(relayId, frame.length) > 0) return stream.reset();
      // The wire counts the request until its stream is closed, but no answer that waits here to be
      // written.
      using _slot = await this.#slots.take(relayId, stream.signal);
      const reply = await this.#dispatcher.answer(frame, peer, stream.signal);
      if (reply.kind === 'reset') throw new FrameError('invalid');
      if (reply.kind === 'unread') return stream.reset();
      stream.signal.throwIfAborted();
      if (reply.kind !== 'answer') return;
      if (reply.isFault === true) this.#faults.add(relayId, 'frame');
      await stream.writeFrame(utf8(reply.text));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#faults.add(relayId, 'frame');
      stream.reset();
    }
  }
}
