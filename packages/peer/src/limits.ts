/** Every limit of the wire; a relay sets them from its configuration. Times are milliseconds. */
export interface PeerLimits {
  /** Connections without a finished handshake or admission, in all. */
  readonly handshakes: number;
  /** The same, of one address; for IPv6 of one /64. */
  readonly handshakesPerAddress: number;
  /** Accepted TCP connections of one address in a second, sustained; and at once. */
  readonly handshakeRate: number;
  readonly handshakeBurst: number;
  /** From the TCP connection to the end of the Noise handshake. */
  readonly handshakeTime: number;
  /** For the decision about an authenticated peer. */
  readonly admissionTime: number;
  /** For a TCP connection of our own. */
  readonly dialTime: number;
  /** Admitted connections in all, and of one Peer ID. */
  readonly connections: number;
  readonly connectionsPerPeer: number;
  /** Bytes of one line of multistream-select, proposals of one negotiation, and its time. */
  readonly negotiationBytes: number;
  readonly negotiationProposals: number;
  readonly negotiationTime: number;
  /** Inbound streams of one connection that have not agreed on a protocol. */
  readonly negotiatingStreams: number;
  /** Bytes of one frame of RPC and DHT streams (07 §B6, §C2). */
  readonly frameBytes: number;
  /** Bytes held for one Peer ID: inbound not handled yet, and outbound not taken. */
  readonly heldBytes: number;
  /** The same for all together; above it, streams are reset that bring more. */
  readonly heldBytesOfAll: number;
  /**
   * Requests of one Peer ID that may be sent at once, whatever their size: their first windows have
   * room in `heldBytes`. The other streams send at most `smallRequestBytes`.
   */
  readonly largeRequests: number;
  readonly smallRequestBytes: number;
  /**
   * Own requests above `smallRequestBytes` to one Peer ID at once; others wait. Half of what a peer
   * accepts, as two processes of this relay may be connected with one process of it.
   */
  readonly ownLargeRequests: number;
  /** How long requests for more may wait, without any bytes given back, before the connections close. */
  readonly heldTime: number;
  /** How long a served stream waits for the end of the peer's side. */
  readonly lingerTime: number;
  /** Pings, and streams of ping and identify, of one connection in a second, sustained; and at once. */
  readonly pingRate: number;
  readonly pingBurst: number;
  /**
   * Between Yamux pings; a peer that has not answered by the next one is disconnected, and a stream
   * whose frame in either direction has made no progress by then is reset.
   */
  readonly pingInterval: number;
  /** Frames without data that wait to be sent: answers to pings, credit, resets. */
  readonly controlFrames: number;
  /** What streams under way have when the host is disposed. */
  readonly stopGrace: number;
}

/**
 * The limits of a relay whose operator sets none.
 *
 * @example
 * const limits = { ...defaultPeerLimits, connections: 64 };
 */
export const defaultPeerLimits: PeerLimits = {
  handshakes: 64,
  handshakesPerAddress: 4,
  handshakeRate: 5,
  handshakeBurst: 10,
  handshakeTime: 10_000,
  admissionTime: 15_000,
  dialTime: 10_000,
  connections: 512,
  connectionsPerPeer: 16,
  negotiationBytes: 256,
  negotiationProposals: 8,
  negotiationTime: 10_000,
  negotiatingStreams: 160,
  frameBytes: 1_048_576,
  heldBytes: 31_457_280,
  heldBytesOfAll: 268_435_456,
  largeRequests: 32,
  smallRequestBytes: 16_384,
  ownLargeRequests: 16,
  heldTime: 30_000,
  lingerTime: 10_000,
  pingRate: 2,
  pingBurst: 60,
  pingInterval: 30_000,
  controlFrames: 1_024,
  stopGrace: 10_000,
};
