import type { IncomingMessage } from 'node:http';
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
  parseJsonInSteps,
} from '@posthouse/protocol/json';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { FrontPages } from '../about/index.ts';
import type { PublicAddresses } from '../config/public-addresses.ts';
import type { RelayContext } from '../context.ts';
import { payerKey, refusalPause } from '../dispatch/allowances.ts';
import type { Answer, Dispatcher } from '../dispatch/dispatcher.ts';
import { encodeRelayError, encodeResult } from '../dispatch/encode.ts';
import type { LongWork } from '../dispatch/long-work.ts';
import { parsedBytes, parsedBytesInSteps } from '../dispatch/parsed-bytes.ts';
import { largeText, type Steps } from '../dispatch/slices.ts';
import type { WebApp } from '../web/index.ts';
import { addBlobRoutes, type BlobParts, bytesPerCharged } from './blob-routes.ts';
import type { BlockedAddresses } from './blocked-addresses.ts';
import type { ByteOwner } from './byte-ledger.ts';
import { callers, type MethodCaller, ownerOf, sessionToken } from './callers.ts';
import { addCheckRoute } from './check-route.ts';
import { commonHeaders, retryHeaders, unknownMethod } from './early-errors.ts';
import { acceptConnections, createServer, type ServerParts } from './http-server.ts';
import { LateAnswers } from './late-answers.ts';
import { addPageRoutes } from './page-routes.ts';
import {
  chargeHead,
  dropBody,
  headBytes,
  holdAnswer,
  RequestBytes,
  takeHead,
} from './request-bytes.ts';
import { addWebRoutes } from './web-routes.ts';

export interface HttpParts extends ServerParts, BlobParts {
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly addresses: PublicAddresses;
  readonly blocked: BlockedAddresses;
  /** What is served besides methods. */
  readonly pages?: FrontPages;
  /** The messenger, if it is served. */
  readonly web?: WebApp | undefined;
  /** Of the proofs of `posthouse check`. */
  readonly checkSecret?: Uint8Array;
}

interface AnsweringParts extends HttpParts {
  readonly late: LateAnswers;
}

interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export interface Http {
  readonly app: FastifyInstance;
  /** Ends every connection, including upgraded ones and those in their handshake. */
  terminate(): Promise<void>;
}

/** Routes have no schemas, dispatch checks all: Fastify loads the compilers that nothing replaces. */
const noCompilers = { buildValidator: noCompiler, buildSerializer: noCompiler };

function noCompiler(): never {
  throw new Error('routes have no schemas');
}

/**
 * Creates the HTTP side of the client API (02 §2): one route per method, verb and base path, all from
 * the catalogue. Does not listen yet.
 */
export function createHttp(own: HttpParts): Http {
  const waiting = new DisposableStack();
  const parts = { ...own, late: waiting.use(new LateAnswers(own.context)) };
  const app = Fastify({
    serverFactory: (handler) => {
      const server = createServer(parts, handler);
      waiting.use(acceptConnections(parts, server));
      return server;
    },
    schemaController: { compilersFactory: noCompilers },
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    logger: false,
    // The protocol's own decoder reads the raw query (02 §2.4).
    routerOptions: { querystringParser: () => ({}) },
    // A path that cannot be decoded: Fastify runs no hooks.
    frameworkErrors: (_error, request, reply) => void answerBadPath(parts, { request, reply }),
    // The server has a listener of its own.
    clientErrorHandler: () => {},
  });
  // A GET may carry a body by mistake; it is checked (02 §18).
  app.addHttpMethod('GET', { hasBody: true, overrideExisting: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', async (request: FastifyRequest, body: IncomingMessage) =>
    callers.get(request)?.bytes?.readBody(body),
  );
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(commonHeaders);
    const answer = answerOfHeaders(parts, request);
    // The others are charged by who answers them.
    if (answer === undefined) return;
    await chargeHeadAlone(parts, { request, reply });
    return answer(reply);
  });
  app.addHook('onSend', async (request, reply, payload) =>
    beforeAnswer(parts, request, { reply, payload }),
  );
  app.addHook('preClose', async () => waiting.dispose());
  app.setNotFoundHandler(async (request, reply) => {
    await chargeHeadAlone(parts, { request, reply });
    return answerError(reply, unknownMethod());
  });
  app.setErrorHandler(async (error, request, reply) => {
    const owner = ownerOf(parts, request);
    parts.dispatcher.chargeRefused(owner, headBytes(request.raw));
    // It may be refused before it is known whose its bytes are.
    chargeHead(parts.bytes, owner, request.raw);
    await slowDown(parts, owner, { request, reply });
    return answerError(reply, transportError(error));
  });
  for (const base of parts.addresses.basePaths) {
    for (const definition of Object.values<MethodDefinition>(methods)) {
      addRoutes(app, parts, { definition, base });
    }
    addBlobRoutes(app, parts, base);
  }
  const take = (request: FastifyRequest, bytes: number) => {
    const owner = ownerOf(parts, request);
    takeHead(parts.bytes, owner, request.raw);
    parts.dispatcher.takeKnown(owner, bytes / bytesPerCharged);
  };
  if (parts.pages) addPageRoutes(app, parts.pages, take);
  if (parts.web) addWebRoutes(app, parts.web, take);
  if (parts.checkSecret) {
    const { clients, addresses, checkSecret: secret } = parts;
    const charge = (request: FastifyRequest) => take(request, 0);
    const seen = { clients, secret, charge, clock: parts.context.clock };
    for (const base of addresses.basePaths) addCheckRoute(app, base, seen);
  }
  return { app, terminate: () => parts.open.terminate() };
}

/** Bounds how long the peer takes to read an answer, and what is left of the request's body. */
function beforeAnswer(
  parts: HttpParts,
  request: FastifyRequest,
  { reply, payload }: { readonly reply: FastifyReply; readonly payload: unknown },
): void {
  // Otherwise a connection that was busy when the relay began to stop would idle to its timeout.
  // And a client of a process that is cut off must reach another one.
  const isLeaving = !reply.server.server.listening || parts.context.availability.isCutOff;
  if (isLeaving) reply.header('connection', 'close');
  const owner = ownerOf(parts, request);
  const common = { ...parts, owner, request: request.raw, response: reply.raw };
  // Of a file, no more than one piece is in memory.
  const inMemory = typeof payload === 'string' || Buffer.isBuffer(payload);
  const length = inMemory ? payload.length : 0;
  holdAnswer(common, length || Number(reply.getHeader('content-length') ?? 0), length);
  dropBody(common);
}

interface Route {
  readonly definition: MethodDefinition;
  readonly base: string;
}

function addRoutes(app: FastifyInstance, parts: AnsweringParts, route: Route): void {
  const { definition, base } = route;
  const { dispatcher, addresses } = parts;
  for (const verb of definition.http) {
    app.route({
      method: verb,
      url: `${base}${methodPath(definition.name)}`,
      onRequest: async (request, reply) => {
        callers.set(request, await identify(parts, route, { request, reply }));
      },
      handler: async (request, reply) => {
        const { address, token, owner, bytes } = callers.get(request) as MethodCaller;
        const body = request.body as Buffer | undefined;
        const answer = await dispatcher.answer({
          method: definition.name,
          bytes: (body?.length ?? 0) + (verb === 'GET' ? (request.raw.url?.length ?? 0) : 0),
          params: () => bodyParams(request, { verb, owner, bytes, reads: dispatcher.longWork }),
          ...(verb === 'GET' && { query: () => queryParams(request, definition) }),
          origin: addresses.httpOrigin(base),
          address,
          credentials: token,
        });
        if (!answer.ok) await slowDown(parts, owner, { request, reply });
        return send(reply, answer);
      },
    });
  }
}

/**
 * Finds whose the request is, by its headers, and admits its bytes: those of a session are its
 * account's, so that a stranger at the same address cannot use up what it may send.
 *
 * @throws ProtocolError `rate_limited` if it may not send now
 */
async function identify(
  parts: HttpParts,
  { definition, base }: Route,
  { request, reply }: Exchange,
): Promise<MethodCaller> {
  const { clients, dispatcher, context, addresses, open } = parts;
  const address = clients.of(request.raw);
  const text = sessionToken(request, context.network);
  const token =
    text === undefined
      ? undefined
      : await dispatcher.checkToken(text, {
          ...{ method: definition.name, origin: addresses.httpOrigin(base), address },
        });
  const account = token?.session?.account;
  if (account !== undefined) open.setSession(request.raw.socket, true);
  const owner: ByteOwner =
    account === undefined ? { kind: 'address', id: address } : { kind: 'account', id: account };
  const common = { ...parts, owner, request: request.raw, response: reply.raw };
  return { address, token, owner, bytes: new RequestBytes(common) };
}

/** Returns what answers a request of which only the headers are read, if it is one. */
function answerOfHeaders(
  { blocked, context }: HttpParts,
  request: FastifyRequest,
): ((reply: FastifyReply) => FastifyReply) | undefined {
  const { raw } = request;
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
    const error = new ProtocolError('bad_request', 'the header Host is missing');
    return (reply) => answerError(reply, error);
  }
  if (blocked.hasClient(raw)) {
    const error = new ProtocolError('forbidden', 'the operator blocked this address');
    return (reply) => answerError(reply.header('connection', 'close'), error);
  }
  if (isPreflight(request)) {
    return (reply) => reply.headers(preflightHeaders(context.network)).code(204).send();
  }
  return request.is404 ? (reply) => answerError(reply, unknownMethod()) : undefined;
}

/** Answers a request whose path cannot be decoded. */
async function answerBadPath(parts: AnsweringParts, exchange: Exchange): Promise<void> {
  const { request, reply } = exchange;
  const answer = answerOfHeaders(parts, request) ?? ((to) => answerError(to, unknownMethod()));
  await chargeHeadAlone(parts, exchange);
  beforeAnswer(parts, request, { reply, payload: encodeRelayError(unknownMethod()) });
  answer(reply);
}

/** Charges a request of which only the headers are read. */
async function chargeHeadAlone(parts: AnsweringParts, exchange: Exchange): Promise<void> {
  const { blocked, bytes, dispatcher } = parts;
  const { raw } = exchange.request;
  const owner = ownerOf(parts, exchange.request);
  dispatcher.chargeRefused(owner, headBytes(raw));
  const seconds = chargeHead(bytes, owner, raw);
  // The last of its connection anyway.
  if (blocked.hasClient(raw)) return;
  await slowDown(parts, owner, exchange, seconds);
}

/**
 * Has a caller wait that goes on although it owes all that it can owe: nothing costs it more.
 *
 * @param seconds for which it owes bytes
 */
async function slowDown(
  { bytes, dispatcher, late }: AnsweringParts,
  owner: ByteOwner,
  { request, reply }: Exchange,
  seconds = 0,
): Promise<void> {
  const pause = dispatcher.isOverdrawn(owner) ? refusalPause : 0;
  const wait = Math.max(pause, seconds * 1_000);
  if (wait === 0) return;
  const hasRoom = await late.wait(owner, wait, request.raw.socket);
  if (!hasRoom) reply.header('connection', 'close');
  // Those that were refused at one moment have waited until one moment.
  await bytes.httpTurns.take(payerKey(owner));
}

function queryParams(request: FastifyRequest, definition: MethodDefinition): JsonValue {
  const url = request.raw.url ?? '';
  const mark = url.indexOf('?');
  return decodeQuery(definition, mark < 0 ? '' : url.slice(mark + 1));
}

interface BodyReading extends Pick<MethodCaller, 'owner' | 'bytes'> {
  readonly verb: string;
  readonly reads: LongWork;
}

/** Parses the parameter object, before any other check (02 §18). */
async function bodyParams(
  request: FastifyRequest,
  { verb, owner, bytes, reads }: BodyReading,
): Promise<JsonValue> {
  const body = request.body as Buffer | undefined;
  if (body === undefined || body.length === 0) return {};
  if (verb !== 'GET') checkBodyHeaders(request);
  const value =
    body.length >= largeText
      ? await reads.read(payerKey(owner), () => readLarge(body, bytes))
      : readSmall(body, bytes);
  if (verb === 'GET') checkNoBody(value);
  return value;
}

function readSmall(body: Buffer, bytes: RequestBytes): JsonValue {
  bytes.holdParsed(parsedBytes(body));
  return parseJson(decodeUtf8(body));
}

function* readLarge(body: Buffer, bytes: RequestBytes): Steps<JsonValue> {
  bytes.holdParsed(yield* parsedBytesInSteps(body));
  const text = decodeUtf8(body);
  yield;
  return yield* parseJsonInSteps(text);
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

function checkNoBody(value: JsonValue): void {
  if (isJsonObject(value) && Object.keys(value).length === 0) return;
  throw new ProtocolError('bad_request', 'a GET has no body');
}

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
  return reply
    .headers({ ...commonHeaders, ...retryHeaders(error) })
    .code(errorCatalogue[error.code].http)
    .type('application/json')
    .send(encodeRelayError(error));
}

/** Maps errors before dispatch: unreadable bodies, and what the framework refuses. */
function transportError(error: unknown): ProtocolError {
  if (error instanceof ProtocolError) return error;
  if (error instanceof JsonError) return new ProtocolError('bad_request', error.message);
  return new ProtocolError('bad_request', 'the request cannot be read');
}
