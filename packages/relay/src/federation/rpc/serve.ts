/** Inbound streams of relay RPC: one frame, its answer, and the end (07 §C2). */

import type { PeerConnection, PeerStream } from '@posthouse/peer';
import { utf8 } from '@posthouse/protocol';
import { FrameError } from '@posthouse/protocol/federation';
import type { RelayContext } from '../../context.ts';
import { RateLimiter } from '../../dispatch/rate-limiter.ts';
import type { RelayDispatcher } from '../../dispatch/relay-dispatcher.ts';
import type { PeerFaults } from '../peer-faults.ts';
import type { EligiblePeer } from '../verify-descriptor.ts';

/** Serves requests and notifications of other relays. */
export class RpcServer {
  readonly #dispatcher: RelayDispatcher;
  readonly #faults: PeerFaults;
  readonly #streams: RateLimiter;
  readonly #bytes: RateLimiter;

  constructor(
    { clock, limits }: Pick<RelayContext, 'clock' | 'limits'>,
    { dispatcher, faults }: { readonly dispatcher: RelayDispatcher; readonly faults: PeerFaults },
  ) {
    this.#dispatcher = dispatcher;
    this.#faults = faults;
    const { relayStreamRate, relayStreamBurst, relayBytes, relayBytesBurst } = limits;
    this.#streams = new RateLimiter({ rate: relayStreamRate, burst: relayStreamBurst, clock });
    this.#bytes = new RateLimiter({ rate: relayBytes, burst: relayBytesBurst, clock });
  }

  /** Serves one stream; a stream above a quota, or without a readable frame, is reset. */
  async serve(stream: PeerStream, { peer }: PeerConnection<EligiblePeer>): Promise<void> {
    const { relayId } = peer;
    // These quotas save the decoding; dispatch answers `rate_limited` at lower ones (07 §C2, §C9).
    if (this.#streams.take(relayId) > 0) return stream.reset();
    try {
      const frame = await stream.readFrame();
      // A stream without a request: the peer tries whether this relay has the protocol.
      if (frame === undefined) return;
      if (this.#bytes.spend(relayId, frame.length) > 0) return stream.reset();
      const reply = await this.#dispatcher.answer(frame, peer);
      if (reply.kind === 'reset') throw new FrameError('invalid');
      if (reply.kind === 'answer') await stream.writeFrame(utf8(reply.text));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#faults.add(relayId, 'frame');
      stream.reset();
    }
  }
}
