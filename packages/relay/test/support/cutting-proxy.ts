/**
 * Stands between a PostgreSQL client and its server and breaks their connection at a chosen
 * moment. It knows just enough of the protocol to tell statements and their answers apart.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A moment, and what happens then. */
export interface Cut {
  /**
   * `before`: the statement does not reach the server; `after`: the server has executed it, the
   * client hears nothing of it.
   */
  readonly when: 'before' | 'after';
  /** What else happens at that moment, before the client notices. */
  readonly also?: () => void;
}

interface Planned extends Cut {
  readonly statement: RegExp;
  readonly done: () => void;
}

/**
 * @example
 * await using proxy = await CuttingProxy.start(url);
 * const cut = proxy.cut(/^COMMIT$/, { when: 'after' });
 * await writeThrough(proxy.url);
 * await cut;
 */
export class CuttingProxy implements AsyncDisposable {
  readonly url: string;
  /** Statements that came by, in order. */
  readonly statements: string[] = [];
  readonly #server: Server;
  readonly #links = new Set<Link>();
  readonly #plan: Planned[] = [];
  #isRefusing = false;
  #isSilent = false;

  private constructor(server: Server, target: URL) {
    this.#server = server;
    const url = new URL(target);
    url.port = `${(server.address() as { port: number }).port}`;
    this.url = url.href;
    server.on('connection', (client) => {
      if (this.#isRefusing) client.destroy();
      else this.#link(client, target);
    });
  }

  /** @param url of a database */
  static async start(url: string): Promise<CuttingProxy> {
    // A silent proxy does not say goodbye either.
    const server = createServer({ allowHalfOpen: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new CuttingProxy(server, new URL(url));
  }

  /** Breaks the next connection on which such a statement goes by; resolves when it did. */
  cut(statement: RegExp, how: Cut): Promise<void> {
    return new Promise((done) => this.#plan.push({ statement, done, ...how }));
  }

  /** Breaks every connection. */
  cutAll(): void {
    for (const link of this.#links) link.cut();
  }

  /** Whether new connections are broken at once. */
  refuse(isRefusing: boolean): void {
    this.#isRefusing = isRefusing;
  }

  /** From now on nothing arrives any more, on old and on new connections; none is closed. */
  fallSilent(): void {
    this.#isSilent = true;
    for (const link of this.#links) link.fallSilent();
  }

  /** Ends the silence for new connections; the old ones are of no use any more. */
  speak(): void {
    this.#isSilent = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #link(client: Socket, { hostname, port }: URL): void {
    const server = this.#isSilent ? undefined : connect(Number(port), hostname);
    const link: Link = new Link(client, server, (statement) => {
      this.statements.push(statement);
      return this.#meet(link, statement);
    });
    if (this.#isSilent) link.fallSilent();
    this.#links.add(link);
    void link.over.then(() => this.#links.delete(link));
  }

  /** Whether the statement must not go on. */
  #meet(link: Link, statement: string): boolean {
    if (link.isDoomed) return false;
    const index = this.#plan.findIndex((planned) => planned.statement.test(statement));
    const [planned] = index === -1 ? [] : this.#plan.splice(index, 1);
    if (planned === undefined) return false;
    const strike = () => {
      planned.also?.();
      link.cut();
      planned.done();
    };
    if (planned.when === 'after') {
      link.onAnswer(strike);
      return false;
    }
    strike();
    return true;
  }
}

/** One client's connection and its counterpart; without one, the client gets no answer. */
class Link {
  readonly over: Promise<void>;
  readonly #client: Socket;
  readonly #server: Socket | undefined;
  readonly #meet: (statement: string) => boolean;
  readonly #requests = new Frames({ hasStartup: true });
  readonly #answers = new Frames({ hasStartup: false });
  readonly #texts = new Map<string, string>();
  #bound = '';
  /** Times the server will say that it is ready again, and times it did; once for the startup. */
  #expected = 1;
  #ready = 0;
  #awaited: { readonly ready: number; readonly strike: () => void } | undefined;
  #isSilent = false;

  constructor(client: Socket, server: Socket | undefined, meet: (statement: string) => boolean) {
    this.#client = client;
    this.#server = server;
    this.#meet = meet;
    for (const socket of [client, server]) {
      socket?.setNoDelay(true);
      socket?.on('error', () => {});
      socket?.on('close', () => this.cut());
      socket?.on('end', () => {
        if (!this.#isSilent) this.cut();
      });
    }
    this.over = new Promise((resolve) => client.once('close', () => resolve()));
    client.on('data', (data: Buffer) => this.#toServer(data));
    server?.on('data', (data: Buffer) => this.#toClient(data));
  }

  cut(): void {
    this.#client.destroy();
    this.#server?.destroy();
  }

  fallSilent(): void {
    this.#isSilent = true;
  }

  /** Whether it will be cut when a statement is answered. */
  get isDoomed(): boolean {
    return this.#awaited !== undefined;
  }

  /** Calls when the statement that is just going by has been answered; the answer stays here. */
  onAnswer(strike: () => void): void {
    this.#awaited = { ready: this.#expected + 1, strike };
  }

  #toServer(data: Buffer): void {
    if (this.#server === undefined) return;
    for (const frame of this.#requests.push(data)) {
      if (this.#isSilent || this.#client.destroyed) return;
      const statement = this.#statementOf(frame);
      if (statement !== undefined && this.#meet(statement)) return;
      if (frame.type === 'Q' || frame.type === 'S') this.#expected += 1;
      this.#server.write(frame.bytes);
    }
  }

  #toClient(data: Buffer): void {
    for (const frame of this.#answers.push(data)) {
      if (this.#isSilent || this.#client.destroyed) return;
      if (frame.type === 'Z') this.#ready += 1;
      const { ready, strike } = this.#awaited ?? { ready: Infinity };
      if (this.#ready >= ready) {
        strike?.();
        return;
      }
      // Answers to what left before still arrive.
      if (this.#ready < ready - 1 || this.#isEarlier(frame)) this.#client.write(frame.bytes);
    }
  }

  /** Whether the answer is the last one before that of the awaited statement. */
  #isEarlier(frame: Frame): boolean {
    return frame.type === 'Z' && this.#ready + 1 === this.#awaited?.ready;
  }

  /** The text of a statement that is about to be executed. */
  #statementOf({ type, bytes }: Frame): string | undefined {
    const [first = '', second = ''] = bytes.toString('utf8', 5).split('\0', 2);
    switch (type) {
      case 'Q':
        return first;
      case 'P':
        this.#texts.set(first, second);
        return undefined;
      case 'B':
        this.#bound = this.#texts.get(second) ?? '';
        return undefined;
      case 'E':
        return this.#bound;
      default:
        return undefined;
    }
  }
}

interface Frame {
  /** `undefined` for the startup message. */
  readonly type: string | undefined;
  readonly bytes: Buffer;
}

/** Cuts a stream into the protocol's messages: a type, a length that counts itself, the rest. */
class Frames {
  #rest: Buffer = Buffer.alloc(0);
  #isStarting: boolean;

  constructor({ hasStartup }: { readonly hasStartup: boolean }) {
    this.#isStarting = hasStartup;
  }

  push(data: Buffer): Frame[] {
    this.#rest = Buffer.concat([this.#rest, data]);
    const frames: Frame[] = [];
    for (;;) {
      const head = this.#isStarting ? 0 : 1;
      if (this.#rest.length < head + 4) return frames;
      const size = head + this.#rest.readUInt32BE(head);
      if (this.#rest.length < size) return frames;
      const bytes = this.#rest.subarray(0, size);
      const type = this.#isStarting ? undefined : String.fromCharCode(bytes[0] as number);
      frames.push({ type, bytes });
      this.#rest = this.#rest.subarray(size);
      this.#isStarting = false;
    }
  }
}
