import { connect, createServer, type Server, type Socket } from 'node:net';

/** Whose bytes: of the side that dials, or of the relay that listens. */
export type CableDirection = 'of-dialer' | 'of-listener';

interface Ends {
  readonly dialer: Socket;
  readonly listener: Socket;
}

/** Cuts a connection when so many more bytes have gone by. */
interface PlannedCut {
  left: number;
  readonly direction: CableDirection | undefined;
  readonly done: () => void;
}

/**
 * The way to a relay's port for other relays. A test cuts it, lets it hang in one or both
 * directions, or cuts it after a number of bytes; it never changes a byte.
 *
 * @example
 * await using cable = await Cable.to(port);
 * cable.hang('of-listener'); // requests arrive, answers do not
 * cable.resume(); // what was held arrives
 */
export class Cable implements AsyncDisposable {
  /** The port that others dial. */
  readonly port: number;
  /** Bytes that went by, by direction. */
  readonly bytes: Record<CableDirection, number> = { 'of-dialer': 0, 'of-listener': 0 };
  /** Connections that were opened so far. */
  opened = 0;
  readonly #server: Server;
  readonly #connections = new Set<Ends>();
  readonly #hanging = new Set<CableDirection>();
  #isCut = false;
  #planned: PlannedCut | undefined;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.port = (server.address() as { port: number }).port;
    server.on('connection', (dialer) => {
      if (this.#isCut) dialer.resetAndDestroy();
      else this.#join({ dialer, listener: connect(target, '127.0.0.1') });
    });
  }

  /** @param port of a relay on loopback, which need not listen yet */
  static async to(port: number): Promise<Cable> {
    const server = createServer({ allowHalfOpen: true, noDelay: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new Cable(server, port);
  }

  /** Connections that are open now. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Breaks every connection; new ones are made. */
  drop(): void {
    for (const ends of this.#connections) breakBoth(ends);
  }

  /** Breaks every connection, and new ones at once until {@link restore}. */
  cut(): void {
    this.#isCut = true;
    this.drop();
  }

  /** Ends every cut and hang, as on a new cable; connections that hung are broken. */
  restore(): void {
    this.#isCut = false;
    this.#planned = undefined;
    if (this.#hanging.size > 0) this.drop();
    this.#hanging.clear();
  }

  /** Holds all bytes back, on old and new connections, which stay open. */
  hang(...directions: CableDirection[]): void {
    const all: CableDirection[] = ['of-dialer', 'of-listener'];
    for (const direction of directions.length > 0 ? directions : all) this.#hanging.add(direction);
    for (const ends of this.#connections) this.#flow(ends);
  }

  /** Lets the bytes that were held back arrive, and all that follow. */
  resume(): void {
    this.#hanging.clear();
    for (const ends of this.#connections) this.#flow(ends);
  }

  /**
   * Breaks the connection on which the last of so many more bytes goes by, of one direction or both
   * together; the bytes before arrive. Resolves when it did.
   */
  cutAfter(bytes: number, direction?: CableDirection): Promise<void> {
    return new Promise((done) => {
      this.#planned = { left: bytes, direction, done };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #join(ends: Ends): void {
    this.opened += 1;
    this.#connections.add(ends);
    this.#pass(ends, 'of-dialer', ends.dialer, ends.listener);
    this.#pass(ends, 'of-listener', ends.listener, ends.dialer);
    this.#flow(ends);
  }

  #flow({ dialer, listener }: Ends): void {
    if (this.#hanging.has('of-dialer')) dialer.pause();
    else dialer.resume();
    if (this.#hanging.has('of-listener')) listener.pause();
    else listener.resume();
  }

  #pass(ends: Ends, direction: CableDirection, from: Socket, to: Socket): void {
    from.setNoDelay(true);
    from.on('error', () => {});
    from.on('end', () => to.end());
    from.once('close', () => {
      this.#connections.delete(ends);
      to.destroy();
    });
    from.on('data', (data: Buffer) => {
      const passing = this.#countDown(direction, data);
      this.bytes[direction] += passing.length;
      if (passing.length === data.length) {
        to.write(passing);
        return;
      }
      // What went by before arrives; then both sides meet the end.
      const over = () => breakBoth(ends);
      if (passing.length > 0) to.write(passing, over);
      else over();
    });
  }

  /** Returns the bytes that still pass. */
  #countDown(direction: CableDirection, data: Buffer): Buffer {
    const planned = this.#planned;
    if (planned === undefined || (planned.direction ?? direction) !== direction) return data;
    if (data.length <= planned.left) {
      planned.left -= data.length;
      return data;
    }
    this.#planned = undefined;
    planned.done();
    return data.subarray(0, planned.left);
  }
}

function breakBoth({ dialer, listener }: Ends): void {
  dialer.destroy();
  listener.destroy();
}
