import {
  createServer as createPlainServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { addressKey } from '@posthouse/peer';
import type { RelayContext } from '../context.ts';
import { whenGone } from './body-pace.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteHold } from './byte-ledger.ts';
import type { ClientAddresses } from './client-addresses.ts';
import type { ConnectionTable } from './connection-table.ts';
import { lateRequest, parserError, refuse, unknownMethod, writeError } from './early-errors.ts';
import { GatheredChunks } from './gathered-chunks.ts';
import { Handshakes } from './handshakes.ts';
import { ParsedPieces } from './parsed-pieces.ts';
import { PipelinedRequests } from './pipelined-requests.ts';

export interface ServerParts {
  readonly context: Pick<RelayContext, 'clock' | 'limits' | 'log' | 'metrics'>;
  readonly clients: ClientAddresses;
  readonly bytes: ByteAccounts;
  readonly open: ConnectionTable;
  /** Key and certificate; absent if a proxy terminates TLS. */
  readonly tls: Pick<ServerOptions, 'key' | 'cert'> | undefined;
  /** Handles requests to upgrade to a WebSocket. */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

/** Creates a server with every timeout and limit set, so that slow or idle peers cost little. */
export function createServer(parts: ServerParts, handle: Handle): Server {
  const { context, tls } = parts;
  const { requestTimeout } = context.limits;
  const options = {
    // `HeaderDeadline` and `ArrivalDeadline` instead: Node would end all that is late in one turn.
    headersTimeout: 0,
    requestTimeout: 0,
    keepAliveTimeout: requestTimeout,
    // Answered as an error of the protocol.
    requireHostHeader: false,
  };
  const server: Server =
    tls === undefined
      ? createPlainServer(options)
      : // `Handshakes` has the timeout of handshakes.
        createTlsServer({ ...options, ...tls, minVersion: 'TLSv1.2' });
  // Ends peers that stop reading their answers; stalled requests time out earlier.
  server.setTimeout(requestTimeout * 2);
  // A connection of which nothing was parsed is no idle one while it waits for a turn.
  const closeIdle = server.closeIdleConnections.bind(server);
  server.closeIdleConnections = () => void parts.bytes.httpTurns.idle().then(closeIdle);
  const pipelined = new PipelinedRequests({ ...parts, handle });
  const add: Handle = (request, response) => {
    const pieces = ParsedPieces.of(request.socket);
    pieces?.begin(request, { kind: 'address', id: parts.clients.of(request) });
    const chunks = new GatheredChunks(request);
    payUnread(parts, request, chunks);
    pipelined.add(request, response);
    pieces?.endParsing();
  };
  server.on('request', add);
  // The body is asked for when its headers are admitted; other expectations may be ignored.
  server.on('checkContinue', add);
  server.on('checkExpectation', add);
  server.on('upgrade', (request, socket, head) => {
    const rest = ParsedPieces.of(request.socket)?.release() ?? Buffer.alloc(0);
    parts.upgrade(request, socket, rest.length === 0 ? head : Buffer.concat([head, rest]));
  });
  server.on('connect', (request, socket) => {
    ParsedPieces.of(request.socket)?.release();
    socket.on('error', () => socket.destroy());
    refuse(socket, unknownMethod());
  });
  server.on('clientError', (error, socket) => {
    ParsedPieces.of(socket)?.stop();
    const answer = pipelined.current(socket);
    const isHandshake = (socket as { secureConnecting?: boolean }).secureConnecting === true;
    // An answer that has begun would be cut in two.
    if (isHandshake || !socket.writable || answer?.headersSent === true) socket.destroy();
    else if (answer === undefined) refuse(socket, parserError(error));
    else writeError(answer, parserError(error));
  });
  return server;
}

/** Counts and charges what arrives of a body before it has a reader. */
function payUnread(
  { bytes, clients, context }: ServerParts,
  request: IncomingMessage,
  chunks: GatheredChunks,
): void {
  const owner = () => ({ kind: 'address', id: clients.of(request) }) as const;
  const end = () => void request.socket.destroy();
  let late: ByteHold | undefined;
  chunks.readBy({
    waiting: (count) => {
      late ??= bytes.received.openYielding(owner(), end);
      if (count < 0) late.release(-count);
      else if (!late.add(count)) end();
    },
  });
  whenGone(request, () => {
    late?.[Symbol.dispose]();
    const count = chunks.takeCount();
    if (count > 0) bytes.charge(owner(), count * context.limits.bodyChunkCharge);
  });
}

/**
 * Counts connections, and has those with TLS wait for their handshakes.
 * @returns ends those that wait
 */
export function acceptConnections(
  { context, bytes, clients, tls, open }: Omit<ServerParts, 'upgrade'>,
  server: Server,
): Disposable {
  // What Node's server does with a connection: it may be done later.
  const [serve] = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  const begin = (socket: Socket) => {
    serve?.call(server, socket);
    if (tls === undefined) divide(socket);
  };
  const divide = (socket: Socket) => {
    const { remoteAddress = '', remotePort } = socket;
    const isProxy = clients.isProxy(remoteAddress);
    // All clients of a proxy together would have the limits of one address.
    const id = isProxy ? `proxy ${remoteAddress} ${remotePort}` : addressKey(remoteAddress);
    const late = () => void server.emit('clientError', lateRequest(), socket);
    new ParsedPieces({ context, bytes, owner: { kind: 'address', id }, isProxy, socket, late });
  };
  const handshakes = new Handshakes({ context, clients, begin });
  const admit = tls === undefined ? begin : (socket: Socket) => handshakes.add(socket);
  server.on('secureConnection', (socket: Socket) => {
    handshakes.finished(socket);
    divide(socket);
  });
  server.on('connection', (socket: Socket) => {
    if (open.add(socket)) admit(socket);
  });
  return handshakes;
}
