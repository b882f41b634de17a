/** The HTTP server for operators' tools: health and metrics of this process, and the admin interface. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { listenAddress } from '../config/addresses.ts';
import type { RelayContext } from '../context.ts';
import { ProcessFigures } from '../observability/process-figures.ts';
import type { TlsFiles } from '../tls/configured-files.ts';

/**
 * - `ok`;
 * - `degraded`: calls are answered, but notices of other processes may be late, or storage accepts
 *   no writes, or a disk is nearly full, or nothing is deleted since the clock may be wrong, or the
 *   registry cannot be read, or the certificate needs attention, or the policy program fails;
 * - `unavailable`: storage cannot be reached, and most calls are refused.
 */
export interface Health {
  /** Of the relay, and the last migration of the database's schema. */
  readonly version: string;
  readonly schema: number;
  readonly status: 'ok' | 'degraded' | 'unavailable';
  /** `read-only`: a full disk, or a lock of another process, refused the last write. */
  readonly storage: 'ok' | 'read-only' | 'lost';
  /** `low`: the disk of the database or of attachments has less room than `limits.diskFree`. */
  readonly disk: 'ok' | 'low';
  readonly bus: 'ok' | 'lost';
  /** `ahead`: the clock jumped ahead, and nothing is deleted for a day. */
  readonly clock: 'ok' | 'ahead';
  /** `lost`: the file or the nodes cannot be read, and what was read before serves for a while. */
  readonly registry: 'ok' | 'lost';
  /**
   * `unusable`: the files cannot be used, and the certificate before stays in force; `expiring`: it
   * has less than {@link soon} seconds; `none`: a proxy has it.
   */
  readonly certificate: 'ok' | 'expiring' | 'unusable' | 'none';
  /** `failing`: the program does not run, or gave no answer last; `none`: none is asked. */
  readonly policy: 'ok' | 'failing' | 'none';
  /**
   * Groups and channels of which clients showed today that a restore lost something. It is what they say, so
   * it does not change `status`.
   */
  readonly losses: { readonly groups: number; readonly channels: number };
  /** Other relays: with a connection, and failing. Neither changes `status`. */
  readonly peers: { readonly connected: number; readonly failing: number };
}

/** What the composition root knows about this build. */
export interface Build {
  readonly version: string;
  readonly schema: number;
}

/** Answers requests of `/admin`, and those below it. */
export interface AdminPages {
  /** Takes over changed addresses of trusted proxies. */
  trust(proxies: readonly string[]): void;
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** What a server for operators has in addition to its address. */
export interface OperationsOptions {
  readonly build?: Build;
  /** Serves over TLS; HTTP without it. */
  readonly tls?: TlsFiles | undefined;
  readonly admin?: AdminPages | undefined;
}

/** Seconds before its end at which a certificate should have been renewed long ago. */
const soon = 7 * 86_400;

/** Limits of a request; a health check needs less. */
const maxHeaderBytes = 8_192;
const requestTimeout = 10_000;
const maxConnections = 64;

/**
 * Serves, each as `GET`:
 * - `/health`: {@link Health} as JSON, status 200, or 503 if it is `unavailable`;
 * - `/healthz`: 200 as long as the process answers at all;
 * - `/readyz`: 200 while the process serves clients, 503 while it starts, stops or has no storage;
 * - `/metrics`: Prometheus's text format.
 *
 * These have no authentication and no rate limits: for the operator's own network only. What is below
 * `/admin/v1/` has a token; the page at `/admin/` has nothing that is secret.
 */
export class Operations implements AsyncDisposable {
  readonly #context: RelayContext;
  readonly #server: Server;
  readonly #build: Build;
  readonly #admin: AdminPages | undefined;
  readonly #figures = new ProcessFigures();
  #checking: Promise<boolean> | undefined;
  #isReady = false;

  private constructor(
    context: RelayContext,
    { build = { version: '', schema: 0 }, tls, admin }: OperationsOptions,
  ) {
    this.#context = context;
    this.#build = build;
    this.#admin = admin;
    const { version, schema } = build;
    const { node } = process.versions;
    context.metrics.set('build_info', 1, { version, schema: String(schema), node });
    const options = { maxHeaderSize: maxHeaderBytes, requestTimeout };
    const answer = (request: IncomingMessage, response: ServerResponse) =>
      void this.#answer(request, response);
    this.#server =
      tls === undefined
        ? createServer(options, answer)
        : createTlsServer({ ...options, ...tls, handshakeTimeout: requestTimeout }, answer);
    this.#server.maxConnections = maxConnections;
  }

  /**
   * Starts the server.
   * @throws Error if it cannot listen on the address
   */
  static async listen(
    context: RelayContext,
    listen: string,
    options: OperationsOptions = {},
  ): Promise<Operations> {
    const operations = new Operations(context, options);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    operations.#server.once('error', reject);
    operations.#server.listen(listenAddress({ listen }), resolve);
    await promise;
    return operations;
  }

  /** `http://127.0.0.1:49153`. */
  get address(): string {
    const { address, port, family } = this.#server.address() as AddressInfo;
    const scheme = this.#hasTls ? 'https' : 'http';
    return `${scheme}://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
  }

  /** Serves with another certificate from now on, if it serves over TLS. */
  useCertificate(files: TlsFiles): void {
    if (this.#hasTls) (this.#server as TlsServer).setSecureContext(files);
  }

  /** Has the operators' verbs use other trusted proxies from now on. */
  trust(proxies: readonly string[]): void {
    this.#admin?.trust(proxies);
  }

  get #hasTls(): boolean {
    return 'setSecureContext' in this.#server;
  }

  /** Tells balancers whether this process serves clients. */
  setReady(isReady: boolean): void {
    this.#isReady = isReady;
    this.#context.metrics.set('ready', isReady ? 1 : 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#figures[Symbol.dispose]();
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
    const registry = metrics.value('registry_lost_now') === 0 ? 'ok' : 'lost';
    const certificate = this.#certificate();
    const policy = this.#policy();
    const parts = [storage, disk, bus, clock, registry, certificate, policy];
    const isWell = parts.every((part) => part === 'ok' || part === 'none');
    const status = storage === 'lost' ? 'unavailable' : isWell ? 'ok' : 'degraded';
    const { version, schema } = this.#build;
    const states = { storage, disk, bus, clock, registry, certificate, policy } as const;
    const losses = this.#context.restoreLosses.counts();
    return { status, ...states, version, schema, losses, peers: this.#peers() };
  }

  #certificate(): Health['certificate'] {
    const { metrics } = this.#context;
    if (metrics.value('certificate_unusable') === 1) return 'unusable';
    const seconds = metrics.current('certificate_left_seconds');
    if (seconds === undefined) return 'none';
    return seconds < soon ? 'expiring' : 'ok';
  }

  #policy(): Health['policy'] {
    const failing = this.#context.metrics.current('policy_failing_now');
    if (failing === undefined) return 'none';
    return failing === 1 ? 'failing' : 'ok';
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
    if (this.#admin !== undefined && /^\/admin(?:[/?]|$)/.test(url)) {
      return await this.#admin.answer(request, response);
    }
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
      case '/healthz':
        plain(response, { status: 200, text: 'ok' });
        return;
      case '/readyz': {
        const isServing = this.#isReady && (await this.health()).status !== 'unavailable';
        plain(
          response,
          isServing ? { status: 200, text: 'ready' } : { status: 503, text: 'not ready' },
        );
        return;
      }
      case '/metrics':
        this.#figures.update(this.#context.metrics);
        response
          .writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
          .end(this.#context.metrics.exposition());
        return;
      default:
        plain(response, { status: 404, text: '/health, /healthz, /readyz or /metrics' });
    }
  }
}

function plain(
  response: ServerResponse,
  { status, text }: { readonly status: number; readonly text: string },
): void {
  const headers = { 'content-type': 'text/plain', 'cache-control': 'no-store' };
  response.writeHead(status, headers).end(`${text}\n`);
}
