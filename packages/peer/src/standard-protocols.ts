import type { PeerClock } from './clock.ts';
import type { PeerConnection, PeerProtocol } from './connection.ts';
import { encodeIdentify, identifyProtocol } from './identify.ts';
import type { PeerIdentity } from './identity.ts';
import type { PeerLimits } from './limits.ts';
import { pingProtocol, servePing } from './ping.ts';
import { TokenBucket } from './token-bucket.ts';

/** Adds ping and identify, which libp2p expects of every peer, to the protocols of a relay. */
export function withStandardProtocols<P>(
  own: ReadonlyMap<string, PeerProtocol<P>>,
  options: {
    readonly identity: PeerIdentity;
    readonly agent: string;
    readonly limits: PeerLimits;
    readonly clock: PeerClock;
  },
): ReadonlyMap<string, PeerProtocol<P>> {
  const { identity, agent, clock } = options;
  const { pingRate: rate, pingBurst: burst } = options.limits;
  const buckets = new WeakMap<PeerConnection<P>, TokenBucket>();
  const bucketOf = (connection: PeerConnection<P>) => {
    const bucket = buckets.get(connection) ?? new TokenBucket({ rate, burst, clock });
    buckets.set(connection, bucket);
    return bucket;
  };
  const limited = (
    streams: number,
    serve: (...of: [...Parameters<PeerProtocol<P>['serve']>, TokenBucket]) => Promise<void>,
  ): PeerProtocol<P> => ({
    streams,
    async serve(stream, connection) {
      const bucket = bucketOf(connection);
      if (bucket.take()) await serve(stream, connection, bucket);
      else stream.reset();
    },
  });
  const protocols = new Map(own);
  protocols.set(
    pingProtocol,
    limited(2, (stream, _, bucket) => servePing(stream, bucket)),
  );
  protocols.set(
    identifyProtocol,
    limited(4, (stream) => stream.writeFrame(identify)),
  );
  const identify = encodeIdentify({ identity, agent, protocols: protocols.keys() });
  return protocols;
}
