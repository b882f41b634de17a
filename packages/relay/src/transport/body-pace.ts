import type { IncomingMessage } from 'node:http';
import type { RelayContext } from '../context.ts';
import { payerKey } from '../dispatch/allowances.ts';
import type { ArrivalDeadline } from './arrival-deadline.ts';
import type { ByteAccounts } from './byte-accounts.ts';
import type { ByteHold, ByteOwner } from './byte-ledger.ts';
import { GatheredChunks } from './gathered-chunks.ts';
import { ParsedPieces } from './parsed-pieces.ts';

export interface BodyPaceParts {
  readonly context: Pick<RelayContext, 'limits'>;
  readonly bytes: ByteAccounts;
  readonly owner: ByteOwner;
  readonly request: IncomingMessage;
  /** Stands still while the body is held back. */
  readonly deadline?: ArrivalDeadline;
  /** Called if too much arrives while the body is held back. */
  readonly refused: () => void;
}

/** Bytes of a body that are read at once: more of it waits for its turns. */
export const smallBody = 65_536;

/**
 * Charges a body chunk by chunk, and holds the rest of it back while its owner owes, with all that the owner sends, or
 * until a later turn of the event loop if much was read in this one (02 §18).
 */
export class BodyPace implements Disposable {
  readonly #parts: BodyPaceParts;
  readonly #chunks: GatheredChunks | undefined;
  /** Of what arrives while the body is held back. */
  readonly #late: ByteHold;
  readonly #ended = new DisposableStack();
  /** What the body waits for. */
  #wait: Disposable | undefined;
  #isEnded = false;
  #received = 0;
  /** Whether the first chunk, which belongs to the call, has come. */
  #hasBegun = false;
  readonly #pause = (seconds: number) => this.#waitForDebt(seconds);

  constructor(parts: BodyPaceParts) {
    this.#parts = parts;
    const { bytes, owner, request, refused } = parts;
    this.#late = this.#ended.use(bytes.received.openYielding(owner, refused));
    this.#ended.use(whenGone(request, () => this.#gone()));
    this.#chunks = GatheredChunks.of(request);
    const reader = {
      waiting: (count: number) => this.#holdLate(count),
      many: () => this.#charge(0),
    };
    this.#ended.use(this.#chunks?.readBy(reader));
    // What waits to be parsed is the rest of this body, if it is not whole.
    if (!request.complete) ParsedPieces.of(request.socket)?.moveTo(owner);
    this.#startReceiving();
  }

  /** Bytes that were received. */
  get received(): number {
    return this.#received;
  }

  /** Charges the next bytes. Each chunk costs a least, but the first one. */
  receive({ length }: Uint8Array): void {
    this.#received += length;
    this.#chunks?.take(length);
    const { turns } = this.#parts.bytes;
    const isFull = turns.count(length) && this.#received > smallBody;
    if (!this.#charge(length) && isFull) this.#waitForTurn();
  }

  /** Holds nothing back any more. */
  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#stopReceiving();
    this.#wait?.[Symbol.dispose]();
    this.#ended.dispose();
  }

  /** Charges bytes that were taken and chunks that arrived; returns whether the owner owes then. */
  #charge(length: number): boolean {
    const { bytes, context, owner } = this.#parts;
    const chunks = this.#chunks?.takeCount() ?? (length > 0 ? 1 : 0);
    // A charge of nothing would pause what an owner that owes sends.
    if (chunks === 0 && length === 0) return false;
    const count = this.#hasBegun ? chunks : chunks - 1;
    this.#hasBegun ||= chunks > 0;
    const wait = bytes.charge(owner, Math.max(length, count * context.limits.bodyChunkCharge));
    if (wait > 0) this.#waitForDebt(wait);
    return wait > 0;
  }

  /** Charges what arrived and was not taken before the end. */
  #gone(): void {
    this.#charge(0);
    this[Symbol.dispose]();
  }

  #holdLate(bytes: number): void {
    if (bytes < 0) this.#late.release(-bytes);
    else if (!this.#late.add(bytes)) this.#parts.refused();
  }

  #waitForDebt(seconds: number): void {
    const { bytes, owner } = this.#parts;
    if (this.#mayPause) this.#pauseUntil((goOn) => bytes.debts.wait(owner, seconds, goOn));
  }

  #waitForTurn(): void {
    const { bytes, owner } = this.#parts;
    if (!this.#mayPause) return;
    this.#pauseUntil((goOn) => {
      let isEnded = false;
      void bytes.turns.take(payerKey(owner)).then(() => isEnded || goOn());
      return {
        [Symbol.dispose]: () => {
          isEnded = true;
        },
      };
    });
  }

  /** Whether more is to come, and nothing is waited for. */
  get #mayPause(): boolean {
    if (this.#isEnded || this.#wait !== undefined) return false;
    return this.#received !== Number(this.#parts.request.headers['content-length']);
  }

  #pauseUntil(begin: (goOn: () => void) => Disposable): void {
    const { request, deadline } = this.#parts;
    this.#stopReceiving();
    // The socket too: it may be ready to be read in this turn.
    request.pause();
    request.socket.pause();
    deadline?.pause();
    this.#wait = begin(() => {
      this.#wait = undefined;
      request.resume();
      request.socket.resume();
      deadline?.start();
      this.#startReceiving();
    });
  }

  /** Lets the owner's other connections pause this one, after a turn: what has arrived is read in it. */
  #startReceiving(): void {
    setImmediate(() => {
      if (this.#isEnded || this.#wait !== undefined) return;
      this.#parts.bytes.receivers.add(this.#parts.owner, this.#pause);
    });
  }

  #stopReceiving(): void {
    this.#parts.bytes.receivers.delete(this.#parts.owner, this.#pause);
  }
}

/**
 * Calls `gone` when a request or its connection has ended: Node forgets a request that was answered, and announces no
 * end of it if its body is cut off then.
 * @returns ends this
 */
export function whenGone(request: IncomingMessage, gone: () => void): Disposable {
  const { socket } = request;
  const end = () => {
    request.off('close', close);
    socket.off('close', close);
  };
  const close = () => {
    end();
    gone();
  };
  // Pipelined requests have one each, and Node warns of more than ten.
  socket.setMaxListeners(0);
  // The one that began last knows best who pays.
  request.prependListener('close', close);
  socket.prependListener('close', close);
  return { [Symbol.dispose]: end };
}
