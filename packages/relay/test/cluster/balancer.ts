/** A plain TCP balancer: it passes bytes on and knows nothing about what they mean. */
import { connect, createServer, type Server, type Socket } from 'node:net';

/**
 * Takes connections on a port of its own and passes each to the next of its backends that answers.
 * Where one side ends, so does the other.
 *
 * @example
 * await using balancer = await Balancer.start();
 * balancer.backends = [4001, 4002];
 */
export class Balancer implements AsyncDisposable {
  /** Ports on this machine. */
  backends: readonly number[] = [];
  readonly port: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #turn = 0;

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
    server.on('connection', (client) => void this.#serve(client));
  }

  static async start(): Promise<Balancer> {
    const server = createServer({ noDelay: true, pauseOnConnect: true });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
    await promise;
    return new Balancer(server, (server.address() as { port: number }).port);
  }

  /** Cuts every connection, whatever is under way on it. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async #serve(client: Socket): Promise<void> {
    this.#keep(client);
    const backend = await this.#next();
    if (backend === undefined || client.destroyed) {
      client.destroy();
      backend?.destroy();
      return;
    }
    this.#keep(backend);
    // If one side closes, close the other side too, even by a reset.
    client.once('close', () => backend.destroy());
    backend.once('close', () => client.destroy());
    client.pipe(backend);
    backend.pipe(client);
    client.resume();
  }

  /** A connection to the next backend that takes one; each is asked once. */
  async #next(): Promise<Socket | undefined> {
    for (let tries = 0; tries < this.backends.length; tries += 1) {
      const port = this.backends[this.#turn % this.backends.length] as number;
      this.#turn += 1;
      const socket = await open(port);
      if (socket !== undefined) return socket;
    }
    return undefined;
  }

  #keep(socket: Socket): void {
    socket.on('error', () => {});
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.cut();
    await promise;
  }
}

function open(port: number): Promise<Socket | undefined> {
  const { promise, resolve } = Promise.withResolvers<Socket | undefined>();
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.once('connect', () => resolve(socket));
  socket.once('error', () => resolve(undefined));
  return promise;
}
