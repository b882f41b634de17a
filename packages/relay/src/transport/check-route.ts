/** Says to `posthouse check` alone which address the relay sees of a request. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { withoutMapping } from '../config/ip-address.ts';
import type { Clock } from '../context.ts';
import {
  checkPath,
  checkProofHeader,
  isCheckProof,
  type SeenRequest,
} from '../keys/check-proof.ts';
import type { ClientAddresses } from './client-addresses.ts';

/** Characters of a header that are returned. */
const most = 1_024;

interface CheckRouteParts {
  readonly clock: Clock;
  readonly clients: ClientAddresses;
  readonly secret: Uint8Array;
  /** Counts a request for the caller's address. */
  readonly charge: (request: FastifyRequest) => void;
}

/** Adds the route; without a proof of the relay's keys it is a path that no method has. */
export function addCheckRoute(
  app: FastifyInstance,
  base: string,
  { clock, clients, secret, charge }: CheckRouteParts,
): void {
  app.get(`${base}${checkPath}`, async (request, reply) => {
    const { raw } = request;
    if (!isCheckProof(secret, raw.headers[checkProofHeader], clock.now())) {
      return reply.callNotFound();
    }
    charge(request);
    const peer = withoutMapping(raw.socket.remoteAddress ?? '');
    const header = raw.headers['x-forwarded-for'];
    const forwarded = Array.isArray(header) ? header.join(',') : header;
    const seen: SeenRequest = {
      ...{ peer, is_trusted: clients.isProxy(peer), client: clients.addressOf(raw) },
      ...(forwarded !== undefined && { forwarded: forwarded.slice(0, most) }),
    };
    return reply
      .header('cache-control', 'no-store')
      .type('application/json')
      .send(JSON.stringify(seen));
  });
}
