import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, errorCatalogue, limits, ProtocolError } from '@posthouse/protocol';
import { WebSocketServer } from 'ws';
import type { PublicAddresses } from '../config/public-addresses.ts';
import type { RelayContext } from '../context.ts';
import type { Dispatcher } from '../dispatch/dispatcher.ts';
import { encodeRelayError } from '../dispatch/encode.ts';
import type { RateLimiter } from '../dispatch/rate-limiter.ts';
import type { Hub } from '../notifications/hub.ts';
import { connectionRefused } from '../observability/events.ts';
import type { ClientAddresses } from './client-addresses.ts';
import { WebSocketConnection } from './websocket-connection.ts';

export interface WebSocketParts {
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly hub: Hub;
  readonly addresses: PublicAddresses;
  readonly clients: ClientAddresses;
  /** Limits the bytes of requests read, by address. */
  readonly requestBytes: RateLimiter;
}

/** The WebSocket side of the client API: accepts upgrades, counts connections, pings peers. */
export class WebSocketTransport implements AsyncDisposable {
  readonly #parts: WebSocketParts;
  readonly #server: WebSocketServer;
  readonly #connections = new Set<WebSocketConnection>();
  readonly #byAddress = new Map<string, number>();
  #pings: Disposable | undefined;
  #isStopping = false;
  #empty: (() => void) | undefined;

  constructor(parts: WebSocketParts) {
    this.#parts = parts;
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: limits.webSocketMessageBytes,
      // The protocol has its own answer to invalid UTF-8 (02 §4.2), and pongs must not pile up
      // for a peer that does not read.
      skipUTF8Validation: true,
      autoPong: false,
    });
    this.#schedulePings();
  }

  /** Upgrades a connection, or refuses it. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Until the library owns the socket, its errors have no other listener.
    socket.on('error', () => socket.destroy());
    const { addresses, clients } = this.#parts;
    const origin = addresses.webSocketOrigin(request.url?.split('?', 1)[0] ?? '');
    const address = clients.of(request);
    try {
      this.#admit(origin, address);
    } catch (error) {
      refuse(socket, error as ProtocolError);
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
      const connection = new WebSocketConnection(webSocket, {
        ...this.#parts,
        origin,
        address,
        ended: () => this.#ended(connection, address),
      });
      this.#connections.add(connection);
    });
  }

  /** Lets requests in progress finish, closes with 1001, and terminates the rest after the grace period. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#pings?.[Symbol.dispose]();
    if (this.#connections.size === 0) return;
    const { context } = this.#parts;
    const empty = new Promise<void>((resolve) => {
      this.#empty = resolve;
    });
    using _grace = context.clock.after(context.limits.stopGrace, () => {
      for (const connection of this.#connections) connection.terminate();
    });
    for (const connection of this.#connections) connection.stop();
    await empty;
  }

  /** @throws ProtocolError if the path is no WebSocket address, or the limit is reached */
  #admit(origin: string | undefined, address: string): asserts origin is string {
    const { context } = this.#parts;
    const refused = (code: ErrorCode, reason: string) => {
      connectionRefused(context, reason);
      return new ProtocolError(code, reason);
    };
    if (origin === undefined) throw refused('method_not_found', 'no WebSocket at this path');
    if (this.#isStopping) throw refused('temporarily_unavailable', 'the relay is stopping');
    if ((this.#byAddress.get(address) ?? 0) >= context.limits.connectionsPerAddress) {
      throw refused('rate_limited', 'too many connections from one address');
    }
  }

  #ended(connection: WebSocketConnection, address: string): void {
    this.#connections.delete(connection);
    const left = (this.#byAddress.get(address) ?? 1) - 1;
    if (left > 0) this.#byAddress.set(address, left);
    else this.#byAddress.delete(address);
    if (this.#connections.size === 0) this.#empty?.();
  }

  #schedulePings(): void {
    const { clock, limits: relayLimits } = this.#parts.context;
    this.#pings = clock.after(relayLimits.pingInterval, () => {
      for (const connection of this.#connections) connection.checkAlive();
      this.#schedulePings();
    });
  }
}

function refuse(socket: Duplex, error: ProtocolError): void {
  const body = encodeRelayError(error);
  const { http } = errorCatalogue[error.code];
  // Otherwise the socket would stay open if the peer does not close its half.
  socket.once('finish', () => socket.destroy());
  socket.end(
    [
      `HTTP/1.1 ${http} ${STATUS_CODES[http]}`,
      'Connection: close',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(body)}`,
      '',
      body,
    ].join('\r\n'),
  );
}
