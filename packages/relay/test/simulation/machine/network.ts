/** A network between simulated processes: delays, losses, reordering, partitions. */
import type { Chance } from './chance.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';

/** A machine with an address; its process may be replaced by another one, or there may be none. */
export interface NetworkNode {
  readonly name: string;
  readonly process: SimulatedProcess | undefined;
}

/** Why a request has no answer: `unsent` if it is certain that it did not arrive. */
export class NoAnswer extends Error {
  readonly isUnsent: boolean;

  constructor(isUnsent: boolean) {
    super(isUnsent ? 'not reached' : 'no answer');
    this.isUnsent = isUnsent;
  }
}

export interface NetworkOptions {
  readonly scheduler: Scheduler;
  readonly chance: Chance;
  /** Milliseconds that a message takes. */
  readonly delay: { readonly shortest: number; readonly longest: number };
}

/** Milliseconds after which a request counts as unanswered. */
const requestTimeout = 30_000;
/** The share of messages that take much longer, and how much. */
const slow = { share: 0.03, factor: 50 } as const;

/**
 * Carries messages between nodes. Knows nothing of what they mean.
 *
 * @example
 * const network = new SimulatedNetwork({ scheduler, chance, delay: { shortest: 1, longest: 40 } });
 * const answer = await network.request(a, b, () => b.answer());
 * network.cut(a, b);
 */
export class SimulatedNetwork {
  readonly #scheduler: Scheduler;
  readonly #chance: Chance;
  readonly #delay: NetworkOptions['delay'];
  readonly #cut = new Set<string>();
  /** Share of requests or answers that are lost. */
  loss = 0;

  constructor({ scheduler, chance, delay }: NetworkOptions) {
    this.#scheduler = scheduler;
    this.#chance = chance;
    this.#delay = delay;
  }

  /** Cuts the way from one node to another, in this direction only. */
  cut(from: NetworkNode, to: NetworkNode): void {
    this.#cut.add(`${from.name} ${to.name}`);
  }

  /** Ends every cut. */
  heal(): void {
    this.#cut.clear();
  }

  isCut(from: NetworkNode, to: NetworkNode): boolean {
    return this.#cut.has(`${from.name} ${to.name}`);
  }

  /** Milliseconds that the next message takes. */
  latency(): number {
    const { shortest, longest } = this.#delay;
    const usual = this.#chance.between(shortest, longest);
    return this.#chance.is(slow.share) ? usual * slow.factor : usual;
  }

  /**
   * Sends a request and waits for the answer. `handle` runs as a part of the process that `to` has
   * when the request arrives.
   *
   * @throws NoAnswer if a way is cut, a message is lost, a process ended, or it took too long
   */
  async request<T>(from: NetworkNode, to: NetworkNode, handle: () => Promise<T>): Promise<T> {
    if (this.isCut(from, to) || to.process === undefined) {
      await this.#scheduler.pause(this.latency());
      throw new NoAnswer(true);
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    using _timeout = this.#scheduler.after(requestTimeout, () => reject(new NoAnswer(false)));
    this.#carry(from, to, async (process) => {
      using _end = process.onEnd(() => reject(new NoAnswer(false)));
      const settle = await handle().then(
        (value) => () => resolve(value),
        (error: unknown) => () => reject(error),
      );
      this.#carry(to, from, async () => settle());
    });
    return await promise;
  }

  /** Sends a message without an answer; it may not arrive. */
  send(from: NetworkNode, to: NetworkNode, handle: () => Promise<void>): void {
    this.#carry(from, to, handle);
  }

  /**
   * Opens a connection, which keeps the order of what is sent. It ends if a process of its ends ends.
   * To be called in the process of `from`; `accept` runs in that of `to`.
   *
   * @throws NoAnswer if the way is cut
   */
  async connect(
    from: NetworkNode,
    to: NetworkNode,
    accept: (end: ConnectionEnd) => void,
  ): Promise<ConnectionEnd> {
    const parts = { network: this, scheduler: this.#scheduler };
    const near = new ConnectionEnd(from, parts);
    const far = new ConnectionEnd(to, parts);
    await this.request(from, to, async () => {
      near.meet(far);
      far.meet(near);
      accept(far);
    });
    return near;
  }

  #carry(
    from: NetworkNode,
    to: NetworkNode,
    arrive: (process: SimulatedProcess) => Promise<void>,
  ): void {
    if (this.isCut(from, to) || this.#chance.is(this.loss)) return;
    const receiver = to.process;
    if (receiver === undefined) return;
    // What is under way belongs to the receiver: a connection ends with the process that it was for.
    this.#scheduler.within(receiver, () =>
      this.#scheduler.after(this.latency(), () => {
        if (to.process === receiver && !this.isCut(from, to)) void arrive(receiver);
      }),
    );
  }
}

interface EndParts {
  readonly network: SimulatedNetwork;
  readonly scheduler: Scheduler;
}

/** One end of a connection. */
export class ConnectionEnd {
  /** Called with each text, in order. */
  received: (text: string) => void = () => {};
  /** Called once, when the other end or the way has ended. */
  closed: () => void = () => {};
  readonly #node: NetworkNode;
  readonly #process: SimulatedProcess;
  readonly #parts: EndParts;
  /** Under way to this end; the last one may be the end of the connection. */
  readonly #arriving: (string | undefined)[] = [];
  #other: ConnectionEnd | undefined;
  #isOpen = true;

  constructor(node: NetworkNode, parts: EndParts) {
    this.#node = node;
    this.#parts = parts;
    if (node.process === undefined) throw new NoAnswer(true);
    this.#process = node.process;
    this.#process.onEnd(() => this.close());
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  meet(other: ConnectionEnd): void {
    this.#other = other;
  }

  /** Sends a text; it arrives if the connection lasts. */
  send(text: string): void {
    if (!this.#isOpen) return;
    const other = this.#other as ConnectionEnd;
    if (this.#parts.network.isCut(this.#node, other.#node)) this.cut();
    else other.#expect(text);
  }

  /** Closes the connection; the other end notices it after what was sent. */
  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const other = this.#other;
    if (other !== undefined) other.#expect(undefined);
  }

  /** Ends the connection from outside: both ends notice it, and what is under way is lost. */
  cut(): void {
    for (const end of [this, this.#other]) {
      if (end === undefined) continue;
      end.#arriving.splice(0);
      end.#expect(undefined);
    }
  }

  #expect(text: string | undefined): void {
    if (this.#process.hasEnded) return;
    this.#arriving.push(text);
    const { network, scheduler } = this.#parts;
    scheduler.within(this.#process, () => scheduler.after(network.latency(), () => this.#arrive()));
  }

  #arrive(): void {
    if (!this.#isOpen || this.#arriving.length === 0) return;
    const text = this.#arriving.shift();
    if (text !== undefined) {
      this.received(text);
      return;
    }
    this.#isOpen = false;
    this.closed();
  }
}
