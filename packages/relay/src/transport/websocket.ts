import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { addressKey } from '@posthouse/peer';
import { type ErrorCode, limits, ProtocolError } from '@posthouse/protocol';
import { WebSocketServer } from 'ws';
import type { PublicAddresses } from '../config/public-addresses.ts';
import type { RelayContext } from '../context.ts';
import type { Dispatcher } from '../dispatch/dispatcher.ts';
import { inTurns } from '../event-loop.ts';
import type { Hub } from '../notifications/hub.ts';
import { connectionRefused } from '../observability/events.ts';
import type { BlockedAddresses } from './blocked-addresses.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ClientAddresses } from './client-addresses.ts';
import type { ConnectionTable } from './connection-table.ts';
import { refuse } from './early-errors.ts';
import { WebSocketConnection } from './websocket-connection.ts';

export interface WebSocketParts {
  readonly context: RelayContext;
  readonly dispatcher: Dispatcher;
  readonly hub: Hub;
  readonly addresses: PublicAddresses;
  readonly clients: ClientAddresses;
  readonly blocked: BlockedAddresses;
  readonly bytes: ByteAccounts;
  readonly open: ConnectionTable;
}

/** The WebSocket side of the client API: accepts upgrades. */
export class WebSocketTransport implements AsyncDisposable {
  readonly #parts: WebSocketParts;
  readonly #server: WebSocketServer;
  readonly #connections = new Set<WebSocketConnection>();
  readonly #cutOffs: Disposable;
  #isStopping = false;
  #empty: (() => void) | undefined;

  constructor(parts: WebSocketParts) {
    this.#parts = parts;
    // Newer than the types of the library.
    const closing: object = { closeTimeout: parts.context.limits.closeTimeout };
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: limits.webSocketMessageBytes,
      ...closing,
      // The protocol has its own answer to invalid UTF-8 (02 §4.2), and pongs must not pile up
      // for a peer that does not read.
      skipUTF8Validation: true,
      autoPong: false,
    });
    // RFC 6455 §4.4: the answer names the version that is spoken.
    this.#server.on('wsClientError', ({ message }, socket) =>
      refuse(socket, new ProtocolError('bad_request', message), { 'sec-websocket-version': '13' }),
    );
    this.#cutOffs = parts.context.availability.onCutOff(() => {
      void inTurns([...this.#connections], (connection) => connection.leave());
    });
  }

  /** Upgrades a connection, or refuses it. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Until the library owns the socket, its errors have no other listener.
    socket.on('error', () => socket.destroy());
    const { addresses, clients, open } = this.#parts;
    const origin = addresses.webSocketOrigin(request.url?.split('?', 1)[0] ?? '');
    const client = clients.addressOf(request);
    const address = addressKey(client);
    try {
      checkNoBody(request);
      this.#admit(origin, socket, client);
    } catch (error) {
      refuse(socket, error as ProtocolError);
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const connection = new WebSocketConnection(webSocket, socket, {
        ...this.#parts,
        origin,
        address,
        sessionChanged: (account) => open.setSession(socket, account !== undefined),
        ended: () => this.#ended(connection),
      });
      this.#connections.add(connection);
      open.assign(socket, { client, end: (reason) => connection.terminate(reason) });
    });
  }

  /**
   * Lets requests in progress finish, closes with 1001, and terminates the rest after the grace period: each in slices
   * of the event loop, so that calls under way are answered meanwhile.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#cutOffs[Symbol.dispose]();
    if (this.#connections.size === 0) return;
    const { context } = this.#parts;
    const empty = new Promise<void>((resolve) => {
      this.#empty = resolve;
    });
    using _grace = context.clock.after(context.limits.stopGrace, () => {
      void inTurns(this.#connections, (connection) => connection.terminate('relay stops'));
    });
    await inTurns(this.#connections, (connection) => connection.stop());
    await empty;
  }

  /** @throws ProtocolError if the path is no WebSocket address, or the limit is reached */
  #admit(origin: string | undefined, socket: Duplex, client: string): asserts origin is string {
    const { blocked, context, open } = this.#parts;
    const refused = (code: ErrorCode, reason: string) => {
      connectionRefused(context, reason);
      return new ProtocolError(code, reason);
    };
    if (origin === undefined) throw refused('method_not_found', 'no WebSocket at this path');
    if (blocked.has(client)) throw refused('forbidden', 'the address is blocked');
    if (this.#isStopping) throw refused('temporarily_unavailable', 'the relay is stopping');
    if (context.availability.isCutOff) {
      throw refused('temporarily_unavailable', 'storage out of reach');
    }
    if (!open.assign(socket, { client, end: () => void socket.destroy() })) {
      throw refused('rate_limited', 'too many connections from one address');
    }
  }

  #ended(connection: WebSocketConnection): void {
    this.#connections.delete(connection);
    if (this.#connections.size === 0) this.#empty?.();
  }
}

/** Checks that nothing follows the headers but frames: a body would be read before them. */
function checkNoBody({ headers }: IncomingMessage): void {
  if (headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0')
    return;
  throw new ProtocolError('bad_request', 'a request for a WebSocket has no body');
}
