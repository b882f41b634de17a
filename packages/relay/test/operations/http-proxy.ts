/** A proxy before a relay without TLS, as nginx is: what it passes on can be changed. */
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { WebSocketServer } from 'ws';

export class HttpProxy implements AsyncDisposable {
  readonly port: number;
  /** Makes `X-Forwarded-For` of what the client said and of the client's address. */
  forwarded: (said: string | undefined, client: string) => string | undefined = (_, client) =>
    client;
  /** What is done with a request for a WebSocket, unless it is passed on. */
  upgrade: ((socket: Duplex, agree: () => void) => void) | undefined;
  readonly #server: Server;

  private constructor(server: Server, relayPort: number) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    const deaf = new WebSocketServer({ noServer: true });
    const passedOn = (incoming: IncomingMessage) => {
      const { 'x-forwarded-for': said, ...headers } = incoming.headers;
      const forwarded = this.forwarded(
        said as string | undefined,
        incoming.socket.remoteAddress ?? '',
      );
      const { method, url: path } = incoming;
      return request({
        ...{ host: '127.0.0.1', port: relayPort, method, path, agent: false },
        headers: { ...headers, ...(forwarded !== undefined && { 'x-forwarded-for': forwarded }) },
      });
    };
    server.on('request', (incoming, outgoing) => {
      const passed = passedOn(incoming);
      passed.on('error', () => outgoing.destroy());
      passed.on('response', (answer) => {
        outgoing.writeHead(answer.statusCode ?? 0, { ...answer.headers, server: 'nginx' });
        answer.pipe(outgoing);
      });
      incoming.pipe(passed);
    });
    server.on('upgrade', (incoming, socket: Duplex, head: Buffer) => {
      socket.on('error', () => {});
      if (this.upgrade !== undefined) {
        this.upgrade(socket, () => deaf.handleUpgrade(incoming, socket, head, () => {}));
        return;
      }
      const passed = passedOn(incoming);
      passed.on('error', () => socket.destroy());
      passed.on('upgrade', (answer, relay) => {
        const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`);
        socket.write(['HTTP/1.1 101 Switching Protocols', ...lines, '', ''].join('\r\n'));
        relay.on('error', () => socket.destroy());
        relay.pipe(socket).pipe(relay);
      });
      passed.end();
    });
  }

  /** @param tls files of its certificate and key */
  static async start(
    relayPort: number,
    tls: { readonly cert: string; readonly key: string },
  ): Promise<HttpProxy> {
    const server = createServer({ cert: readFileSync(tls.cert), key: readFileSync(tls.key) });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new HttpProxy(server, relayPort);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
