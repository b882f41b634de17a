import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, isIPv6 } from 'node:net';

/** Where the kit's relays are reached, and the certificate that proves it. */
export interface ServerOptions {
  /** IP address or name of this machine for the relay under test. */
  readonly host: string;
  /** PEM, server certificate first. */
  readonly certificate: string;
  /** PEM. */
  readonly key: string;
}

/** Serves the descriptors of the kit's relays over HTTPS, each below a path of its own. */
export class DescriptorServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #host: string;
  /** Text of the descriptor, if there is one, by the first part of the path. */
  readonly #descriptors = new Map<string, () => string | undefined>();

  private constructor(server: Server, host: string) {
    this.#server = server;
    this.#host = host;
  }

  /** @throws Error if the certificate is malformed, or the host is not of this machine */
  static async start({ host, certificate, key }: ServerOptions): Promise<DescriptorServer> {
    const server = createServer({ cert: certificate, key });
    const started = new DescriptorServer(server, isIPv6(host) ? `[${host}]` : host);
    server.on('request', (request, response) => {
      const [, name = '', rest] = /^\/([^/]+)(\/.*)$/.exec(request.url ?? '') ?? [];
      const isDescriptor = rest === '/v1/relay/descriptor';
      const text = isDescriptor ? started.#descriptors.get(name)?.() : undefined;
      response.writeHead(text === undefined ? 404 : 200, { 'content-type': 'application/json' });
      response.end(text ?? '{}');
    });
    server.listen(0, host);
    await once(server, 'listening');
    return started;
  }

  /**
   * Serves the descriptor of a relay until it is removed: 404 while it returns `undefined`.
   *
   * @returns the discovery address
   */
  add(name: string, descriptor: () => string | undefined): string {
    this.#descriptors.set(name, descriptor);
    return `https://${this.#host}:${(this.#server.address() as AddressInfo).port}/${name}/v1`;
  }

  remove(name: string): void {
    this.#descriptors.delete(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}
