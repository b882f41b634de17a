/** Answers of Node's HTTP parser, Fastify and the WebSocket library, as the errors of chapter 02. */
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { errorCatalogue, ProtocolError } from '@posthouse/protocol';
import { encodeRelayError } from '../dispatch/encode.ts';

/** Headers of every answer. */
export const commonHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  // No cookies are used, so a page of any origin may call (02 §18).
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Retry-After',
};

/** Returns the `Retry-After` header of an error, if it has one (02 §5). */
export function retryHeaders({ data }: ProtocolError): Record<string, string> {
  const wait = data?.retry_after;
  return typeof wait === 'number' ? { 'retry-after': String(wait) } : {};
}

/** Returns the error of a path, or a verb, that no method has. */
export function unknownMethod(): ProtocolError {
  return new ProtocolError('method_not_found', 'no method has this path and verb');
}

/** Answers with an error and closes the connection. */
export function writeError(response: ServerResponse, error: ProtocolError): void {
  const body = encodeRelayError(error);
  response
    .writeHead(errorCatalogue[error.code].http, { ...closingHeaders(body), ...retryHeaders(error) })
    .end(body);
}

/** Answers on a connection that has no response object, and closes it. */
export function refuse(socket: Duplex, error: ProtocolError, headers: object = {}): void {
  const body = encodeRelayError(error);
  const { http } = errorCatalogue[error.code];
  const lines = Object.entries({ ...closingHeaders(body), ...retryHeaders(error), ...headers });
  // Otherwise the socket would stay open if the peer does not close its half.
  socket.once('finish', () => socket.destroy());
  socket.end(
    [
      `HTTP/1.1 ${http} ${STATUS_CODES[http]}`,
      ...lines.map(([name, value]) => `${name}: ${value}`),
      '',
      body,
    ].join('\r\n'),
  );
}

/** Returns the error of a request whose headers do not arrive in time. */
export function lateRequest(): ProtocolError {
  return new ProtocolError('temporarily_unavailable', 'the request did not arrive in time');
}

/** Maps an error of Node's HTTP parser. */
export function parserError(error: Error): ProtocolError {
  if (error instanceof ProtocolError) return error;
  const { code } = error as { readonly code?: unknown };
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ProtocolError('request_too_large', 'the address and headers are too long');
  }
  return new ProtocolError('bad_request', 'not one HTTP request');
}

function closingHeaders(body: string): Record<string, string> {
  return {
    ...commonHeaders,
    connection: 'close',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
  };
}
