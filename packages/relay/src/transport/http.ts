import { createServer as createPlainServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  decodeQuery,
  errorCatalogue,
  type MethodDefinition,
  methodPath,
  methods,
  type Network,
  ProtocolError,
  parseMediaType,
} from '@posthouse/protocol';
import {
  decodeUtf8,
  isJsonObject,
  JsonError,
  type JsonValue,
  parseJson,
} from '@posthouse/protocol/json';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { PublicAddresses } from '../config/public-addresses.ts';
import type { RelayContext } from '../context.ts';
import type { Answer, Dispatcher } from '../dispatch/dispatcher.ts';
import { encodeRelayError, encodeResult } from '../dispatch/encode.ts';
import type { RateLimiter } from '../dispatch/rate-limiter.ts';
import { connectionRefused } from '../observability/events.ts';
import type { ClientAddresses } from './client-addresses.ts';

export interface HttpParts {
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly addresses: PublicAddresses;
  readonly clients: ClientAddresses;
  /** Limits the bytes of requests read, by address. */
  readonly requestBytes: RateLimiter;
  /** Key and certificate; absent if a proxy terminates TLS. */
  readonly tls: Pick<ServerOptions, 'key' | 'cert'> | undefined;
  /** Handles requests to upgrade to a WebSocket. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

export interface Http {
  readonly app: FastifyInstance;
  /** Ends every connection at once, including upgraded ones and those in their handshake. */
  terminate(): void;
}

/**
 * Creates the HTTP side of the client API (02 §2): one route per method, verb and base path, all from
 * the catalogue. Does not listen yet.
 */
export function createHttp(parts: HttpParts): Http {
  const { network } = parts.context;
  const open = new OpenSockets(parts);
  const app = Fastify({
    serverFactory: (handler) => createServer(parts, open).on('request', handler),
    bodyLimit: parts.context.limits.httpBodyBytes,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    logger: false,
    // The protocol's own decoder reads the raw query (02 §2.4).
    routerOptions: { querystringParser: () => ({}) },
    frameworkErrors: (_error, _request, reply) => void answerError(reply, unknownMethod()),
  });
  // A GET may carry a body by mistake; it is checked (02 §18).
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(commonHeaders);
    if (isPreflight(request)) return reply.headers(preflightHeaders(network)).code(204).send();
    // For an unknown route, answer without reading the body.
    if (request.is404) return answerError(reply, unknownMethod());
  });
  app.addHook('onSend', async (_request, reply) => {
    // Otherwise a connection that was busy when the relay began to stop would idle to its timeout.
    if (!app.server.listening) reply.header('connection', 'close');
  });
  app.setNotFoundHandler((_request, reply) => answerError(reply, unknownMethod()));
  app.setErrorHandler((error, _request, reply) => answerError(reply, transportError(error)));
  for (const base of parts.addresses.basePaths) {
    for (const definition of Object.values<MethodDefinition>(methods)) {
      addRoutes(app, parts, { definition, base });
    }
  }
  return { app, terminate: () => open.terminate() };
}

interface Route {
  readonly definition: MethodDefinition;
  readonly base: string;
}

function addRoutes(app: FastifyInstance, parts: HttpParts, route: Route): void {
  const { definition, base } = route;
  const { clients, dispatcher, context, addresses } = parts;
  for (const verb of definition.http) {
    app.route({
      method: verb,
      url: `${base}${methodPath(definition.name)}`,
      handler: async (request, reply) => {
        const body = request.body as Buffer | undefined;
        const address = clients.of(request.raw);
        // Parsing costs work before the sender is authenticated, so charge the address first.
        const wait = parts.requestBytes.take(address);
        if (wait > 0) return answerError(reply, tooManyBytes(wait));
        parts.requestBytes.spend(address, body?.length ?? 0);
        const params = verb === 'GET' ? queryParams(request, definition) : bodyParams(request);
        if (verb === 'GET') checkNoBody(body);
        const answer = await dispatcher.answer({
          method: definition.name,
          params,
          form: verb === 'GET' ? 'query' : 'object',
          origin: addresses.httpOrigin(base),
          address,
          credentials: sessionToken(request, context.network),
        });
        return send(reply, answer);
      },
    });
  }
}

/** A token that occurs twice is malformed; Node joins such headers with a comma. */
function sessionToken(request: FastifyRequest, network: Network): string | undefined {
  const value = request.headers[network.sessionHeader];
  return Array.isArray(value) ? value.join(',') : value;
}

function queryParams(request: FastifyRequest, definition: MethodDefinition): () => JsonValue {
  const url = request.raw.url ?? '';
  const mark = url.indexOf('?');
  return () => decodeQuery(definition, mark < 0 ? '' : url.slice(mark + 1));
}

/** Parses the parameter object, before any other check (02 §18). */
function bodyParams(request: FastifyRequest): () => JsonValue {
  const body = request.body as Buffer | undefined;
  if (body === undefined || body.length === 0) return () => ({});
  checkBodyHeaders(request);
  const params = parseJson(decodeUtf8(body));
  return () => params;
}

/** Checks for `application/json`, UTF-8 if a charset is given, and no encoding (02 §2.3). */
function checkBodyHeaders({ headers }: FastifyRequest): void {
  const type = parseMediaType(headers['content-type'] ?? '');
  if (type?.essence !== 'application/json') {
    throw new ProtocolError('bad_request', 'the body is not declared as application/json');
  }
  for (const { name, value } of type.parameters) {
    if (name === 'charset' && value.toLowerCase() !== 'utf-8') {
      throw new ProtocolError('bad_request', 'the charset is not utf-8');
    }
  }
  if ((headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') {
    throw new ProtocolError('bad_request', 'content encodings are not used');
  }
}

function checkNoBody(body: Buffer | undefined): void {
  if (body === undefined || body.length === 0) return;
  const value = parseJson(decodeUtf8(body));
  if (isJsonObject(value) && Object.keys(value).length === 0) return;
  throw new ProtocolError('bad_request', 'a GET has no body');
}

const commonHeaders = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  // No cookies are used, so a page of any origin may call (02 §18).
  'access-control-allow-origin': '*',
  'access-control-expose-headers': 'Retry-After',
};

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
}

function preflightHeaders(network: Network): Record<string, string> {
  return {
    'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
    'access-control-allow-headers': `content-type, ${network.sessionHeader}`,
    'access-control-max-age': '86400',
  };
}

function send(reply: FastifyReply, answer: Answer): FastifyReply {
  if (!answer.ok) return answerError(reply, answer.error);
  if (answer.result === null) return reply.code(204).send();
  return reply.type('application/json').send(encodeResult(answer.result));
}

function answerError(reply: FastifyReply, error: ProtocolError): FastifyReply {
  const wait = error.code === 'rate_limited' ? error.data?.retry_after : undefined;
  if (typeof wait === 'number') reply.header('retry-after', String(wait));
  return reply
    .headers(commonHeaders)
    .code(errorCatalogue[error.code].http)
    .type('application/json')
    .send(encodeRelayError(error));
}

function tooManyBytes(wait: number): ProtocolError {
  const data = { retry_after: wait };
  return new ProtocolError('rate_limited', 'too many bytes from this address', { data });
}

function unknownMethod(): ProtocolError {
  return new ProtocolError('method_not_found', 'no method has this path and verb');
}

/** Maps errors before dispatch: the framework's errors by their code, and unreadable bodies. */
function transportError(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  if (error instanceof JsonError) return new ProtocolError('bad_request', error.message);
  const { code } = error as { code?: unknown };
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new ProtocolError('request_too_large', 'the body exceeds the limit of this relay');
  }
  return new ProtocolError('bad_request', 'the request cannot be read');
}

/** Creates a server with every timeout and limit set, so that slow or idle peers cost little. */
function createServer(parts: HttpParts, open: OpenSockets): Server {
  const { context, tls } = parts;
  const { requestTimeout, connections } = context.limits;
  const options = {
    headersTimeout: requestTimeout,
    requestTimeout,
    connectionsCheckingInterval: Math.ceil(requestTimeout / 4),
    keepAliveTimeout: requestTimeout,
  };
  const server: Server =
    tls === undefined
      ? createPlainServer(options)
      : createTlsServer({
          ...options,
          ...tls,
          minVersion: 'TLSv1.2',
          handshakeTimeout: requestTimeout,
        });
  // Ends peers that stop reading their answers; stalled requests time out earlier.
  server.setTimeout(requestTimeout * 2);
  server.maxConnections = connections;
  server.on('drop', () => connectionRefused(context, 'too many connections'));
  server.on('upgrade', parts.upgrade);
  server.on('connection', (socket: Socket) => open.add(socket));
  return server;
}

/** All open connections, whatever their use, counted by address. */
class OpenSockets {
  readonly #parts: Pick<HttpParts, 'context' | 'clients'>;
  readonly #sockets = new Set<Socket>();
  readonly #byAddress = new Map<string, number>();

  constructor(parts: Pick<HttpParts, 'context' | 'clients'>) {
    this.#parts = parts;
  }

  /** Adds a connection, or ends it if its address is over the limit; trusted proxies have no limit. */
  add(socket: Socket): void {
    const { context, clients } = this.#parts;
    const address = socket.remoteAddress ?? '';
    const count = (this.#byAddress.get(address) ?? 0) + 1;
    if (count > context.limits.connectionsPerAddress && !clients.isProxy(address)) {
      connectionRefused(context, 'too many connections from one address');
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    this.#byAddress.set(address, count);
    socket.once('close', () => {
      this.#sockets.delete(socket);
      const left = (this.#byAddress.get(address) ?? 1) - 1;
      if (left > 0) this.#byAddress.set(address, left);
      else this.#byAddress.delete(address);
    });
  }

  /** Ends all connections at once. */
  terminate(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
