import { WebSocket } from 'ws';

export interface RpcAnswer {
  readonly jsonrpc: string;
  readonly id: string | number | null;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface RpcNotification {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** A plain WebSocket that keeps what arrives in order and hands it out one by one. */
export class WebSocketClient implements Disposable {
  readonly socket: WebSocket;
  /** Close code, once the connection is over. */
  readonly closed: Promise<number>;
  readonly #arrived: (RpcAnswer & Partial<RpcNotification>)[] = [];
  readonly #waiting: (() => void)[] = [];
  #nextId = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => {
      socket.on('close', (code) => {
        resolve(code);
        for (const wake of this.#waiting.splice(0)) wake();
      });
    });
    socket.on('error', () => {});
    socket.on('message', (data) => {
      this.#arrived.push(JSON.parse(String(data)));
      for (const wake of this.#waiting.splice(0)) wake();
    });
  }

  /** @throws Error where the upgrade is refused, with the status in its message */
  static async open(url: string, ca: string, headers = {}): Promise<WebSocketClient> {
    const socket = new WebSocket(url, { ca, headers, perMessageDeflate: false });
    const client = new WebSocketClient(socket);
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    return client;
  }

  /** The first message that fits, taken out of what arrived. */
  async #take<T>(fits: (message: RpcAnswer & Partial<RpcNotification>) => boolean): Promise<T> {
    for (;;) {
      const index = this.#arrived.findIndex(fits);
      if (index >= 0) return this.#arrived.splice(index, 1)[0] as T;
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error('the connection is closed');
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Sends a text as it is and takes the next answer, whichever it belongs to. */
  async send(text: string | Uint8Array): Promise<RpcAnswer> {
    this.socket.send(text, { binary: false });
    return this.#take((message) => message.method === undefined);
  }

  async call(method: string, params?: unknown): Promise<RpcAnswer> {
    this.#nextId += 1;
    const id = this.#nextId;
    this.socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    return this.#take((message) => message.id === id);
  }

  /** The answer to an id. */
  answer(id: string | number | null): Promise<RpcAnswer> {
    return this.#take((message) => message.method === undefined && message.id === id);
  }

  notification(): Promise<RpcNotification> {
    return this.#take((message) => message.method !== undefined);
  }

  /** Notifications that arrived before the answer to a call made now. */
  async notificationsSoFar(): Promise<RpcNotification[]> {
    await this.call('relay.info');
    const found = this.#arrived.filter(({ method }) => method !== undefined);
    for (const one of found) this.#arrived.splice(this.#arrived.indexOf(one), 1);
    return found as unknown as RpcNotification[];
  }

  [Symbol.dispose](): void {
    this.socket.terminate();
  }
}
