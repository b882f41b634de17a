/** What an operator's tools ask the process itself: is it well, and what does it count. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listenAddress } from '../config/addresses.ts';
import type { RelayContext } from '../context.ts';

/**
 * - `ok`;
 * - `degraded`: calls are answered, but notices of other processes may come late;
 * - `unavailable`: storage cannot be reached, most calls are refused.
 */
export interface Health {
  readonly status: 'ok' | 'degraded' | 'unavailable';
  readonly storage: 'ok' | 'lost';
  readonly bus: 'ok' | 'lost';
}

/** Longer requests are nobody's health check. */
const maxHeaderBytes = 8_192;
const requestTimeout = 10_000;
const maxConnections = 64;

/**
 * `GET /health`: {@link Health} as JSON, 200, or 503 where it is `unavailable`.
 * `GET /metrics`: Prometheus's text format.
 *
 * Without session, TLS or limits: for the operator's own network only.
 */
export class Operations implements AsyncDisposable {
  readonly #context: RelayContext;
  readonly #server: Server;
  #checking: Promise<boolean> | undefined;

  private constructor(context: RelayContext) {
    this.#context = context;
    this.#server = createServer(
      { maxHeaderSize: maxHeaderBytes, requestTimeout },
      (request, response) => void this.#answer(request, response),
    );
    this.#server.maxConnections = maxConnections;
  }

  /** @throws Error for an address that cannot be listened on */
  static async listen(context: RelayContext, listen: string): Promise<Operations> {
    const operations = new Operations(context);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    operations.#server.once('error', reject);
    operations.#server.listen(listenAddress({ listen }), resolve);
    await promise;
    return operations;
  }

  /** `http://127.0.0.1:49153`. */
  get address(): string {
    const { address, port, family } = this.#server.address() as AddressInfo;
    return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async health(): Promise<Health> {
    // However often it is asked, one query is under way at the most.
    this.#checking ??= this.#reachesStorage().finally(() => {
      this.#checking = undefined;
    });
    const storage = (await this.#checking) ? 'ok' : 'lost';
    const bus = this.#context.bus.isConnected ? 'ok' : 'lost';
    const reachable = bus === 'ok' ? 'ok' : 'degraded';
    return { status: storage === 'ok' ? reachable : 'unavailable', storage, bus };
  }

  async #reachesStorage(): Promise<boolean> {
    try {
      await this.#context.storage.read((tx) => tx.get('SELECT 1 AS one'));
      return true;
    } catch {
      return false;
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = request;
    if (method !== 'GET' && method !== 'HEAD') {
      response.writeHead(405, { allow: 'GET, HEAD' }).end();
      return;
    }
    switch (url.split('?', 1)[0]) {
      case '/health': {
        const health = await this.health();
        const status = health.status === 'unavailable' ? 503 : 200;
        const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
        response.writeHead(status, headers).end(`${JSON.stringify(health)}\n`);
        return;
      }
      case '/metrics':
        response
          .writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
          .end(this.#context.metrics.exposition());
        return;
      default:
        response.writeHead(404, { 'content-type': 'text/plain' }).end('/health or /metrics\n');
    }
  }
}
