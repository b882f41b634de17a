/** Who makes an HTTP request, and what it costs; known when its headers have arrived. */
import type { IncomingMessage } from 'node:http';
import type { Network } from '@posthouse/protocol';
import type { FastifyRequest } from 'fastify';
import type { CheckedToken } from '../dispatch/dispatcher.ts';
import type { ByteOwner } from './byte-ledger.ts';
import type { ClientAddresses } from './client-addresses.ts';
import type { RequestBytes } from './request-bytes.ts';

export interface Caller {
  readonly address: string;
  readonly owner: ByteOwner;
  /** Reads the body; absent if the request's handler does. */
  readonly bytes?: RequestBytes;
}

/** The caller of a method of the protocol. */
export interface MethodCaller extends Caller {
  readonly token: CheckedToken | undefined;
  readonly bytes: RequestBytes;
}

export const callers = new WeakMap<FastifyRequest, Caller>();

/** Returns whose a request is; the address's, as long as nothing else is known. */
export function ownerOf(
  { clients }: { readonly clients: ClientAddresses },
  request: FastifyRequest,
): ByteOwner {
  return callers.get(request)?.owner ?? { kind: 'address', id: clients.of(request.raw) };
}

/** Returns the token of a request; one that occurs twice is malformed: Node joins them with a comma. */
export function sessionToken(
  { headers }: Pick<IncomingMessage, 'headers'>,
  network: Network,
): string | undefined {
  const value = headers[network.sessionHeader];
  return Array.isArray(value) ? value.join(',') : value;
}
