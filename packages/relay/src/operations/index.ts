/** The HTTP server for operators' tools: health and metrics of this process. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { listenAddress } from '../config/addresses.ts';
import type { RelayContext } from '../context.ts';

/**
 * - `ok`;
 * - `degraded`: calls are answered, but notices of other processes may be late, or storage accepts
 *   no writes, or a disk is nearly full, or nothing is deleted since the clock may be wrong;
 * - `unavailable`: storage cannot be reached, and most calls are refused.
 */
export interface Health {
  readonly status: 'ok' | 'degraded' | 'unavailable';
  /** `read-only`: a full disk, or a lock of another process, refused the last write. */
  readonly storage: 'ok' | 'read-only' | 'lost';
  /** `low`: the disk of the database or of attachments has less room than `limits.diskFree`. */
  readonly disk: 'ok' | 'low';
  readonly bus: 'ok' | 'lost';
  /** `ahead`: the clock jumped ahead, and nothing is deleted for a day. */
  readonly clock: 'ok' | 'ahead';
  /** Other relays: with a connection, and failing. Neither changes `status`. */
  readonly peers: { readonly connected: number; readonly failing: number };
}

/** Limits of a request; a health check needs less. */
const maxHeaderBytes = 8_192;
const requestTimeout = 10_000;
const maxConnections = 64;

/**
 * Serves `GET /health`: {@link Health} as JSON, status 200, or 503 if it is `unavailable`.
 * Serves `GET /metrics`: Prometheus's text format.
 *
 * Has no authentication, TLS or rate limits: for the operator's own network only.
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

  /**
   * Starts the server.
   * @throws Error if it cannot listen on the address
   */
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

  /** Checks storage and the bus. */
  async health(): Promise<Health> {
    // Concurrent requests share one query.
    this.#checking ??= this.#reachesStorage().finally(() => {
      this.#checking = undefined;
    });
    const isReached = await this.#checking;
    const {
      bus: { isConnected },
      metrics,
      disk: disks,
    } = this.#context;
    const isWritable = metrics.value('storage_blocked_now') === 0;
    const storage = !isReached ? 'lost' : isWritable ? 'ok' : 'read-only';
    const bus = isConnected ? 'ok' : 'lost';
    const clock = metrics.value('deleting_paused') === 0 ? 'ok' : 'ahead';
    const disk = disks.isLow('data') || disks.isLow('blobs') ? 'low' : 'ok';
    const isWell = [storage, disk, bus, clock].every((part) => part === 'ok');
    const status = storage === 'lost' ? 'unavailable' : isWell ? 'ok' : 'degraded';
    return { status, storage, disk, bus, clock, peers: this.#peers() };
  }

  #peers(): Health['peers'] {
    const { metrics } = this.#context;
    return {
      connected: metrics.value('peers', { state: 'connected' }),
      failing: metrics.value('peers', { state: 'failing' }),
    };
  }

  async #reachesStorage(): Promise<boolean> {
    if (this.#context.availability.isCutOff) return false;
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
