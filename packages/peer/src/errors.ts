/**
 * Why the wire failed:
 *
 * - `unreachable`: no TCP connection;
 * - `timeout`: a limit of time has passed;
 * - `protocol`: the peer broke a rule of Noise, Yamux, multistream-select or of frames;
 * - `not_supported`: the peer refused the protocol, the security protocol or the multiplexer;
 * - `wrong_peer`: the peer proved another Peer ID than the dialled one;
 * - `own_peer`: the dial ended at this relay itself;
 * - `refused`: the peer was not admitted;
 * - `limit`: a limit of this side was reached;
 * - `reset`: the peer or this side reset the stream;
 * - `closed`: the connection or the host is closed.
 */
export type PeerErrorCode =
  | 'unreachable'
  | 'timeout'
  | 'protocol'
  | 'not_supported'
  | 'wrong_peer'
  | 'own_peer'
  | 'refused'
  | 'limit'
  | 'reset'
  | 'closed';

/**
 * The only error that this package throws itself. An aborted call rejects with the signal's reason.
 *
 * @example
 * const isTemporary = (error: unknown) => error instanceof PeerError && error.code === 'timeout';
 */
export class PeerError extends Error {
  override readonly name = 'PeerError';
  readonly code: PeerErrorCode;

  constructor(code: PeerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
