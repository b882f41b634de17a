import { connect, createServer, type Server, type Socket } from 'node:net';

/** The way from one process to its NATS server, which a test can cut without hurting either. */
export class TcpProxy implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;

  private constructor(server: Server, target: URL) {
    this.#server = server;
    const url = new URL(target);
    url.port = String((server.address() as { port: number }).port);
    this.url = url.href;
    server.on('connection', (near) => {
      const far = connect(Number(target.port), target.hostname);
      this.#keep(near, far);
      this.#keep(far, near);
      if (this.#isCut) near.destroy();
    });
  }

  static async start(url: string): Promise<TcpProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new TcpProxy(server, new URL(url));
  }

  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  restore(): void {
    this.#isCut = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #keep(from: Socket, to: Socket): void {
    this.#sockets.add(from);
    from.on('error', () => {});
    from.once('close', () => {
      this.#sockets.delete(from);
      to.destroy();
    });
    from.pipe(to);
  }
}
