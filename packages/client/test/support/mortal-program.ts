/** A program that dies at a chosen point: its store and its network fail from then on. */
import type {
  HttpRequest,
  HttpResponse,
  Store,
  StoreReader,
  StoreWriter,
  Transport,
} from '../../src/index.ts';

/** The death of a program; no code of the client handles it. */
export class ProgramDied extends Error {}

/**
 * Counts points: before and after each commit of the store, before each request is sent, and after
 * its answer arrived, which the program then never sees. At one of them the program dies.
 *
 * @example
 * const program = new MortalProgram(store, transport, 17);
 * const client = await world.client({ store: program.store, transport: program.transport });
 */
export class MortalProgram {
  readonly store: Store;
  readonly transport: Transport;
  /** Bodies of `account.route.publish`, in the order in which they were sent. */
  readonly sentRoutes: string[] = [];
  readonly #dieAt: number;
  #passed = 0;

  /** @param dieAt the point, from 1; it may lie beyond the last one */
  constructor(store: Store, transport: Transport, dieAt: number) {
    this.#dieAt = dieAt;
    this.store = {
      read: (work) => this.#read(store, work),
      write: (work) => this.#write(store, work),
      [Symbol.asyncDispose]: async () => {},
    };
    this.transport = { request: (request) => this.#request(transport, request) };
  }

  get isDead(): boolean {
    return this.#passed >= this.#dieAt;
  }

  #pass(): void {
    if (!this.isDead) this.#passed += 1;
    this.#throwIfDead();
  }

  #throwIfDead(): void {
    if (this.isDead) throw new ProgramDied(`at point ${this.#passed}`);
  }

  async #read<T>(store: Store, work: (tx: StoreReader) => Promise<T>): Promise<T> {
    this.#throwIfDead();
    return await store.read(work);
  }

  async #write<T>(store: Store, work: (tx: StoreWriter) => Promise<T>): Promise<T> {
    this.#pass();
    const result = await store.write(work);
    this.#pass();
    return result;
  }

  async #request(transport: Transport, request: HttpRequest): Promise<HttpResponse> {
    this.#pass();
    const isRoute = new URL(request.url).pathname.endsWith('/account/route/publish');
    if (isRoute) this.sentRoutes.push(String(request.body ?? ''));
    const response = await transport.request(request);
    this.#pass();
    return response;
  }
}
