/**
 * A relay that lies: a real proxy of a real relay, which alters the relay's answers.
 * Between proxy and client is TLS with the relay's own certificate; the relay believes the proxy's
 * addresses to be its own, so that origins and descriptors are right until a lie says otherwise.
 */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttpsServer, request, type Server } from 'node:https';
import { type AddressInfo, createServer as createNetServer } from 'node:net';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { type ErrorCode, errorCatalogue } from '@posthouse/protocol';
import { type WebSocket, WebSocketServer, WebSocket as WsClient } from 'ws';
import type { Asked, HostileAnswers, Json, Refusal } from './hostile-answers.ts';
import { RelayWithClients } from './relay-with-clients.ts';

/** Gets the relay's result of a method and gives what the client shall see instead. */
export type Lie = (result: Json, params: Json) => Json;
/** Gets the complete text of an answer (over WebSocket with its envelope). */
export type RawLie = (text: string) => string;

export class LyingRelay implements AsyncDisposable {
  readonly world: RelayWithClients;
  readonly #server: Server;
  readonly #sockets = new Set<WebSocket>();
  readonly #backend: string;
  readonly #lies = new Map<string, Lie>();
  readonly #rawLies = new Map<string, RawLie>();
  readonly #losses = new Map<string, number>();
  readonly #requests = new Map<string, (params: Json) => Json>();
  /** Answers without asking the relay: status, headers, body. Over HTTP only. */
  readonly overHttp = new Map<string, (response: ServerResponse) => void>();
  /** What the relay last answered honestly, by method. */
  readonly honest = new Map<string, Json>();
  /** What is done as soon as a request of a method arrives. */
  readonly when = new Map<string, () => void>();
  odd: HostileAnswers | undefined;
  /** What a proxy does with a connection that asks for a WebSocket, which it does not pass on. */
  insteadOfUpgrade: ((socket: Duplex, agree: () => void) => void) | undefined;
  /** Requests for a WebSocket so far. */
  upgrades = 0;
  /** How many requests of a method arrived. */
  readonly asked = new Map<string, number>();

  private constructor(world: RelayWithClients, server: Server, backend: string) {
    this.world = world;
    this.#server = server;
    this.#backend = backend;
  }

  /** @param prefix of the path of its addresses */
  static async start(
    config: Parameters<typeof RelayWithClients.start>[0] = {},
    prefix = '',
  ): Promise<LyingRelay> {
    const server = createHttpsServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const backendPort = await freePort();
    const world = await RelayWithClients.start({
      ...config,
      listen: `127.0.0.1:${backendPort}`,
      public: {
        https: [`https://127.0.0.1:${port}${prefix}/svc/v1`],
        wss: [`wss://127.0.0.1:${port}${prefix}/svc/v1`],
        ...config.public,
      },
    });
    const tls = (name: string) => readFileSync(join(world.folder, 'relay', 'tls', name), 'utf8');
    server.setSecureContext({ key: tls('server.key'), cert: tls('server.pem') });
    const relay = new LyingRelay(world, server, `127.0.0.1:${backendPort}`);
    server.on('request', (incoming, outgoing) => void relay.#proxyHttp(incoming, outgoing));
    const sockets = new WebSocketServer({ noServer: true });
    sockets.on('connection', (socket, { url = '/' }) => relay.#proxySocket(socket, url));
    server.on('upgrade', (incoming, socket, head) => {
      relay.upgrades += 1;
      const agree = (use: (open: WebSocket) => void) =>
        sockets.handleUpgrade(incoming, socket, head, use);
      if (relay.insteadOfUpgrade === undefined) {
        agree((open) => sockets.emit('connection', open, incoming));
      } else relay.insteadOfUpgrade(socket, () => agree(() => {}));
    });
    return relay;
  }

  /** Loses the next answers of a method: the relay carries the request out, and no answer arrives. */
  lose(method: string, times: number): void {
    this.#losses.set(method, times);
  }

  /** Ends every WebSocket, as a broken network would. */
  cut(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  /** Open WebSockets. */
  get sockets(): number {
    return this.#sockets.size;
  }

  /** Lies about a method until `behave`. */
  lie(method: string, lie: Lie): void {
    this.#lies.set(method, lie);
  }

  /** Alters the text of a method's answers until `behave`. */
  garble(method: string, lie: RawLie): void {
    this.#rawLies.set(method, lie);
  }

  /** Asks the relay for something else than the client did, until `behave`. */
  ask(method: string, change: (params: Json) => Json): void {
    this.#requests.set(method, change);
  }

  behave(): void {
    this.#lies.clear();
    this.#requests.clear();
    this.#rawLies.clear();
    this.#losses.clear();
    this.overHttp.clear();
    this.when.clear();
    this.insteadOfUpgrade = undefined;
  }

  /** Sends something to every connected client. */
  push(data: string | Uint8Array): void {
    for (const socket of this.#sockets) socket.send(data);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.terminate();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await this.world[Symbol.asyncDispose]();
  }

  #count(method: string): void {
    this.asked.set(method, (this.asked.get(method) ?? 0) + 1);
    this.when.get(method)?.();
  }

  async #proxyHttp(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await readAll(incoming);
    const method = methodOf(incoming.url ?? '/');
    this.#count(method);
    const instead = this.overHttp.get(method);
    if (instead !== undefined) {
      instead(outgoing);
      return;
    }
    const { host: _host, 'content-length': _length, ...headers } = incoming.headers;
    const params = paramsOf(incoming, body);
    const asked = { method, params };
    const answer = this.odd?.instead(asked);
    if (answer !== undefined) {
      this.#answerInstead(answer, outgoing);
      return;
    }
    const changed = this.#changed(asked);
    const isQuery = body.length === 0;
    const { pathname } = new URL(incoming.url ?? '/', 'https://relay.invalid');
    const query = isQuery ? `?${new URLSearchParams(changed)}` : '';
    const text = isQuery ? '' : JSON.stringify(changed);
    const forwarded = request(
      `https://${this.#backend}${pathname}${query}`,
      {
        method: incoming.method ?? 'GET',
        headers: isQuery ? headers : { ...headers, 'content-length': Buffer.byteLength(text) },
        ca: this.world.ca,
      },
      (answer) => {
        const takesAny = incoming.headers['accept-encoding'] === undefined;
        void this.#answerHttp({ ...asked, takesAny }, answer, outgoing);
      },
    );
    forwarded.on('error', () => outgoing.destroy());
    forwarded.end(text);
  }

  async #answerHttp(
    asked: Asked & { readonly takesAny: boolean },
    answer: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<void> {
    const {
      'content-length': _length,
      'transfer-encoding': _encoding,
      ...headers
    } = answer.headers;
    const text = (await readAll(answer)).toString();
    if (this.#loses(asked.method)) {
      outgoing.destroy();
      return;
    }
    const { odd } = this;
    const told = text === '' ? '' : this.#altered(asked, text, '');
    const type = odd === undefined || text === '' ? {} : { 'content-type': odd.contentType() };
    const body = text === '' ? '' : (odd?.text(told) ?? told);
    // A client that names no codings accepts any (RFC 9110 §12.5.3).
    const coded = asked.takesAny && body !== '' ? odd?.coded(body) : undefined;
    const coding = coded === undefined ? {} : { 'content-encoding': coded.coding };
    outgoing.writeHead(answer.statusCode ?? 500, { ...headers, ...type, ...coding });
    outgoing.end(coded?.body ?? body);
  }

  #answerInstead(
    answer: { readonly result: Json } | { readonly refusal: Refusal },
    outgoing: ServerResponse,
  ): void {
    const isRefusal = 'refusal' in answer;
    const status = isRefusal ? errorCatalogue[answer.refusal.code].http : 200;
    outgoing.writeHead(status, { 'content-type': 'application/json' });
    outgoing.end(JSON.stringify(isRefusal ? answer.refusal : answer.result));
  }

  #changed(asked: Asked): Json {
    const { params } = asked;
    const changed = this.#requests.get(asked.method)?.(params) ?? params;
    return this.odd?.ask({ ...asked, params: changed }) ?? changed;
  }

  #proxySocket(socket: WebSocket, url: string): void {
    this.#sockets.add(socket);
    const requests = new Map<unknown, Asked>();
    const backend = new WsClient(`wss://${this.#backend}${url}`, { ca: this.world.ca });
    const waiting: string[] = [];
    socket.on('message', (data) => {
      const text = String(data);
      const request = JSON.parse(text);
      const { id, method, params } = request;
      requests.set(id, { method, params });
      this.#count(method);
      const instead = this.odd?.instead({ method, params });
      if (instead !== undefined) {
        const { code, ...error } = 'refusal' in instead ? instead.refusal : { code: undefined };
        const outcome =
          'result' in instead
            ? instead
            : { error: { ...error, code: errorCatalogue[code as ErrorCode].rpc } };
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, ...outcome }));
        return;
      }
      const asked = JSON.stringify({ ...request, params: this.#changed({ method, params }) });
      if (backend.readyState === WsClient.OPEN) backend.send(asked);
      else waiting.push(asked);
    });
    backend.on('open', () => {
      for (const text of waiting) backend.send(text);
    });
    backend.on('message', (data) => {
      const text = String(data);
      const asked = requests.get(JSON.parse(text).id);
      const isLost = asked !== undefined && (this.#loses(asked.method) || this.odd?.ends(asked));
      if (isLost) socket.terminate();
      else if (asked !== undefined) this.#respond(socket, this.#altered(asked, text, 'result'));
      else for (const each of this.#notifications(text)) this.#send(socket, each);
    });
    backend.on('close', () => socket.close());
    backend.on('error', () => socket.terminate());
    socket.on('close', () => {
      this.#sockets.delete(socket);
      backend.close();
    });
  }

  #notifications(text: string): readonly string[] {
    if (this.odd === undefined) return [text];
    return this.odd.notify(JSON.parse(text)).map((each) => JSON.stringify(each));
  }

  /** In as many frames as it pleases where it is odd. */
  #send(socket: WebSocket, text: string): void {
    if (this.odd === undefined) {
      socket.send(text);
      return;
    }
    const told = this.odd.text(JSON.stringify(this.odd.envelope(JSON.parse(text))));
    const middle = Math.floor(told.length / 2);
    socket.send(told.slice(0, middle), { fin: false });
    socket.send(told.slice(middle), { fin: true });
  }

  #respond(socket: WebSocket, text: string): void {
    const wait = this.odd?.delay() ?? 0;
    if (wait === 0) this.#send(socket, text);
    else setTimeout(() => this.#send(socket, text), wait);
  }

  #loses(method: string): boolean {
    const left = this.#losses.get(method) ?? 0;
    this.#losses.set(method, left - 1);
    return left > 0;
  }

  /** @param member where the result stands in the text; empty for the root */
  #altered(asked: Asked, text: string, member: '' | 'result'): string {
    const { method, params } = asked;
    let altered = text;
    const answer = JSON.parse(text);
    const error = member === '' ? (isError(answer) ? answer : undefined) : answer.error;
    if (error !== undefined) {
      const told = this.odd?.refusal(error) ?? error;
      altered = JSON.stringify(member === '' ? told : { ...answer, error: told });
    }
    let result = error !== undefined ? undefined : member === '' ? answer : answer.result;
    if (result !== undefined) {
      this.honest.set(method, result);
      if (this.odd !== undefined && result !== null) {
        result = this.odd.answer(asked, result);
        altered = JSON.stringify(member === '' ? result : { ...answer, result });
      }
      const lie = this.#lies.get(method);
      if (lie !== undefined) {
        const told = lie(structuredClone(result), params);
        altered = JSON.stringify(member === '' ? told : { ...answer, result: told });
      }
    }
    return this.#rawLies.get(method)?.(altered) ?? altered;
  }
}

function isError(answer: Json): boolean {
  return typeof answer.code === 'string' && Object.hasOwn(errorCatalogue, answer.code);
}

function paramsOf({ url = '/' }: IncomingMessage, body: Buffer): Json {
  if (body.length > 0) return JSON.parse(body.toString());
  return Object.fromEntries(new URL(url, 'https://relay.invalid').searchParams);
}

function methodOf(url: string): string {
  const { pathname } = new URL(url, 'https://relay.invalid');
  return pathname.replace(/^.*\/svc\/v1\//, '').replaceAll('/', '.');
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** A free port, for a server that must know its port before it starts. */
async function freePort(): Promise<number> {
  const server = createNetServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
