/** How the bytes that may be held for one Peer ID are divided, and what fits into them. */
import { BytePool, type ByteTotal } from './byte-pool.ts';
import type { PeerClock } from './clock.ts';
import type { PeerLimits } from './limits.ts';
import { Slots } from './slots.ts';
import { windowBytes } from './yamux/frame.ts';

/** Bytes held for the streams of one side. */
interface StreamPools {
  readonly inbound: BytePool;
  readonly outbound: BytePool;
}

/**
 * What is held for one Peer ID, over all its connections: for streams that it opened, and for our
 * own. With one pool for both, two relays that send each other large requests would wait for each
 * other: their requests for answers to be read, and their answers for requests to be sent.
 */
export interface PeerPools {
  readonly served: StreamPools;
  readonly called: StreamPools;
  /** Own streams that send more than a small request. */
  readonly largeStreams: Slots;
}

/** Makes the pools of a peer; `stuck` is called with the reason when one stays full for too long. */
export function makePeerPools(
  limits: PeerLimits,
  options: {
    readonly clock: PeerClock;
    /** Of all peers. */
    readonly total: ByteTotal;
    readonly stuck: (reason: string) => void;
  },
): PeerPools {
  const { frameBytes, heldTime, ownLargeRequests } = limits;
  const { clock, total, stuck } = options;
  const make = (capacity: number, grantable: number, reason: string) =>
    new BytePool({
      ...{ capacity, total, grantable, clock, patience: heldTime },
      stuck: () => stuck(reason),
    });
  const pools = (): StreamPools => ({
    inbound: make(inboundBytes(limits), frameBytes, 'too many bytes of the peer wait to be read'),
    outbound: make(frameBytes, frameBytes, 'the peer does not read what it is sent'),
  });
  return { served: pools(), called: pools(), largeStreams: new Slots(ownLargeRequests) };
}

/**
 * Returns the bytes up to which first windows have room, of the streams of one side. Four frames of
 * `heldBytes` are for others: for the frame that each side's streams send, and for that of the
 * inbound stream that is favoured.
 */
function inboundBytes({ heldBytes, frameBytes }: PeerLimits): number {
  return Math.floor(heldBytes / 2) - 2 * frameBytes;
}

/**
 * Checks that all requests that a peer within its limits sends at once have room, so that none of
 * its streams is reset: a peer may send a window of each stream before any credit is given.
 *
 * @param streams that one connection may open
 * @throws RangeError
 */
export function checkHeldBytes(limits: PeerLimits, streams: number): void {
  const { largeRequests, ownLargeRequests, smallRequestBytes, frameBytes } = limits;
  const small = Math.max(0, streams - largeRequests) * smallRequestBytes;
  // Credit, and the frame of the stream that is favoured.
  const needed = largeRequests * windowBytes + small + 2 * frameBytes;
  if (inboundBytes(limits) < needed) {
    const least = 2 * (needed + 2 * frameBytes);
    throw new RangeError(`heldBytes: ${largeRequests} large requests need at least ${least}`);
  }
  if (limits.heldBytesOfAll < limits.heldBytes) {
    throw new RangeError('heldBytesOfAll: at least heldBytes');
  }
  if (ownLargeRequests > largeRequests) {
    throw new RangeError('ownLargeRequests: at most largeRequests, which other relays accept');
  }
}
