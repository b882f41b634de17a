/** ping 1.0.0 of libp2p: repeats what the peer sends. Peers in Rust leave if it is not answered. */
import type { PeerStream } from './peer-stream.ts';
import type { TokenBucket } from './token-bucket.ts';

export const pingProtocol = '/ipfs/ping/1.0.0';
/** Bytes of one ping. */
const pingBytes = 32;

/**
 * Serves a stream: sends back all bytes until the peer ends it.
 *
 * @param bucket of one token for each ping; without one left, the stream is reset
 */
export async function servePing(stream: PeerStream, bucket: TokenBucket): Promise<void> {
  for await (const bytes of stream) {
    if (!bucket.take(bytes.length / pingBytes)) return stream.reset();
    await stream.write(bytes);
  }
}
